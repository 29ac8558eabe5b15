//! Sends events to a webhook: an `EventList` per batch, throttled, with retries while the webhook is down.

use super::sink::Writer;
use crate::RemoteApi;
use crate::outbound::OutboundError;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Value, value};
use bareboat_audit::Event;
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Timeout of one attempt.
const TIME: Duration = Duration::from_secs(30);
/// How often a batch is sent before it is dropped.
const ATTEMPTS: u32 = 5;

/// A server that receives events.
pub struct AuditWebhook {
    server: RemoteApi,
    backoff: Duration,
    throttle: Option<Mutex<Throttle>>,
}

bareboat_api::opaque_debug!(AuditWebhook);

impl AuditWebhook {
    /// The server of a kubeconfig. Failed batches are sent again after 10 s, with an increasing delay.
    pub fn new(server: RemoteApi) -> AuditWebhook {
        AuditWebhook {
            server,
            backoff: Duration::from_secs(10),
            throttle: None,
        }
    }

    /// Sets the delay before the second attempt.
    #[must_use]
    pub fn initial_backoff(mut self, backoff: Duration) -> AuditWebhook {
        self.backoff = backoff;
        self
    }

    /// Sets the maximum number of batches per second, and of a burst.
    #[must_use]
    pub fn throttle(mut self, per_second: f64, burst: u32) -> AuditWebhook {
        self.throttle = (per_second > 0.0).then(|| Mutex::new(Throttle::new(per_second, burst)));
        self
    }

    async fn send(&self, body: Bytes) -> Result<(), String> {
        let mut pause = self.backoff;
        let mut attempt = 1;
        loop {
            if let Some(throttle) = &self.throttle {
                throttle.lock().await.turn().await;
            }
            let error = match self.server.deliver(body.clone(), TIME).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if attempt == ATTEMPTS || !may_pass(&error) {
                return Err(error.without_page());
            }
            tracing::warn!(
                attempt,
                why = error.without_page(),
                "the audit webhook failed; events wait"
            );
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.5);
            attempt += 1;
        }
    }
}

/// Returns whether a retry may succeed.
fn may_pass(error: &OutboundError) -> bool {
    match error {
        OutboundError::Refused { code, .. } => {
            code.is_server_error() || *code == StatusCode::TOO_MANY_REQUESTS
        }
        OutboundError::Unreachable { .. }
        | OutboundError::Broken { .. }
        | OutboundError::Timeout(_) => true,
        _ => false,
    }
}

impl Writer for AuditWebhook {
    fn write(&self, events: Vec<Arc<Event>>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let encoding = tokio::task::spawn_blocking(move || {
                let items: Value = events.iter().map(|event| event.to_value()).collect();
                let mut list = value!({ "kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {} });
                list.make_object().insert("items", items);
                Bytes::from(list.to_json())
            });
            let body = encoding.await.map_err(|error| error.to_string())?;
            self.send(body).await
        })
    }
}

/// A rate limit with a burst.
struct Throttle {
    every: Duration,
    burst: u32,
    /// When the next batch would be due at the maximum rate.
    next: Instant,
}

impl Throttle {
    fn new(per_second: f64, burst: u32) -> Throttle {
        Throttle {
            every: Duration::from_secs_f64(1.0 / per_second),
            burst: burst.max(1),
            next: Instant::now(),
        }
    }

    /// Waits for a turn.
    async fn turn(&mut self) {
        let now = Instant::now();
        let saved = self.every * (self.burst - 1);
        let earliest = now.checked_sub(saved).unwrap_or(now);
        self.next = self.next.max(earliest);
        tokio::time::sleep_until(self.next).await;
        self.next += self.every;
    }
}
