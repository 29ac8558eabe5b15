//! Spans of requests for distributed tracing: which requests are sampled, and what their spans contain.
//!
//! A sampled request is one span of this server. Its stages and its calls of other servers are children of that span.
//! A [`SpanExporter`] takes finished spans; without one nothing here runs. Spans contain neither bodies nor
//! credentials, and no query strings.

mod context;
mod recorder;

pub(crate) use context::TRACEPARENT;
pub use context::{SpanId, TraceContext, TraceId};
pub(crate) use recorder::{Call, Recorder};

use bareboat_api::kind::BoxFuture;
use std::time::{Duration, SystemTime};

/// Takes the spans of finished requests. It must not block: requests wait for it.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
/// use bareboat::api::kind::BoxFuture;
/// use bareboat::server::Server;
/// use bareboat::server::spans::{RequestSpans, SpanExporter, TraceId};
/// use std::sync::Arc;
///
/// /// Prints requests whose clients want them traced.
/// struct Printed;
///
/// impl SpanExporter for Printed {
///     fn samples(&self, _: TraceId, parent: Option<bool>) -> bool {
///         parent == Some(true)
///     }
///
///     fn export(&self, request: RequestSpans) {
///         println!("{} took {:?}", request.name, request.took);
///     }
///
///     fn flush(&self) -> BoxFuture<'_, ()> {
///         Box::pin(std::future::ready(()))
///     }
/// }
///
/// let builder = Server::builder().spans(Arc::new(Printed));
/// # drop(builder);
/// ```
pub trait SpanExporter: Send + Sync + 'static {
    /// Returns whether the spans of a request are recorded. `parent` is the decision of the client, if it sent one.
    fn samples(&self, trace: TraceId, parent: Option<bool>) -> bool;

    /// Takes the spans of a request, or drops them.
    fn export(&self, request: RequestSpans);

    /// Returns when all spans taken so far are sent or dropped.
    fn flush(&self) -> BoxFuture<'_, ()>;
}

/// The span of a request, with its children.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RequestSpans {
    /// The trace and the id of the request's span.
    pub context: TraceContext,
    /// The span of the client, if it sent one.
    pub parent: Option<SpanId>,
    /// The name: verb and resource, such as `create deployments.apps`. It has few different values.
    pub name: String,
    /// When the request arrived.
    pub started: SystemTime,
    /// How long it took until the head of the answer was made.
    pub took: Duration,
    /// The code of the answer.
    pub code: u16,
    /// What is known about the request.
    pub attributes: Vec<(&'static str, String)>,
    /// Stages and calls, in order of their end.
    pub children: Vec<ChildSpan>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChildSpan {
    /// The id of the span.
    pub id: SpanId,
    /// The name of the stage or of the call.
    pub name: String,
    /// Whether this is a call of another server.
    pub is_call: bool,
    /// The time from the start of the request to the start of this part.
    pub from: Duration,
    /// The time from the start of the request to the end of this part.
    pub to: Duration,
    /// Whether the part failed.
    pub failed: bool,
    /// What is known about the part.
    pub attributes: Vec<(&'static str, String)>,
}
