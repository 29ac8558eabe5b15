//! The server's metrics, under the names and labels that Kubernetes dashboards read.
//!
//! Label values come from the table of served kinds and from fixed lists, never from a request. The number of label
//! sets is bounded.

mod admission;
pub(crate) mod families;
mod histogram;
mod labels;
mod process;
mod requests;
mod scrape;
mod storage;
mod watches;

pub(crate) use admission::Step;
pub(crate) use histogram::Histogram;
pub(crate) use labels::{RemoteLabels, Sight};
pub(crate) use requests::{Answered, Running, removed_release};
pub(crate) use scrape::Readings;
pub(crate) use watches::WatchMeter;

use crate::tls::Tls;
use admission::Admission;
use families::{Family, Values, descriptions};
use labels::{Labels, Source};
use process::Process;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Encoder as _, IntCounter, IntCounterVec, Opts, Registry, TextEncoder};
use requests::Requests;
use scrape::Gauges;
use std::sync::Arc;
use watches::Watches;

/// The media type of the text that Prometheus reads.
pub(crate) const MEDIA: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Remaining lifetimes of client certificates in seconds, from half an hour to a year.
const LIFETIMES: &[f64] = &[
    0.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0, 172800.0, 345600.0, 604800.0,
    2592000.0, 7776000.0, 15552000.0, 31104000.0,
];

const LIFETIME: Family = (
    "apiserver_client_certificate_expiration_seconds",
    "Remaining lifetime of the client certificates that requests were authenticated by.",
    &[],
);

/// Prints the remaining lifetimes of client certificates.
struct Lifetimes {
    certificates: Arc<Histogram>,
    descriptions: Vec<Desc>,
}

impl Collector for Lifetimes {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut values = Values::default();
        values.histogram(LIFETIME, &[], self.certificates.print());
        values.print("")
    }
}

/// The metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Requests,
    pub(crate) watches: Watches,
    pub(crate) admission: Admission,
    gauges: parking_lot::Mutex<Gauges>,
    /// What the server last began to listen with.
    serving: parking_lot::Mutex<Option<Tls>>,
    authenticated: Authenticated,
    certificates: Arc<Histogram>,
}

/// Attempts to authenticate, by result.
struct Authenticated {
    success: IntCounter,
    failure: IntCounter,
    error: IntCounter,
}

/// How an attempt to authenticate ended.
#[derive(Clone, Copy)]
pub(crate) enum Attempt {
    /// The user is authenticated, or may be anonymous.
    Success,
    /// There were no credentials.
    Failure,
    /// The credentials were refused.
    Error,
}

impl Metrics {
    /// Creates the metrics, with these additional collectors.
    pub(crate) fn new(more: Vec<Box<dyn Collector>>) -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let attempts = IntCounterVec::new(
            Opts::new(
                "authentication_attempts",
                "Attempts to authenticate, by result.",
            ),
            &["result"],
        )?;
        let certificates = Arc::new(Histogram::new(LIFETIMES, 1.0));
        let metrics = Metrics {
            requests: Requests::new(&registry)?,
            watches: Watches::new(&registry)?,
            admission: Admission::new(&registry)?,
            gauges: parking_lot::Mutex::new(Gauges::new(&registry)?),
            serving: parking_lot::Mutex::default(),
            authenticated: Authenticated {
                success: attempts.with_label_values(&["success"]),
                failure: attempts.with_label_values(&["failure"]),
                error: attempts.with_label_values(&["error"]),
            },
            certificates: certificates.clone(),
            registry,
        };
        metrics.registry.register(Box::new(attempts))?;
        let lifetimes = Lifetimes {
            certificates,
            descriptions: descriptions("", &[LIFETIME]),
        };
        metrics.registry.register(Box::new(lifetimes))?;
        for collector in more {
            metrics.registry.register(collector)?;
        }
        Ok(metrics)
    }

    /// Adds a collector.
    pub(crate) fn add(&self, more: impl Collector + 'static) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(more))
    }

    /// Tells when the certificate of a listener expires from now on.
    pub(crate) fn serve_with(&self, tls: &Tls) {
        *self.serving.lock() = Some(tls.clone());
    }

    /// Counts an attempt to authenticate.
    pub(crate) fn authenticated(&self, attempt: Attempt) {
        match attempt {
            Attempt::Success => self.authenticated.success.inc(),
            Attempt::Failure => self.authenticated.failure.inc(),
            Attempt::Error => self.authenticated.error.inc(),
        }
    }

    /// Records that a request was authenticated by a certificate that is valid for so many more seconds.
    pub(crate) fn certificate_used(&self, lifetime: u64) {
        self.certificates.observe(lifetime);
    }

    /// Returns the text that Prometheus reads.
    pub(crate) fn print(&self, readings: &Readings) -> Result<Vec<u8>, prometheus::Error> {
        let expires = self.serving.lock().as_ref().and_then(Tls::expires);
        let families = {
            // Gauges are set and read by one scrape at a time.
            let gauges = self.gauges.lock();
            gauges.set(readings);
            gauges.set_process(&Process::read());
            gauges.set_expiry(expires);
            self.registry.gather()
        };
        let mut out = Vec::with_capacity(64 * 1024);
        TextEncoder::new().encode(&families, &mut out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
