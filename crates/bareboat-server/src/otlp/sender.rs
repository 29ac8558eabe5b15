//! The task that sends spans.

use super::metrics::OtlpMetrics;
use super::{OtlpSettings, encode};
use crate::outbound::{Bounds, ChosenBy, Destination, Outbound, OutboundError};
use crate::request::body::RequestBody;
use crate::spans::RequestSpans;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Maximum size of a collector's answer.
const ANSWER: usize = 64 << 10;
/// The pause before a batch is sent a second time.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) enum Message {
    Spans(Box<RequestSpans>),
    /// Answered when all earlier spans are sent or dropped.
    Flush(oneshot::Sender<()>),
}

pub(super) struct Sender {
    from: mpsc::Receiver<Message>,
    outbound: Outbound,
    destination: Destination,
    headers: HeaderMap,
    resource: Vec<(String, String)>,
    timeout: Duration,
    batch: usize,
    delay: Duration,
    metrics: OtlpMetrics,
    /// Whether the last batch was dropped: one log line says it.
    failing: bool,
}

impl Sender {
    pub(super) fn new(
        settings: &OtlpSettings,
        from: mpsc::Receiver<Message>,
        metrics: OtlpMetrics,
    ) -> Result<Sender, String> {
        let bundle = BASE64_STANDARD.encode(&settings.authorities);
        let destination =
            Destination::of_url(&settings.url, &bundle).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            // The value may be a credential, so it is not quoted.
            let odd = || format!("the header {name:?} cannot be sent");
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| odd())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-protobuf"),
        );
        headers.insert(header::USER_AGENT, HeaderValue::from_static("bareboat"));
        Ok(Sender {
            from,
            outbound: Outbound::without_services(None),
            destination: destination.chosen_by(ChosenBy::Operator),
            headers,
            resource: settings.resource.clone(),
            timeout: settings.timeout,
            batch: settings.batch.max(1),
            delay: settings.delay,
            metrics,
            failing: false,
        })
    }

    pub(super) async fn run(mut self) {
        while let Some(message) = self.from.recv().await {
            match message {
                Message::Flush(done) => drop(done.send(())),
                Message::Spans(first) => {
                    let (batch, flush) = self.collect(first).await;
                    // A shutdown does not wait for a second attempt.
                    self.send(batch, flush.is_none()).await;
                    if let Some(done) = flush {
                        let _ = done.send(());
                    }
                }
            }
        }
    }

    /// Returns the batch that begins with `first`. A flush ends it.
    async fn collect(
        &mut self,
        first: Box<RequestSpans>,
    ) -> (Vec<RequestSpans>, Option<oneshot::Sender<()>>) {
        let until = Instant::now() + self.delay;
        let mut batch = vec![*first];
        while batch.len() < self.batch {
            match tokio::time::timeout_at(until, self.from.recv()).await {
                Ok(Some(Message::Spans(next))) => batch.push(*next),
                Ok(Some(Message::Flush(done))) => return (batch, Some(done)),
                Ok(None) | Err(_) => break,
            }
        }
        (batch, None)
    }

    /// Sends a batch, a second time if the collector is busy; then drops it.
    async fn send(&mut self, batch: Vec<RequestSpans>, patient: bool) {
        let spans = batch.iter().map(|request| 1 + request.children.len()).sum();
        let body = Bytes::from(encode::encode(&self.resource, &batch));
        drop(batch);
        let mut sent = self.post(body.clone()).await;
        if patient && sent.as_ref().is_err_and(may_pass) {
            tokio::time::sleep(PAUSE).await;
            sent = self.post(body).await;
        }
        match sent {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the collector takes spans again");
                }
                self.metrics.sent(spans);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    let why = error.without_page();
                    tracing::warn!(%why, "the collector does not take spans; they are dropped until it does");
                }
                self.metrics.dropped(spans);
            }
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), OutboundError> {
        let mut request = Request::new(RequestBody::Memory(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.destination.uri().clone();
        *request.headers_mut() = self.headers.clone();
        let bounds = Bounds {
            time: self.timeout,
            answer: ANSWER,
        };
        let answer = self.outbound.exchange(&self.destination, request, bounds);
        answer.await.map(drop)
    }
}

/// Returns whether OTLP allows another attempt.
fn may_pass(error: &OutboundError) -> bool {
    match error {
        OutboundError::Refused { code, .. } => matches!(
            *code,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        ),
        OutboundError::Unreachable { .. } | OutboundError::Broken { .. } => true,
        _ => false,
    }
}
