//! Metrics of requests: count, status code, duration, and size of answers.

use super::{Labels, RemoteLabels, Sight, Source};
use crate::kinds::catalog::Table;
use crate::reply::Response;
use crate::reply::body::Meter;
use crate::request::info::RequestInfo;
use ahash::{AHashMap, RandomState};
use bareboat_api::Str;
use http::StatusCode;
use http_body::Body as _;
use parking_lot::RwLock;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Upper bounds of durations in seconds: upstream's, and finer ones below them.
const DURATIONS: [f64; 25] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0,
    6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Upper bounds of durations that service levels are computed from.
const SLI: [f64; 21] = [
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0,
];
/// Upper bounds of sizes in bytes.
const SIZES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Label sets beyond these share those of `resource="other"`.
const MOST_LABEL_SETS: usize = 2_000;
/// Status codes of one label set beyond these are counted as `code="other"`.
const MOST_CODES: usize = 40;

const LABELS: [&str; 7] = [
    "verb",
    "group",
    "version",
    "resource",
    "subresource",
    "scope",
    "component",
];
const LABELS_WITH_DRY_RUN: [&str; 8] = [
    "verb",
    "dry_run",
    "group",
    "version",
    "resource",
    "subresource",
    "scope",
    "component",
];

/// Measurements of requests.
pub(crate) struct Requests {
    families: Families,
    hasher: RandomState,
    /// Label sets by their hash.
    known: RwLock<AHashMap<u64, (Owned, Arc<Series>)>>,
    /// The generation of the catalog at the last removal of label sets of removed kinds.
    swept: AtomicU64,
}

struct Families {
    total: IntCounterVec,
    durations: HistogramVec,
    sli: HistogramVec,
    sizes: HistogramVec,
    long_running: IntGaugeVec,
    terminations: IntCounterVec,
    deprecated: IntGaugeVec,
}

/// An owned label set.
struct Owned {
    verb: &'static str,
    dry_run: &'static str,
    group: Str,
    version: Str,
    resource: Str,
    subresource: Str,
    scope: &'static str,
    component: &'static str,
}

/// The measurements of one label set.
struct Series {
    durations: Histogram,
    sli: Option<Histogram>,
    sizes: Option<Histogram>,
    codes: RwLock<Vec<(u16, IntCounter)>>,
    /// The release that removes this version, empty if unknown; set once a deprecated version was requested.
    deprecated: OnceLock<String>,
}

