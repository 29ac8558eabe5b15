//! Counters and histograms in the form dashboards of Kubernetes expect; no labels a user can invent.

use crate::request::info::RequestInfo;
use http::StatusCode;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Upper bounds of the duration buckets in seconds.
const BUCKETS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 5.0, 20.0, 60.0,
];
/// So many series and no more, whatever clients ask for.
const MOST_SERIES: usize = 10_000;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Label {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    code: u16,
}

#[derive(Default)]
struct Series {
    count: AtomicU64,
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len()],
}

/// What a server counts about its requests.
#[derive(Default)]
pub(crate) struct Metrics {
    series: RwLock<HashMap<u64, (Label, Series)>>,
}

impl Metrics {
    /// Counts one answered request. Only what was really served gets a series of its own.
    pub(crate) fn observe(&self, info: Option<&RequestInfo>, code: StatusCode, started: Instant) {
        let Some(info) = info else {
            return;
        };
        // Clients may invent any resource or path; those that do not exist share one series.
        let known = info.is_resource
            && code != StatusCode::NOT_FOUND
            && code != StatusCode::UNAUTHORIZED
            && code != StatusCode::FORBIDDEN;
        let hash = {
            use std::hash::{BuildHasher, Hash, Hasher};
            let mut hasher =
                std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().build_hasher();
            (known, info.verb.as_str(), code.as_u16(), scope(info)).hash(&mut hasher);
            if known {
                (
                    info.group.as_str(),
                    info.version.as_str(),
                    info.resource.as_str(),
                    info.subresource.as_str(),
                )
                    .hash(&mut hasher);
            }
            hasher.finish()
        };
        let elapsed = started.elapsed();
        if let Some((_, series)) = self.series.read().get(&hash) {
            series.add(elapsed);
            return;
        }
        let mut all = self.series.write();
        if all.len() >= MOST_SERIES {
            return;
        }
        let text = |text: &str| {
            if known {
                text.to_owned()
            } else {
                String::new()
            }
        };
        let label = Label {
            verb: verb(&info.verb),
            group: text(&info.group),
            version: text(&info.version),
            resource: text(&info.resource),
            subresource: text(&info.subresource),
            scope: scope(info),
            code: code.as_u16(),
        };
        let (_, series) = all
            .entry(hash)
            .or_insert_with(|| (label, Series::default()));
        series.add(elapsed);
    }

    /// The text a Prometheus server reads.
    pub(crate) fn print(&self, extra: &[(&str, &str, f64)]) -> String {
        let mut out = String::with_capacity(16 * 1024);
        let all = self.series.read();
        let mut rows: Vec<_> = all.values().collect();
        rows.sort_by(|(a, _), (b, _)| {
            (
                &a.group,
                &a.resource,
                &a.version,
                &a.subresource,
                a.verb,
                a.code,
            )
                .cmp(&(
                    &b.group,
                    &b.resource,
                    &b.version,
                    &b.subresource,
                    b.verb,
                    b.code,
                ))
        });
        out.push_str("# HELP apiserver_request_total Requests by verb, resource and code.\n# TYPE apiserver_request_total counter\n");
        for (label, series) in &rows {
            let count = series.count.load(Ordering::Relaxed);
            let _ = writeln!(
                out,
                "apiserver_request_total{{{}}} {count}",
                label.print(true)
            );
        }
        out.push_str("# HELP apiserver_request_duration_seconds How long requests took.\n# TYPE apiserver_request_duration_seconds histogram\n");
        for (label, series) in rows.iter().filter(|(label, _)| label.verb != "WATCH") {
            let names = label.print(true);
            let mut sum = 0;
            for (bound, bucket) in BUCKETS.iter().zip(&series.buckets) {
                sum += bucket.load(Ordering::Relaxed);
                let _ = writeln!(
                    out,
                    "apiserver_request_duration_seconds_bucket{{{names},le=\"{bound}\"}} {sum}"
                );
            }
            let count = series.count.load(Ordering::Relaxed);
            let seconds = series.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
            let _ = writeln!(
                out,
                "apiserver_request_duration_seconds_bucket{{{names},le=\"+Inf\"}} {count}"
            );
            let _ = writeln!(
                out,
                "apiserver_request_duration_seconds_sum{{{names}}} {seconds}"
            );
            let _ = writeln!(
                out,
                "apiserver_request_duration_seconds_count{{{names}}} {count}"
            );
        }
        for (name, help, value) in extra {
            let _ = writeln!(
                out,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
            );
        }
        out
    }
}

impl Series {
    fn add(&self, elapsed: std::time::Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        let seconds = elapsed.as_secs_f64();
        if let Some(at) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Label {
    fn print(&self, with_code: bool) -> String {
        let mut out = format!(
            "verb=\"{}\",group=\"{}\",version=\"{}\",resource=\"{}\",subresource=\"{}\",scope=\"{}\"",
            self.verb, self.group, self.version, self.resource, self.subresource, self.scope
        );
        if with_code {
            let _ = write!(out, ",code=\"{}\"", self.code);
        }
        out
    }
}

fn verb(verb: &str) -> &'static str {
    match verb {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        _ => "other",
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    if !info.is_resource {
        ""
    } else if !info.name.is_empty() {
        "resource"
    } else if !info.namespace.is_empty() {
        "namespace"
    } else {
        "cluster"
    }
}
