//! Audit: records requests and writes the records to sinks.
//!
//! `bareboat_audit` implements policies and events. This module makes events while a request runs (`Audited`) and
//! passes them to sinks: a file, a webhook. The sinks encode events, not the request. Without a policy none of this
//! runs.

mod arrival;
mod file;
mod metrics;
mod request;
mod sink;
#[cfg(feature = "outbound")]
mod webhook;

pub(crate) use arrival::Arrival;
pub use bareboat_audit::{Policy, PolicyError};
pub use file::{AuditLog, AuditLogError, Rotation};
pub(crate) use request::Audited;
pub use sink::{Batching, Mode};
#[cfg(feature = "outbound")]
pub use webhook::AuditWebhook;

use crate::diagnostics::Trace;
use arc_swap::ArcSwap;
use bareboat_api::Status;
use bareboat_audit::{Event, Level};
use metrics::AuditMetrics;
use sink::Sink;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a shutdown waits until buffered events are written.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long it waits for long-running requests to end.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Records requests according to a policy.
///
/// ```
/// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
/// use bareboat::server::audit::{Audit, AuditLog, Batching, Mode, Policy, Rotation};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::parse(b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")?;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("audit.log");
/// let log = AuditLog::open(&path, Rotation::default())?;
/// let audit = Audit::new(policy).log(log, Mode::Blocking, Batching::default());
/// # drop(audit);
/// # Ok(()) }
/// ```
pub struct Audit {
    policy: ArcSwap<Policy>,
    sinks: Vec<Sink>,
    metrics: AuditMetrics,
    /// Requests whose last event is not made yet.
    open: AtomicUsize,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Audit({} sinks)", self.sinks.len())
    }
}

impl Audit {
    /// Starts without sinks.
    pub fn new(policy: Policy) -> Audit {
        Audit {
            policy: ArcSwap::from_pointee(policy),
            sinks: Vec::new(),
            metrics: AuditMetrics::new(),
            open: AtomicUsize::new(0),
        }
    }

    /// Adds a file as a sink.
    #[must_use]
    pub fn log(mut self, log: AuditLog, mode: Mode, batching: Batching) -> Audit {
        let metrics = self.metrics.clone();
        self.sinks
            .push(Sink::new("log", mode, batching, log, metrics));
        self
    }

    /// Adds a webhook as a sink.
    #[cfg(feature = "outbound")]
    #[must_use]
    pub fn webhook(mut self, webhook: AuditWebhook, mode: Mode, batching: Batching) -> Audit {
        let metrics = self.metrics.clone();
        self.sinks
            .push(Sink::new("webhook", mode, batching, webhook, metrics));
        self
    }

    /// Replaces the policy, from the next request on.
    pub fn set_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    pub(crate) fn metrics(&self) -> &AuditMetrics {
        &self.metrics
    }

    /// Starts to record a request, if the policy applies to it.
    pub(crate) async fn begin(
        self: &Arc<Audit>,
        trace: &Trace,
        arrival: Arrival<'_>,
    ) -> Result<(), Status> {
        let verdict = self.policy.load().decide(&arrival.attributes());
        self.metrics.level(verdict.level);
        if verdict.level == Level::None {
            return Ok(());
        }
        let is_authenticated = arrival.user.is_some();
        let request = Arc::new(arrival.describe(trace, &verdict));
        let audited = Arc::new(Audited::new(self.clone(), request, verdict.omit));
        trace.audit(audited.clone());
        if let Some(account) = arrival.account_of_secret() {
            audited.annotate("authentication.k8s.io/legacy-token", account);
        }
        if !is_authenticated {
            return Ok(());
        }
        let received = audited.received().await;
        received.map_err(|Unwritten| {
            self.metrics.rejected();
            Status::internal("the request cannot be audited")
        })
    }

    /// Passes an event to all sinks; waits for those that block. An error means that a strict sink failed.
    async fn record(&self, event: Event) -> Result<(), Unwritten> {
        self.metrics.event();
        let event = Arc::new(event);
        let mut outcome = Ok(());
        for sink in &self.sinks {
            outcome = outcome.and(sink.take(event.clone()).await);
        }
        outcome
    }

    /// Passes an event to all sinks without waiting.
    fn record_later(&self, event: Event) {
        self.metrics.event();
        let event = Arc::new(event);
        for sink in &self.sinks {
            sink.take_later(event.clone());
        }
    }

    /// Writes buffered events. Watches and connections are about to end, and get a moment for their last event.
    pub(crate) async fn flush(&self) {
        let begun = Instant::now();
        while self.open.load(Ordering::Relaxed) > 0 && begun.elapsed() < LAST_MOMENT {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let all = self.sinks.iter().map(Sink::flush);
        let _ = tokio::time::timeout(FAREWELL, futures_util::future::join_all(all)).await;
    }
}

/// A strict sink could not write an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwritten;