/// A request that was answered.
pub(crate) struct Answered<'a> {
    pub(crate) sight: Sight,
    pub(crate) info: Option<&'a RequestInfo>,
    /// Set if another server answered it.
    pub(crate) remote: Option<&'a RemoteLabels>,
    pub(crate) started: Instant,
    /// Whether a limit or a deadline of the server ended it.
    pub(crate) terminated: bool,
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Result<Requests, prometheus::Error> {
        let histogram = |name: &str, help: &str, buckets: &[f64], labels: &[&str]| {
            let family = HistogramVec::new(
                HistogramOpts::new(name, help).buckets(buckets.to_vec()),
                labels,
            )?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let family = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let labels: Vec<&str> = labels.iter().copied().chain(["code"]).collect();
            let family = IntCounterVec::new(Opts::new(name, help), &labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let families = Families {
            total: counter(
                "apiserver_request_total",
                "Requests by verb, dry run, group, version, resource, scope, component and status code.",
                &LABELS_WITH_DRY_RUN,
            )?,
            durations: histogram(
                "apiserver_request_duration_seconds",
                "How long requests took, in seconds.",
                &DURATIONS,
                &LABELS_WITH_DRY_RUN,
            )?,
            sli: histogram(
                "apiserver_request_sli_duration_seconds",
                "How long requests took without the time that webhooks took, in seconds.",
                &SLI,
                &LABELS,
            )?,
            sizes: histogram(
                "apiserver_response_sizes",
                "Sizes of the answers to reads, in bytes.",
                &SIZES,
                &LABELS,
            )?,
            long_running: gauge(
                "apiserver_longrunning_requests",
                "Watches and other streams that are open.",
                &LABELS,
            )?,
            terminations: counter(
                "apiserver_request_terminations_total",
                "Requests that a limit or a deadline of the server ended.",
                &LABELS,
            )?,
            deprecated: gauge(
                "apiserver_requested_deprecated_apis",
                "Deprecated versions that were requested.",
                &[
                    "group",
                    "version",
                    "resource",
                    "subresource",
                    "removed_release",
                ],
            )?,
        };
        Ok(Requests {
            families,
            hasher: RandomState::new(),
            known: RwLock::default(),
            swept: AtomicU64::new(0),
        })
    }

    /// Counts one answered request. Bodies that are streams are measured when they end.
    pub(crate) fn observe(&self, table: &Table, answered: &Answered<'_>, response: &mut Response) {
        let code = response.status();
        let refused = matches!(code, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // The target of an unauthenticated or unauthorized request was not looked up.
        let source = match refused {
            true => Source {
                labels: Labels::unrouted(answered.sight, answered.info),
                deprecation: None,
            },
            false => Source::of(table, answered.sight, answered.info, answered.remote),
        };
        let (labels, series) = self.series(table, source.labels);
        series.count(&self.families.total, labels, code);
        if answered.terminated {
            let code = code.as_u16().to_string();
            let values: Vec<&str> = labels.values().into_iter().chain([code.as_str()]).collect();
            self.families.terminations.with_label_values(&values).inc();
        }
        if let Some(text) = source.deprecation.filter(|_| labels.resource != "other") {
            series.deprecated.get_or_init(|| {
                let release = removed_release(text);
                let values = deprecation_values(&labels, release);
                self.families.deprecated.with_label_values(&values).set(1);
                release.to_owned()
            });
        }
        let lasting = matches!(labels.verb, "WATCH" | "CONNECT");
        let streams = response.body().size_hint().exact().is_none();
        if lasting && streams {
            let gauge = self
                .families
                .long_running
                .with_label_values(&labels.values());
            let running = Running::new(gauge, series.clone(), answered.started);
            response.body_mut().measure(Meter::lasting(running));
            return;
        }
        series.took(answered.started);
        match (&series.sizes, response.body().size_hint().exact()) {
            (Some(sizes), Some(size)) => sizes.observe(size as f64),
            (Some(sizes), None) => response.body_mut().measure(Meter::sized(sizes.clone())),
            (None, _) => {}
        }
    }

    /// Returns the measurements of a label set, or of the one that replaces it.
    fn series<'a>(&self, table: &Table, labels: Labels<'a>) -> (Labels<'a>, Arc<Series>) {
        let hash = self.hasher.hash_one(labels);
        if let Some((owned, series)) = self.known.read().get(&hash)
            && owned.labels() == labels
        {
            return (labels, series.clone());
        }
        let mut known = self.known.write();
        if known.len() >= MOST_LABEL_SETS {
            self.sweep(&mut known, table);
        }
        let full = known.len() >= MOST_LABEL_SETS && !labels.resource.is_empty();
        let clash = known
            .get(&hash)
            .is_some_and(|(owned, _)| owned.labels() != labels);
        // There are few replacement labels, so they always find room.
        let labels = match full || clash {
            true => labels.overflow(),
            false => labels,
        };
        let hash = self.hasher.hash_one(labels);
        let (_, series) = known.entry(hash).or_insert_with(|| {
            let series = Series::new(&self.families, &labels);
            (Owned::of(&labels), Arc::new(series))
        });
        (labels, series.clone())
    }

    /// Drops the label sets of kinds and versions that are no longer served, at most once for each table of kinds.
    fn sweep(&self, known: &mut AHashMap<u64, (Owned, Arc<Series>)>, table: &Table) {
        let generation = table.generation();
        if self.swept.swap(generation, Ordering::Relaxed) == generation {
            return;
        }
        known.retain(|_, (owned, series)| {
            let served = owned.resource.is_empty()
                || owned.resource == "other"
                || table
                    .find(&owned.group, &owned.resource)
                    .is_some_and(|serving| {
                        let version = serving.kind().version(&owned.version);
                        version.is_some_and(|version| version.served)
                    });
            if !served {
                self.families.forget(&owned.labels(), series);
            }
            served
        });
    }
}

impl Families {
    /// Drops the measurements of a label set. A missing one is not an error.
    fn forget(&self, labels: &Labels<'_>, series: &Series) {
        let with_dry_run = labels.values_with_dry_run();
        let _ = self.durations.remove_label_values(&with_dry_run);
        let _ = self.sli.remove_label_values(&labels.values());
        let _ = self.sizes.remove_label_values(&labels.values());
        let _ = self.long_running.remove_label_values(&labels.values());
        if let Some(release) = series.deprecated.get() {
            let values = deprecation_values(labels, release);
            let _ = self.deprecated.remove_label_values(&values);
        }
        for (code, _) in series.codes.read().iter() {
            let code = code_label(*code);
            let with_code: Vec<&str> = with_dry_run.into_iter().chain([code.as_str()]).collect();
            let _ = self.total.remove_label_values(&with_code);
            let with_code: Vec<&str> = labels.values().into_iter().chain([code.as_str()]).collect();
            let _ = self.terminations.remove_label_values(&with_code);
        }
    }
}

impl Owned {
    fn of(labels: &Labels<'_>) -> Owned {
        Owned {
            verb: labels.verb,
            dry_run: labels.dry_run,
            group: Str::new(labels.group),
            version: Str::new(labels.version),
            resource: Str::new(labels.resource),
            subresource: Str::new(labels.subresource),
            scope: labels.scope,
            component: labels.component,
        }
    }

    fn labels(&self) -> Labels<'_> {
        Labels {
            verb: self.verb,
            dry_run: self.dry_run,
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            scope: self.scope,
            component: self.component,
        }
    }
}

