//! Metrics of requests: count, status code, duration, and size of answers.

mod label_set;

use super::families::{Family, Values, descriptions};
use super::{Labels, RemoteLabels, Sight, Source};
use crate::kinds::catalog::Table;
use crate::reply::Response;
use crate::reply::body::Meter;
use crate::request::info::RequestInfo;
use ahash::{AHashMap, RandomState};
use arc_swap::ArcSwap;
use bareboat_api::kind::Kind;
use http::StatusCode;
use http_body::Body as _;
use label_set::{LabelSet, code_label};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Durations that service levels are computed from have these bounds, without the first ones.
const FIRST_OF_SLI: usize = 4;
/// Label sets beyond these share those of `resource="other"`.
const MOST_LABEL_SETS: usize = 2_000;
const LABELS: &[&str] = &[
    "verb",
    "group",
    "version",
    "resource",
    "subresource",
    "scope",
    "component",
];
const PREFIX: &str = "apiserver_";
const TOTAL: Family = (
    "request_total",
    "Requests by verb, dry run, group, version, resource, scope, component and status code.",
    &[
        "verb",
        "dry_run",
        "group",
        "version",
        "resource",
        "subresource",
        "scope",
        "component",
        "code",
    ],
);
const TOOK: Family = (
    "request_duration_seconds",
    "How long requests took, in seconds.",
    &[
        "verb",
        "dry_run",
        "group",
        "version",
        "resource",
        "subresource",
        "scope",
        "component",
    ],
);
const SLI: Family = (
    "request_sli_duration_seconds",
    "How long requests took without the time that webhooks took, in seconds.",
    LABELS,
);
const SIZE: Family = (
    "response_sizes",
    "Sizes of the answers to reads, in bytes.",
    LABELS,
);

/// Measurements of requests.
pub(crate) struct Requests(Arc<Known>);

/// The measured label sets, and families of what is rare.
///
/// The sets are read without a lock: their map is immutable and replaced when a label set is added.
struct Known {
    hasher: RandomState,
    /// Label sets by their hash.
    sets: ArcSwap<LabelSets>,
    /// Held while the map is replaced.
    adding: Mutex<()>,
    /// The generation of the catalog at the last removal of label sets of removed kinds.
    swept: AtomicU64,
    long_running: IntGaugeVec,
    terminations: IntCounterVec,
    deprecated: IntGaugeVec,
    descriptions: Vec<Desc>,
}

type LabelSets = AHashMap<u64, Arc<LabelSet>>;

/// A request that was answered.
pub(crate) struct Answered<'a> {
    pub(crate) sight: Sight,
    pub(crate) info: Option<&'a RequestInfo>,
    /// The kind that it was about, if it was looked up.
    pub(crate) kind: Option<&'a Arc<Kind>>,
    /// Set if another server answered it.
    pub(crate) remote: Option<&'a RemoteLabels>,
    pub(crate) started: Instant,
    pub(crate) took: Duration,
    /// Whether a limit or a deadline of the server ended it.
    pub(crate) terminated: bool,
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Result<Requests, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let family = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let with_code: Vec<&str> = LABELS.iter().copied().chain(["code"]).collect();
        let terminations = IntCounterVec::new(
            Opts::new(
                "apiserver_request_terminations_total",
                "Requests that a limit or a deadline of the server ended.",
            ),
            &with_code,
        )?;
        registry.register(Box::new(terminations.clone()))?;
        let known = Arc::new(Known {
            hasher: RandomState::new(),
            sets: ArcSwap::default(),
            adding: Mutex::default(),
            swept: AtomicU64::new(0),
            long_running: gauge(
                "apiserver_longrunning_requests",
                "Watches and other streams that are open.",
                LABELS,
            )?,
            terminations,
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
            descriptions: descriptions(PREFIX, &[TOTAL, TOOK, SLI, SIZE]),
        });
        registry.register(Box::new(Printed(known.clone())))?;
        Ok(Requests(known))
    }

    /// Counts one answered request. Bodies that are streams are measured when they end.
    pub(crate) fn observe(&self, table: &Table, answered: &Answered<'_>, response: &mut Response) {
        let known = &*self.0;
        let code = response.status();
        let refused = matches!(code, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // The target of an unauthenticated or unauthorized request was not looked up.
        let source = match refused {
            true => Source {
                labels: Labels::unrouted(answered.sight, answered.info),
                deprecation: None,
            },
            false => {
                let Answered {
                    kind,
                    sight,
                    info,
                    remote,
                    ..
                } = *answered;
                Source::of(table, kind, sight, info, remote)
            }
        };
        let sets = known.sets.load();
        let added;
        let set = match known.find(&sets, source.labels) {
            Some(set) => set,
            None => {
                added = known.add(table, source.labels);
                &added
            }
        };
        set.codes.count(code.as_u16());
        if answered.terminated {
            let code = code.as_u16().to_string();
            let labels = set.labels.labels();
            let values: Vec<&str> = labels.values().into_iter().chain([code.as_str()]).collect();
            known.terminations.with_label_values(&values).inc();
        }
        if let Some(text) = source
            .deprecation
            .filter(|_| set.labels.resource != "other")
        {
            set.deprecated.get_or_init(|| {
                let release = removed_release(text);
                let labels = set.labels.labels();
                let values = deprecation_values(&labels, release);
                known.deprecated.with_label_values(&values).set(1);
                release.to_owned()
            });
        }
        let size = response.body().size_hint().exact();
        if size.is_none() && matches!(set.labels.verb, "WATCH" | "CONNECT") {
            let labels = set.labels.labels();
            let gauge = known.long_running.with_label_values(&labels.values());
            let running = Running::new(gauge, set.clone(), answered.started);
            response.body_mut().measure(Meter::lasting(running));
            return;
        }
        set.took(answered.took);
        match (&set.sizes, size) {
            (Some(sizes), Some(size)) => sizes.observe(size),
            (Some(sizes), None) => response.body_mut().measure(Meter::sized(sizes.clone())),
            (None, _) => {}
        }
    }
}

