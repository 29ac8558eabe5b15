//! Counts certificates issued for requests with a duration, and those with the requested duration.

use bareboat_api::Value;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{self, IntCounterVec, Opts};
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::sync::Arc;
use x509_parser::pem::Pem;

/// The storage resource of CertificateSigningRequests.
pub(crate) const STORE: &str = "certificates.k8s.io/certificatesigningrequests";
/// Signers backdate certificates by this many seconds, so durations may differ as much.
const BACKDATED: i64 = 5 * 60;

/// Counts issued certificates.
#[derive(Clone)]
pub(crate) struct IssuedCertificates {
    requested: IntCounterVec,
    honored: IntCounterVec,
}

impl IssuedCertificates {
    pub(crate) fn new() -> Result<IssuedCertificates, prometheus::Error> {
        let counter = |name: &str, help: &str| {
            let name = format!("apiserver_certificates_registry_csr_{name}_duration_total");
            IntCounterVec::new(Opts::new(name, help), &["signerName"])
        };
        Ok(IssuedCertificates {
            requested: counter(
                "requested",
                "Certificates that were issued for requests with a duration, by signer.",
            )?,
            honored: counter(
                "honored",
                "Certificates that were issued with the duration that was requested, by signer.",
            )?,
        })
    }

    fn count(&self, before: &Entry, after: &Entry) {
        let parse = |entry: &Entry| bareboat_wire::json::parse(entry.json()).ok();
        let (Some(before), Some(after)) = (parse(before), parse(after)) else {
            return;
        };
        let Some(issued) = Issued::of(&before.value, &after.value) else {
            return;
        };
        let signer = [issued.signer];
        self.requested.with_label_values(&signer).inc();
        if issued.honored {
            self.honored.with_label_values(&signer).inc();
        }
    }
}

/// A certificate that was issued for a request with a duration.
struct Issued<'a> {
    signer: &'a str,
    honored: bool,
}

impl Issued<'_> {
    fn of<'a>(before: &'a Value, after: &Value) -> Option<Issued<'a>> {
        let certificate = |request: &Value| {
            let found = request.at(&["status", "certificate"]);
            let text = found.and_then(Value::as_str).unwrap_or("");
            (!text.is_empty()).then(|| text.to_owned())
        };
        if certificate(before).is_some() {
            return None;
        }
        let wanted = before.at(&["spec", "expirationSeconds"])?.as_i64()?;
        let issued = certificate(after)?;
        let signer = before.at(&["spec", "signerName"]).and_then(Value::as_str);
        Some(Issued {
            // Users can invent any number of signer names, so only signers of Kubernetes get their own label.
            signer: signer
                .filter(|name| name.starts_with("kubernetes.io/"))
                .unwrap_or("other"),
            honored: duration(&issued).is_some_and(|got| is_honored(wanted, got)),
        })
    }
}

/// Returns the validity of the first certificate, in seconds.
fn duration(encoded: &str) -> Option<i64> {
    let pem = BASE64.decode(encoded).ok()?;
    let first = Pem::iter_from_buffer(&pem).find_map(Result::ok)?;
    let certificate = first.parse_x509().ok()?;
    let validity = certificate.validity();
    Some(validity.not_after.timestamp() - validity.not_before.timestamp())
}

fn is_honored(wanted: i64, got: i64) -> bool {
    wanted.saturating_sub(got).saturating_abs() < BACKDATED + wanted / 20
}

impl Observer for IssuedCertificates {
    fn reset(&self, _: &Snapshot) {}

    fn changed(&self, event: &Arc<Event>) {
        if let (EventKind::Modified, Some(before)) = (event.kind, &event.prev) {
            self.count(before, &event.entry);
        }
    }
}

impl Collector for IssuedCertificates {
    fn desc(&self) -> Vec<&Desc> {
        [self.requested.desc(), self.honored.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        [self.requested.collect(), self.honored.collect()].concat()
    }
}

#[cfg(test)]
mod tests;