/// Values in the order of `group, version, resource, subresource, removed_release`.
fn deprecation_values<'a>(labels: &Labels<'a>, release: &'a str) -> [&'a str; 5] {
    [
        labels.group,
        labels.version,
        labels.resource,
        labels.subresource,
        release,
    ]
}

/// The code that replaces all further ones of a label set.
const OTHER_CODE: u16 = 0;

fn code_label(code: u16) -> String {
    match code {
        OTHER_CODE => "other".to_owned(),
        code => code.to_string(),
    }
}

impl Series {
    fn new(families: &Families, labels: &Labels<'_>) -> Series {
        let read = matches!(labels.verb, "GET" | "LIST");
        Series {
            durations: families
                .durations
                .with_label_values(&labels.values_with_dry_run()),
            sli: (labels.dry_run.is_empty())
                .then(|| families.sli.with_label_values(&labels.values())),
            sizes: read.then(|| families.sizes.with_label_values(&labels.values())),
            codes: RwLock::default(),
            deprecated: OnceLock::new(),
        }
    }

    fn took(&self, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        self.durations.observe(seconds);
        if let Some(sli) = &self.sli {
            sli.observe(seconds);
        }
    }

    fn count(&self, total: &IntCounterVec, labels: Labels<'_>, code: StatusCode) {
        let code = code.as_u16();
        if let Some((_, counter)) = self.codes.read().iter().find(|(known, _)| *known == code) {
            counter.inc();
            return;
        }
        let mut codes = self.codes.write();
        let code = if codes.len() < MOST_CODES {
            code
        } else {
            OTHER_CODE
        };
        let at = codes.iter().position(|(known, _)| *known == code);
        let at = at.unwrap_or_else(|| {
            let label = code_label(code);
            let values = labels.values_with_dry_run();
            let values: Vec<&str> = values.into_iter().chain([label.as_str()]).collect();
            codes.push((code, total.with_label_values(&values)));
            codes.len() - 1
        });
        codes[at].1.inc();
    }
}

/// A request that continues after its answer started. It ends when this is dropped.
pub(crate) struct Running {
    gauge: IntGauge,
    series: Arc<Series>,
    started: Instant,
}

impl Running {
    fn new(gauge: IntGauge, series: Arc<Series>, started: Instant) -> Running {
        gauge.inc();
        Running {
            gauge,
            series,
            started,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gauge.dec();
        self.series.took(self.started);
    }
}

/// Returns the release that removes a version, from its deprecation text: `unavailable in v1.25+`.
fn removed_release(deprecation: &str) -> &str {
    deprecation
        .split_once("unavailable in v")
        .and_then(|(_, rest)| rest.split_once('+'))
        .map(|(release, _)| release)
        // A definition may have any text here; only a number becomes a label.
        .filter(|release| {
            release
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::removed_release;

    #[test]
    fn only_a_release_is_read_from_a_deprecation() {
        for (text, release) in [
            (
                "batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1",
                "1.25",
            ),
            ("v1 ComponentStatus is deprecated in v1.19+", ""),
            ("unavailable in v\"} 1\nforged 1+", ""),
        ] {
            assert_eq!(removed_release(text), release, "{text}");
        }
    }
}
