//! Metrics of file reloads.

use super::Digest;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts};

/// Counts reloads of files. Add a clone of it to the server's builder as a collector.
#[derive(Clone)]
pub struct ReloadMetrics {
    total: IntCounterVec,
    last: GaugeVec,
    /// The digest of the contents in use, for configurations.
    info: Option<IntGaugeVec>,
}

bareboat_api::opaque_debug!(ReloadMetrics);

impl ReloadMetrics {
    /// The metrics kube-apiserver has for one of its configurations: `authentication`, `authorization` or `encryption`
    /// (`apiserver_NAME_config_controller_automatic_reloads_total` and so on).
    pub fn controller(name: &str) -> ReloadMetrics {
        let prefix = format!("apiserver_{name}_config_controller_automatic");
        let mut metrics = ReloadMetrics::new(&format!("{prefix}_reload"), &["status"]);
        let options = Opts::new(
            format!("apiserver_{name}_config_controller_last_config_info"),
            "The digest of the configuration that is in use.",
        );
        metrics.info = IntGaugeVec::new(options, &["hash"]).ok();
        metrics
    }

    /// The metrics for all other files, by description: `bareboat_file_reloads_total`. One value is shared by all of
    /// them.
    pub fn files() -> ReloadMetrics {
        ReloadMetrics::new("bareboat_file_reload", &["file", "status"])
    }

    fn new(prefix: &str, labels: &[&str]) -> ReloadMetrics {
        let total = Opts::new(format!("{prefix}s_total"), "Reloads of files, by outcome.");
        let last = Opts::new(
            format!("{prefix}_last_timestamp_seconds"),
            "When files were last reloaded, by outcome.",
        );
        ReloadMetrics {
            // Names and labels are made above out of valid characters.
            total: IntCounterVec::new(total, labels).expect("a valid name"),
            last: GaugeVec::new(last, labels).expect("a valid name"),
            info: None,
        }
    }

    /// Records the contents in use.
    pub(super) fn loaded(&self, digest: &Digest) {
        if let Some(info) = &self.info {
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            info.reset();
            info.with_label_values(&[&format!("sha256:{hex}")]).set(1);
        }
    }

    /// Counts a reload; the digest is that of the new contents, absent after a failure.
    pub(super) fn reloaded(&self, what: &str, taken: Option<&Digest>) {
        let status = match taken {
            Some(_) => "success",
            None => "failure",
        };
        let labels: &[&str] = match &self.info {
            Some(_) => &[status],
            None => &[what, status],
        };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.total.with_label_values(labels).inc();
        let seconds = now.map_or(0.0, |time| time.as_secs_f64());
        self.last.with_label_values(labels).set(seconds);
        if let Some(digest) = taken {
            self.loaded(digest);
        }
    }

    /// Returns how many reloads had these labels.
    #[cfg(test)]
    pub(super) fn count(&self, labels: &[&str]) -> u64 {
        self.total.with_label_values(labels).get()
    }
}

impl Collector for ReloadMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.total.desc();
        all.extend(self.last.desc());
        all.extend(self.info.iter().flat_map(Collector::desc));
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut all = self.total.collect();
        all.extend(self.last.collect());
        all.extend(self.info.iter().flat_map(Collector::collect));
        all
    }
}
