//! The measurements of one label set.

use super::super::{Histogram, Labels};
use bareboat_api::Str;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Upper bounds of durations in seconds: upstream's, and finer ones below them.
const DURATIONS: &[f64] = &[
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0,
    6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Upper bounds of sizes in bytes.
const SIZES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Status codes of one label set beyond these are counted as `code="other"`.
const MOST_CODES: usize = 40;

/// A label set with its measurements.
pub(super) struct LabelSet {
    pub(super) labels: Owned,
    pub(super) durations: Histogram,
    pub(super) sizes: Option<Arc<Histogram>>,
    pub(super) codes: Codes,
    /// The release that removes this version, empty if unknown; set once a deprecated version was requested.
    pub(super) deprecated: OnceLock<String>,
}

/// An owned label set.
pub(super) struct Owned {
    pub(super) verb: &'static str,
    dry_run: &'static str,
    pub(super) group: Str,
    pub(super) version: Str,
    pub(super) resource: Str,
    subresource: Str,
    scope: &'static str,
    component: &'static str,
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

    pub(super) fn labels(&self) -> Labels<'_> {
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

/// The code that replaces all further ones of a label set.
const OTHER_CODE: u16 = 0;

/// Returns the label of a code.
pub(super) fn code_label(code: u16) -> String {
    match code {
        OTHER_CODE => "other".to_owned(),
        code => code.to_string(),
    }
}

impl LabelSet {
    pub(super) fn new(labels: &Labels<'_>) -> LabelSet {
        let read = matches!(labels.verb, "GET" | "LIST");
        LabelSet {
            labels: Owned::of(labels),
            durations: Histogram::new(DURATIONS, 1e9),
            sizes: read.then(|| Arc::new(Histogram::new(SIZES, 1.0))),
            codes: Codes::default(),
            deprecated: OnceLock::new(),
        }
    }

    pub(super) fn took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.durations.observe(nanos);
    }
}

/// Counts of answers by status code. Most label sets have one code, which is counted without a lock.
#[derive(Default)]
pub(super) struct Codes {
    first: OnceLock<u16>,
    count: AtomicU64,
    others: Mutex<Vec<(u16, u64)>>,
}

impl Codes {
    pub(super) fn count(&self, code: u16) {
        if *self.first.get_or_init(|| code) == code {
            self.count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut others = self.others.lock();
        let find =
            |others: &[(u16, u64)], code| others.iter().position(|(known, _)| *known == code);
        let code = match find(&others, code) {
            None if others.len() >= MOST_CODES => OTHER_CODE,
            _ => code,
        };
        match find(&others, code) {
            Some(at) => others[at].1 += 1,
            None => others.push((code, 1)),
        }
    }

    pub(super) fn all(&self) -> Vec<(u16, u64)> {
        let first = self.first.get().copied();
        let first = first.map(|code| (code, self.count.load(Ordering::Relaxed)));
        first
            .into_iter()
            .chain(self.others.lock().iter().copied())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_beyond_the_limit_share_a_count() {
        let codes = Codes::default();
        for code in 200..300 {
            codes.count(code);
            codes.count(200);
        }
        let all = codes.all();
        assert_eq!(all.len(), MOST_CODES + 2);
        assert_eq!(all[0], (200, 101));
        assert_eq!(all[1], (201, 1));
        assert_eq!(all[MOST_CODES + 1], (OTHER_CODE, 59));
    }
}
