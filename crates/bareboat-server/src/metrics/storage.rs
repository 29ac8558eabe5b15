//! Metrics of the store: appends, the freshness barrier, other servers, the engine. The store counts; a scrape reads.

use super::scrape::signed;
use bareboat_storage::{AppendResult, Durations, Resolution, StoreStats};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};
use prometheus::{
    Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What a scrape sets.
pub(super) struct Storage {
    engine: IntGaugeVec,
    appends: Timed,
    append_results: IntCounterVec,
    held_appends: IntCounter,
    records: IntCounter,
    resolutions: IntCounterVec,
    unresolved: IntGauge,
    catch_ups: IntCounter,
    followed_records: IntCounter,
    reloads: IntCounter,
    barriers: Timed,
    barrier_reads: IntCounter,
    barrier_failures: IntCounter,
    behind: IntGauge,
    freshness_age: Gauge,
    epoch: IntGauge,
    floor_age: Gauge,
    free_bytes: IntGauge,
    /// Without labels. Absent while unknown.
    available_bytes: IntGaugeVec,
    clock_difference: GaugeVec,
    connections_opened: IntCounter,
    connections_lost: IntCounter,
    connections_failed: IntCounter,
}

impl Storage {
    pub(super) fn new(registry: &Registry) -> Result<Storage, prometheus::Error> {
        let register = Register(registry);
        Ok(Storage {
            engine: register.add(IntGaugeVec::new(
                Opts::new("bareboat_storage_info", "The storage engine; always 1."),
                &["engine"],
            )?)?,
            appends: register.add(Timed::new(
                "bareboat_storage_append_duration_seconds",
                "How long appends to the log took, in seconds, also those that failed.",
            )?)?,
            append_results: register.add(IntCounterVec::new(
                Opts::new(
                    "bareboat_storage_appends_total",
                    "Appends to the log, by result.",
                ),
                &["result"],
            )?)?,
            held_appends: register.counter(
                "bareboat_storage_held_appends_total",
                "Appends that kept other servers out, after too many of them were faster.",
            )?,
            records: register.counter(
                "bareboat_storage_appended_records_total",
                "Records that this server added to the log.",
            )?,
            resolutions: register.add(IntCounterVec::new(
                Opts::new(
                    "bareboat_storage_unknown_outcomes_resolved_total",
                    "Appends with an unknown outcome that is known since, by what became of them.",
                ),
                &["result"],
            )?)?,
            unresolved: register.gauge(
                "bareboat_storage_unresolved_appends",
                "Appends whose outcome is not known now.",
            )?,
            catch_ups: register.counter(
                "bareboat_storage_catch_ups_total",
                "How often writes of other servers were taken in.",
            )?,
            followed_records: register.counter(
                "bareboat_storage_followed_records_total",
                "Records of other servers that were taken in.",
            )?,
            reloads: register.counter(
                "bareboat_storage_reloads_total",
                "How often everything was loaded again, because the log had another history.",
            )?,
            barriers: register.add(Timed::new(
                "bareboat_storage_barrier_duration_seconds",
                "How long the freshness barrier took to read the end of the log, in seconds.",
            )?)?,
            barrier_reads: register.counter(
                "bareboat_storage_barrier_reads_total",
                "Reads that waited for the freshness barrier; many share one.",
            )?,
            barrier_failures: register.counter(
                "bareboat_storage_barrier_failures_total",
                "How often the freshness barrier could not read the end of the log.",
            )?,
            behind: register.gauge(
                "bareboat_storage_behind_revisions",
                "Revisions that are in the log and not visible here yet.",
            )?,
            freshness_age: register.add(Gauge::new(
                "bareboat_storage_freshness_age_seconds",
                "Seconds since it was last proven that nothing of other servers is missing.",
            )?)?,
            epoch: register.gauge("bareboat_storage_epoch", "The epoch of the log.")?,
            floor_age: register.add(Gauge::new(
                "bareboat_storage_floor_age_seconds",
                "Age of the oldest change that the history has, in seconds.",
            )?)?,
            free_bytes: register.gauge(
                "bareboat_storage_free_bytes",
                "Unused bytes within the size of the database.",
            )?,
            available_bytes: register.add(IntGaugeVec::new(
                Opts::new(
                    "bareboat_storage_available_bytes",
                    "Bytes by which the database can still grow, if known.",
                ),
                &[],
            )?)?,
            clock_difference: register.add(GaugeVec::new(
                Opts::new(
                    "bareboat_storage_clock_difference_seconds",
                    "By how much the clock of the database is ahead of this machine's, if known.",
                ),
                &[],
            )?)?,
            connections_opened: register.counter(
                "bareboat_storage_connections_opened_total",
                "Connections made to the database.",
            )?,
            connections_lost: register.counter(
                "bareboat_storage_connections_lost_total",
                "Connections to the database that were lost.",
            )?,
            connections_failed: register.counter(
                "bareboat_storage_connection_failures_total",
                "Tries to connect to the database that failed.",
            )?,
        })
    }

    pub(super) fn set(&self, stats: &StoreStats) {
        let StoreStats {
            activity, backend, ..
        } = stats;
        self.engine.reset();
        let engine = if backend.engine.is_empty() {
            "other"
        } else {
            backend.engine
        };
        self.engine.with_label_values(&[engine]).set(1);
        self.appends.set(activity.appends);
        for (result, count) in AppendResult::ALL.iter().zip(activity.append_results) {
            put(
                &self.append_results.with_label_values(&[result.name()]),
                count,
            );
        }
        for (result, count) in Resolution::ALL.iter().zip(activity.resolutions) {
            put(&self.resolutions.with_label_values(&[result.name()]), count);
        }
        put(&self.held_appends, activity.held_appends);
        put(&self.records, activity.records);
        self.unresolved.set(i64::from(activity.is_unresolved));
        put(&self.catch_ups, activity.catch_ups);
        put(&self.followed_records, activity.followed_records);
        put(&self.reloads, activity.reloads);
        self.barriers.set(activity.barriers);
        put(&self.barrier_reads, activity.barrier_reads);
        put(&self.barrier_failures, activity.barrier_failures);
        self.behind.set(signed(activity.behind));
        self.freshness_age.set(stats.unproven_for.as_secs_f64());
        self.epoch.set(signed(activity.epoch));
        self.floor_age.set(activity.floor_age.as_secs_f64());
        self.free_bytes.set(signed(backend.free_bytes));
        self.available_bytes.reset();
        if let Some(bytes) = backend.available_bytes {
            self.available_bytes
                .with_label_values::<&str>(&[])
                .set(signed(bytes));
        }
        self.clock_difference.reset();
        if let Some(millis) = backend.clock_ahead_millis {
            let difference = self.clock_difference.with_label_values::<&str>(&[]);
            difference.set(millis as f64 / 1000.0);
        }
        put(&self.connections_opened, backend.connections.opened);
        put(&self.connections_lost, backend.connections.lost);
        put(&self.connections_failed, backend.connections.failed);
    }
}

/// Sets a counter to what was counted elsewhere.
fn put(counter: &IntCounter, count: u64) {
    counter.reset();
    counter.inc_by(count);
}

struct Register<'a>(&'a Registry);

