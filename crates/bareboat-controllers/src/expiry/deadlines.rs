//! The deadlines of all objects of a kind, in order.

use bareboat_storage::{Entry, Resource};
use memchr::memmem;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many outdated deadlines are kept beyond those of the objects that exist.
const TOLERATED: usize = 64;

/// The deadlines of all objects of a kind, in order.
pub(super) struct Deadlines {
    resource: Arc<Resource>,
    ttl: Duration,
    list: VecDeque<Deadline>,
}

/// When an object expires, unless it changes before.
struct Deadline {
    due: Instant,
    key: Arc<str>,
    revision: u64,
}

impl Deadlines {
    /// The deadlines of all objects of a resource, given how long ago an object was last changed.
    pub(super) fn of_all(
        resource: Arc<Resource>,
        ttl: Duration,
        age: impl Fn(&Entry) -> Duration,
    ) -> Deadlines {
        let now = Instant::now();
        let deadline = |entry: &Arc<Entry>| Deadline {
            due: now + ttl.saturating_sub(age(entry)),
            key: entry.shared_key().clone(),
            revision: entry.revision(),
        };
        let mut list: Vec<Deadline> = resource.snapshot().range("", None).map(deadline).collect();
        list.sort_by_key(|deadline| deadline.due);
        Deadlines {
            resource,
            ttl,
            list: list.into(),
        }
    }

    /// Adds an object that was changed now. Returns its deadline if the list was empty.
    pub(super) fn push(&mut self, entry: &Entry, now: Instant) -> Option<Instant> {
        // Objects that change often would fill the list with outdated deadlines.
        if self.list.len() >= 2 * self.resource.len() + TOLERATED {
            let resource = &self.resource;
            self.list
                .retain(|deadline| deadline.entry(resource).is_some());
        }
        let due = now + self.ttl;
        let first = self.list.is_empty();
        self.list.push_back(Deadline {
            due,
            key: entry.shared_key().clone(),
            revision: entry.revision(),
        });
        first.then_some(due)
    }

    /// Removes deadlines that have passed and returns their objects, up to a number of them.
    pub(super) fn pop_due(&mut self, now: Instant, at_most: usize) -> Vec<Arc<Entry>> {
        let mut due = Vec::new();
        while due.len() < at_most && self.next().is_some_and(|first| first <= now) {
            let first = self.list.pop_front();
            due.extend(first.and_then(|first| first.entry(&self.resource)));
        }
        due
    }

    /// The first deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.list.front().map(|first| first.due)
    }
}

impl Deadline {
    /// The object, if it has not changed.
    fn entry(&self, resource: &Resource) -> Option<Arc<Entry>> {
        let live = resource.get(&self.key)?;
        (live.revision() == self.revision).then_some(live)
    }
}

/// Timestamps in metadata have whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// How long ago an object was last changed, at least, by the timestamps in its metadata. The object is not parsed.
pub(super) fn age(entry: &Entry) -> Duration {
    let json = entry.json();
    let texts = |member: &'static [u8]| {
        memmem::find_iter(json, member).filter_map(move |at| {
            let from = at + member.len();
            let length = memchr::memchr(b'"', &json[from..])?;
            std::str::from_utf8(&json[from..from + length]).ok()
        })
    };
    // The first timestamp is that of the object, the others are those of its managers. A timestamp in another part of the
    // object could only make it live longer.
    let times = texts(br#""creationTimestamp":""#).chain(texts(br#""time":""#));
    let times = times.filter_map(|time| time.parse::<jiff::Timestamp>().ok());
    times.max().map_or(Duration::ZERO, |time| {
        let passed = jiff::Timestamp::now().duration_since(time);
        let passed = Duration::try_from(passed).unwrap_or(Duration::ZERO);
        // The change may have been at the end of its second. An object must not expire early.
        passed.saturating_sub(SECOND)
    })
}

#[cfg(test)]
mod tests;