impl Known {
    /// Returns the hash of a label set. Some labels have few values of different lengths.
    fn hash(&self, labels: &Labels<'_>) -> u64 {
        let lengths = [labels.dry_run, labels.scope, labels.component].map(|text| text.len() as u8);
        self.hasher.hash_one((
            labels.verb,
            labels.group,
            labels.version,
            labels.resource,
            labels.subresource,
            lengths,
        ))
    }

    fn find<'a>(&self, sets: &'a LabelSets, labels: Labels<'_>) -> Option<&'a Arc<LabelSet>> {
        let set = sets.get(&self.hash(&labels))?;
        (set.labels.labels() == labels).then_some(set)
    }

    /// Returns the measurements of a label set that was not known, or of the one that replaces it.
    fn add(&self, table: &Table, labels: Labels<'_>) -> Arc<LabelSet> {
        let _adding = self.adding.lock();
        let mut sets = LabelSets::clone(&self.sets.load());
        if let Some(set) = self.find(&sets, labels) {
            return set.clone();
        }
        let swept = sets.len() >= MOST_LABEL_SETS && self.sweep(&mut sets, table);
        let full = sets.len() >= MOST_LABEL_SETS && !labels.resource.is_empty();
        // There are few replacement labels, so they always find room.
        let labels = match full || sets.contains_key(&self.hash(&labels)) {
            true => labels.overflow(),
            false => labels,
        };
        let hash = self.hash(&labels);
        let known = sets.get(&hash).cloned();
        let set = known.clone().unwrap_or_else(|| {
            let set = Arc::new(LabelSet::new(&labels));
            sets.insert(hash, set.clone());
            set
        });
        if swept || known.is_none() {
            self.sets.store(Arc::new(sets));
        }
        set
    }

    /// Drops the label sets of kinds and versions that are no longer served, at most once for each table of kinds. Returns
    /// whether it looked.
    fn sweep(&self, sets: &mut LabelSets, table: &Table) -> bool {
        let generation = table.generation();
        if self.swept.swap(generation, Ordering::Relaxed) == generation {
            return false;
        }
        sets.retain(|_, set| {
            let labels = &set.labels;
            let served = labels.resource.is_empty()
                || labels.resource == "other"
                || table
                    .find(&labels.group, &labels.resource)
                    .is_some_and(|serving| {
                        let version = serving.kind().version(&labels.version);
                        version.is_some_and(|version| version.served)
                    });
            if !served {
                self.forget(set);
            }
            served
        });
        true
    }

    /// Drops the rare measurements of a label set. A missing one is not an error.
    fn forget(&self, set: &LabelSet) {
        let labels = set.labels.labels();
        let _ = self.long_running.remove_label_values(&labels.values());
        if let Some(release) = set.deprecated.get() {
            let values = deprecation_values(&labels, release);
            let _ = self.deprecated.remove_label_values(&values);
        }
        for (code, _) in set.codes.all() {
            let code = code_label(code);
            let with_code: Vec<&str> = labels.values().into_iter().chain([code.as_str()]).collect();
            let _ = self.terminations.remove_label_values(&with_code);
        }
    }
}

/// Prints the measurements.
struct Printed(Arc<Known>);

impl Collector for Printed {
    fn desc(&self) -> Vec<&Desc> {
        self.0.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut values = Values::default();
        for set in self.0.sets.load().values() {
            let labels = set.labels.labels();
            let with_dry_run = labels.values_with_dry_run();
            for (code, count) in set.codes.all() {
                let code = code_label(code);
                let with_code: Vec<&str> =
                    with_dry_run.into_iter().chain([code.as_str()]).collect();
                values.counter(TOTAL, &with_code, count);
            }
            values.histogram(TOOK, &with_dry_run, set.durations.print());
            // A dry run does not count towards service levels.
            if labels.dry_run.is_empty() {
                let durations = set.durations.print_from(FIRST_OF_SLI);
                values.histogram(SLI, &labels.values(), durations);
            }
            if let Some(sizes) = &set.sizes {
                values.histogram(SIZE, &labels.values(), sizes.print());
            }
        }
        values.print(PREFIX)
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

/// A request that continues after its answer started. It ends when this is dropped.
pub(crate) struct Running {
    gauge: IntGauge,
    set: Arc<LabelSet>,
    started: Instant,
}

impl Running {
    fn new(gauge: IntGauge, set: Arc<LabelSet>, started: Instant) -> Running {
        gauge.inc();
        Running {
            gauge,
            set,
            started,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gauge.dec();
        self.set.took(self.started.elapsed());
    }
}

/// Returns the release that removes a version, from its deprecation text: `unavailable in v1.25+`.
pub(crate) fn removed_release(deprecation: &str) -> &str {
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
