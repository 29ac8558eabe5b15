//! Builder methods for operators: webhooks that this server answers, audit, diagnostics, flow control.

use super::ServerBuilder;
#[cfg(feature = "audit")]
use crate::audit::Audit;
use crate::clock::Clock;
#[cfg(feature = "fairness")]
use crate::flow::FlowControl;
use crate::spans::SpanExporter;
use bareboat_api::{Status, Value};
use std::sync::Arc;
use std::time::Duration;

impl ServerBuilder {
    /// Sets the clock of stored objects; the default is the clock of the system.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Answers an admission webhook of other API servers at a path, such as `/mutate`. The function gets the AdmissionRequest
    /// and returns a JSON patch, which is empty if nothing changes, or the reason for refusing the request. Callers of webhooks
    /// have no credentials, so this path needs none.
    ///
    /// ```
    /// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::api::{Value, value};
    /// use bareboat::server::Server;
    ///
    /// let builder = Server::builder().admission_webhook("/mutate", |request: Value| async move {
    ///     Ok(match request.at(&["object", "metadata", "labels"]) {
    ///         Some(_) => vec![],
    ///         None => vec![value!({"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}})],
    ///     })
    /// });
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn admission_webhook<F, R>(mut self, path: &str, decide: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<Value>, Status>> + Send + 'static,
    {
        self.webhook_paths.add(path, decide);
        self
    }

    /// Adds audit.
    #[cfg(feature = "audit")]
    #[must_use]
    pub fn audit(mut self, audit: Arc<Audit>) -> Self {
        self.collectors.extend(audit.metrics().collectors());
        self.audit = Some(audit);
        self
    }

    /// Exports spans of requests. The context of a client (`traceparent`) is continued, and passed on to webhooks and to
    /// aggregated servers.
    #[must_use]
    pub fn spans(mut self, exporter: Arc<dyn SpanExporter>) -> Self {
        self.spans = Some(exporter);
        self
    }

    /// Logs requests that take longer than this; the default is one second. Watches and connections to other servers
    /// are exempt. `None` logs none.
    #[must_use]
    pub fn slow_request_threshold(mut self, threshold: Option<Duration>) -> Self {
        self.limits.slow = threshold;
        self
    }

    /// Sets priority and fairness; the default has the flow schemas and levels of Kubernetes.
    #[cfg(feature = "fairness")]
    #[must_use]
    pub fn flow_control(mut self, control: FlowControl) -> Self {
        self.flow_control = Some(control);
        self
    }

    /// Turns priority and fairness off: one limit for reads, one for writes, no queues.
    #[must_use]
    pub fn without_flow_control(mut self) -> Self {
        self.flow_control = None;
        self
    }
}
