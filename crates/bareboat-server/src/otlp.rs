//! Exports spans of requests by OTLP over HTTP, to an OpenTelemetry collector.
//!
//! A bounded buffer takes spans, and a task sends them in batches. Spans that do not fit, and spans that the collector
//! does not take, are dropped and counted: a request never waits for a collector.

mod encode;
mod environment;
mod metrics;
mod sender;

pub use environment::EnvironmentError;

use crate::spans::{RequestSpans, SpanExporter, TraceId};
use bareboat_api::kind::BoxFuture;
use metrics::OtlpMetrics;
use parking_lot::Mutex;
use prometheus::core::Collector;
use sender::{Message, Sender};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How long a shutdown waits for the collector.
const LAST: Duration = Duration::from_secs(2);

/// Where spans are sent, and how many.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OtlpSettings {
    /// The URL that takes spans, such as `http://127.0.0.1:4318/v1/traces`.
    pub url: String,
    /// Headers of every call, such as credentials.
    pub headers: Vec<(String, String)>,
    /// The certificates to trust, in PEM; empty for those of the system.
    pub authorities: String,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The part of requests without a context that are sampled, from 0 to 1.
    pub ratio: f64,
    /// Whether the decision of a client's context counts. Otherwise the ratio decides for every trace.
    pub follows_parents: bool,
    /// The attributes of this process, such as `service.name`.
    pub resource: Vec<(String, String)>,
    /// The maximum number of requests whose spans wait.
    pub buffer: usize,
    /// The maximum number of requests whose spans are sent at once.
    pub batch: usize,
    /// The maximum time that spans wait for others.
    pub delay: Duration,
}

impl OtlpSettings {
    /// Returns the usual settings for a collector at `url`. All requests without a context are sampled.
    pub fn new(url: impl Into<String>) -> OtlpSettings {
        OtlpSettings {
            url: url.into(),
            headers: Vec::new(),
            authorities: String::new(),
            timeout: Duration::from_secs(10),
            ratio: 1.0,
            follows_parents: true,
            resource: vec![("service.name".to_owned(), "bareboat".to_owned())],
            buffer: 2048,
            batch: 512,
            delay: Duration::from_secs(5),
        }
    }

    /// Sets an attribute of this process.
    pub fn set_attribute(&mut self, name: &str, value: &str) {
        self.resource.retain(|(known, _)| known != name);
        self.resource.push((name.to_owned(), value.to_owned()));
    }
}

/// The settings cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("spans cannot be sent to {url}: {why}")]
pub struct OtlpError {
    url: String,
    why: String,
}

/// Sends spans to a collector.
pub struct Otlp {
    ratio: f64,
    follows_parents: bool,
    to: mpsc::Sender<Message>,
    /// Started with the first span, because that needs a runtime.
    sender: Mutex<Option<Sender>>,
    metrics: OtlpMetrics,
}

bareboat_api::opaque_debug!(Otlp);

impl Otlp {
    /// Makes an exporter. It connects when there are spans.
    pub fn new(settings: &OtlpSettings) -> Result<Otlp, OtlpError> {
        let metrics = OtlpMetrics::new();
        let (to, from) = mpsc::channel(settings.buffer.clamp(1, 1 << 20));
        let sender = Sender::new(settings, from, metrics.clone()).map_err(|why| OtlpError {
            url: settings.url.clone(),
            why,
        })?;
        Ok(Otlp {
            ratio: settings.ratio,
            follows_parents: settings.follows_parents,
            to,
            sender: Mutex::new(Some(sender)),
            metrics,
        })
    }

    /// Returns the counters of sent and dropped spans.
    pub fn collector(&self) -> impl Collector + use<> {
        self.metrics.collector()
    }

    fn start(&self) {
        let mut sender = self.sender.lock();
        if sender.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Some(sender) = sender.take()
        {
            runtime.spawn(sender.run());
        }
    }
}

impl SpanExporter for Otlp {
    fn samples(&self, trace: TraceId, parent: Option<bool>) -> bool {
        if let (Some(sampled), true) = (parent, self.follows_parents) {
            return sampled;
        }
        // As other programs do: the last eight bytes of the id decide, so all of them decide the same.
        let mut last = [0; 8];
        last.copy_from_slice(&trace.0[8..]);
        let place = (u64::from_be_bytes(last) >> 1) as f64 / (1u64 << 63) as f64;
        place < self.ratio
    }

    fn export(&self, request: RequestSpans) {
        self.start();
        let spans = 1 + request.children.len();
        if self.to.try_send(Message::Spans(Box::new(request))).is_err() {
            self.metrics.dropped(spans);
        }
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.sender.lock().is_some() {
                // There was no span yet.
                return;
            }
            let (done, is_done) = oneshot::channel();
            let flush = async {
                if self.to.send(Message::Flush(done)).await.is_ok() {
                    let _ = is_done.await;
                }
            };
            let _ = tokio::time::timeout(LAST, flush).await;
        })
    }
}

#[cfg(test)]
mod tests;
