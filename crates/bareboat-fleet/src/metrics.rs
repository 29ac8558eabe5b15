//! Metrics of members and their sync. Series come from the table of members, so that one that leaves has none.

use crate::members::state::Phase;
use crate::members::table::Table;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{self, GaugeVec, IntCounterVec, IntGaugeVec, Opts};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How all names begin.
const PREFIX: &str = "bareboat_fleet_";

/// Metrics of members.
pub(crate) struct FleetMetrics {
    table: Arc<Table>,
    series: Mutex<Series>,
    desc: Vec<Desc>,
}

struct Series {
    ready: IntGaugeVec,
    heard: GaugeVec,
    types: IntGaugeVec,
    changes: IntCounterVec,
    skipped: IntCounterVec,
    refills: IntCounterVec,
}

impl FleetMetrics {
    pub(crate) fn new(table: &Arc<Table>) -> Result<FleetMetrics, prometheus::Error> {
        let opts = |name: &str, help: &str| Opts::new(format!("{PREFIX}{name}"), help);
        let member = &["member"];
        let series = Series {
            ready: IntGaugeVec::new(
                opts("member_ready", "Whether a member of the fleet is ready."),
                member,
            )?,
            heard: GaugeVec::new(
                opts(
                    "member_heard_seconds",
                    "How long ago a member was last heard.",
                ),
                member,
            )?,
            types: IntGaugeVec::new(
                opts(
                    "member_types",
                    "Types of a member, by what their sync does: pending, listing, syncing, failed, stopped.",
                ),
                &["member", "phase"],
            )?,
            changes: IntCounterVec::new(
                opts(
                    "changes_total",
                    "Rows of the shelf that changed, by member.",
                ),
                member,
            )?,
            skipped: IntCounterVec::new(
                opts(
                    "skipped_objects_total",
                    "Objects of a member that are malformed and were left out.",
                ),
                member,
            )?,
            refills: IntCounterVec::new(
                opts(
                    "refills_total",
                    "How often a type was listed again because its watch could not be resumed, by member.",
                ),
                member,
            )?,
        };
        let desc = series
            .all()
            .iter()
            .flat_map(|one| one.desc())
            .cloned()
            .collect();
        Ok(FleetMetrics {
            table: table.clone(),
            series: Mutex::new(series),
            desc,
        })
    }
}

impl Series {
    fn all(&self) -> [&dyn Collector; 6] {
        [
            &self.ready,
            &self.heard,
            &self.types,
            &self.changes,
            &self.skipped,
            &self.refills,
        ]
    }

    fn fill(&self, table: &Table) {
        self.ready.reset();
        self.heard.reset();
        self.types.reset();
        self.changes.reset();
        self.skipped.reset();
        self.refills.reset();
        let now = table.now();
        // Each member is counted by the server that syncs it.
        for state in table.all().iter().filter(|state| !state.is_remote()) {
            let name: &[&str] = &[&state.name];
            self.ready
                .with_label_values(name)
                .set(i64::from(state.ready().holds()));
            if let Some(heard) = state.last_heard() {
                let ago = now.saturating_sub(heard) as f64 / 1000.0;
                self.heard.with_label_values(name).set(ago);
            }
            for one in state.types() {
                let phase = match one.phase {
                    Phase::Pending => "pending",
                    Phase::Listing(_) => "listing",
                    Phase::Syncing => "syncing",
                    Phase::Failed(_) => "failed",
                    Phase::Stopped => "stopped",
                };
                self.types.with_label_values(&[&*state.name, phase]).inc();
            }
            let counters = &state.counters;
            let count = |vec: &IntCounterVec, value: u64| vec.with_label_values(name).inc_by(value);
            count(&self.changes, counters.changes.load(Ordering::Relaxed));
            count(&self.skipped, counters.skipped.load(Ordering::Relaxed));
            count(&self.refills, counters.refills.load(Ordering::Relaxed));
        }
    }
}

impl Collector for FleetMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.desc.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let series = self.series.lock();
        series.fill(&self.table);
        series.all().iter().flat_map(|one| one.collect()).collect()
    }
}