impl Register<'_> {
    fn add<C: Collector + Clone + 'static>(&self, collector: C) -> Result<C, prometheus::Error> {
        self.0.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.add(IntCounter::new(name, help)?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.add(IntGauge::new(name, help)?)
    }
}

/// A histogram of durations that were counted elsewhere.
#[derive(Clone)]
struct Timed {
    desc: Desc,
    durations: Arc<Mutex<Durations>>,
}

impl Timed {
    fn new(name: &str, help: &str) -> Result<Timed, prometheus::Error> {
        Ok(Timed {
            desc: Desc::new(name.to_owned(), help.to_owned(), Vec::new(), HashMap::new())?,
            durations: Arc::default(),
        })
    }

    fn set(&self, durations: Durations) {
        *self.durations.lock() = durations;
    }
}

impl Collector for Timed {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let durations = *self.durations.lock();
        let mut total = 0;
        let mut buckets = Vec::new();
        for (bound, count) in Durations::BOUNDS.iter().zip(durations.counts) {
            total += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(Duration::from_micros(*bound).as_secs_f64());
            bucket.set_cumulative_count(total);
            buckets.push(bucket);
        }
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(durations.counts.iter().sum());
        histogram.set_sample_sum(durations.sum.as_secs_f64());
        let mut metric = Metric::default();
        metric.set_histogram(histogram);
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(vec![metric]);
        vec![family]
    }
}
