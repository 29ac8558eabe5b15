//! The admission plug-in PodSecurity: its metrics, and the labels of namespaces for it.

use bareboat_builtin::admission::{PodSecurity, PodSecurityConfiguration, PodSecurityMeter};
use bareboat_server::ServerBuilder;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{self, IntCounterVec, Opts};
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use std::sync::Arc;

/// The name of the plug-in.
pub(crate) const NAME: &str = "PodSecurity";
/// The storage resource of namespaces.
const STORE: &str = "core/namespaces";

/// Adds the plug-in to a server.
pub(crate) fn install(
    builder: ServerBuilder,
    configuration: &PodSecurityConfiguration,
) -> ServerBuilder {
    // The metric names are constants and valid, so this does not fail.
    let Ok(meter) = Meter::new() else {
        return builder;
    };
    let plugin = PodSecurity::new(configuration.clone(), Arc::new(meter.clone()));
    builder
        .collector(meter)
        .observe(STORE, Arc::new(Namespaces(plugin.clone())))
        .validator(plugin)
}

/// Passes the labels of namespaces on.
struct Namespaces(PodSecurity);

impl Namespaces {
    fn tell(&self, entry: &Entry) {
        let labels = entry.facets().labels.iter();
        self.0
            .note(entry.key(), labels.map(|(key, value)| (&**key, &**value)));
    }
}

impl Observer for Namespaces {
    fn reset(&self, snapshot: &Snapshot) {
        self.0.forget();
        for entry in snapshot.range("", None) {
            self.tell(entry);
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Deleted => self.0.note(event.key(), std::iter::empty()),
            _ => self.tell(&event.entry),
        }
    }
}

/// Counts evaluations.
#[derive(Clone)]
struct Meter {
    evaluations: IntCounterVec,
    exemptions: IntCounterVec,
    errors: IntCounterVec,
}

impl Meter {
    fn new() -> Result<Meter, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let name = format!("pod_security_{name}_total");
            IntCounterVec::new(Opts::new(name, help), labels)
        };
        Ok(Meter {
            evaluations: counter(
                "evaluations",
                "Policies that were evaluated for pods, without exempt requests.",
                &[
                    "decision",
                    "policy_level",
                    "policy_version",
                    "mode",
                    "request_operation",
                    "resource",
                    "subresource",
                ],
            )?,
            exemptions: counter(
                "exemptions",
                "Requests that were exempt from the policies of pods.",
                &["request_operation", "resource", "subresource"],
            )?,
            errors: counter(
                "errors",
                "Policies that could not be read; unless that is fatal, the restricted level is enforced.",
                &["fatal", "request_operation", "resource", "subresource"],
            )?,
        })
    }

    fn all(&self) -> [&IntCounterVec; 3] {
        [&self.evaluations, &self.exemptions, &self.errors]
    }
}

impl PodSecurityMeter for Meter {
    fn evaluated(&self, labels: [&str; 7]) {
        self.evaluations.with_label_values(&labels).inc();
    }

    fn exempted(&self, labels: [&str; 3]) {
        self.exemptions.with_label_values(&labels).inc();
    }

    fn failed(&self, labels: [&str; 4]) {
        self.errors.with_label_values(&labels).inc();
    }
}

impl Collector for Meter {
    fn desc(&self) -> Vec<&Desc> {
        self.all().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.all()
            .into_iter()
            .flat_map(Collector::collect)
            .collect()
    }
}
