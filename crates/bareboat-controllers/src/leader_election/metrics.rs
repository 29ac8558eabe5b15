//! Whether this server leads, as a metric with the name of client-go.

use bareboat_server::Server;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{self, IntGaugeVec, Opts};
use tokio::sync::watch;

struct LeaderMetric {
    status: IntGaugeVec,
    leads: watch::Receiver<bool>,
}

/// Adds the metric to those of a server.
pub(crate) fn publish(
    server: &Server,
    leads: watch::Receiver<bool>,
) -> Result<(), prometheus::Error> {
    let status = IntGaugeVec::new(
        Opts::new(
            "leader_election_master_status",
            "Whether the controllers of this server lead (1) or wait (0), by name of the Lease.",
        ),
        &["name"],
    )?;
    server.collect(LeaderMetric { status, leads })
}

impl Collector for LeaderMetric {
    fn desc(&self) -> Vec<&Desc> {
        self.status.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let leads = *self.leads.borrow();
        let status = self.status.with_label_values(&[super::NAME]);
        status.set(i64::from(leads));
        self.status.collect()
    }
}
