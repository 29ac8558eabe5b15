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
mod tests {
    use super::*;
    use bareboat_storage::{Expect, MemoryBackend, Store, StoreOptions, Write, WriteOp};

    const TTL: Duration = Duration::from_secs(3600);

    fn object(name: &str, time: &str) -> Vec<u8> {
        format!(
            r#"{{"apiVersion":"v1","kind":"Event","metadata":{{"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{{"time":"{time}"}}],"name":"{name}"}}}}"#
        )
        .into_bytes()
    }

    fn store() -> Store {
        Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default())
            .expect("the store opens")
    }

    async fn put(store: &Store, name: &str, time: &str) -> Arc<Entry> {
        let resource = store.resource("core/events");
        let value = object(name, time).into();
        let write = Write {
            resource: resource.clone(),
            key: name.into(),
            expect: Expect::Any,
            change: WriteOp::Put { value, shape: 0 },
            actor: None,
            depends_on: Vec::new(),
        };
        store.commit(write).await.expect("the write succeeds");
        resource.get(name).expect("the object exists")
    }

    fn names(entries: &[Arc<Entry>]) -> Vec<&str> {
        entries.iter().map(|entry| entry.key()).collect()
    }

    #[test]
    fn the_age_counts_from_the_last_change() {
        let entry =
            |time: &str| Entry::new("a".into(), 1, &object("a", time), 0).expect("an object");
        let difference = age(&entry("yesterday")).abs_diff(age(&entry("2020-01-02T00:00:00Z")));
        assert!(difference.abs_diff(Duration::from_secs(86_400)) < Duration::from_secs(600));
        assert_eq!(age(&entry("2999-01-01T00:00:00Z")), Duration::ZERO);
    }

    #[test]
    fn the_age_is_never_overestimated() {
        let changed = jiff::Timestamp::now();
        let second = changed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let entry = Entry::new("a".into(), 1, &object("a", &second), 0).expect("an object");
        let estimated = age(&entry);
        let passed = jiff::Timestamp::now().duration_since(changed);
        assert!(
            estimated <= Duration::try_from(passed).expect("time passes"),
            "{estimated:?}"
        );
    }

    #[tokio::test]
    async fn objects_expire_in_the_order_of_their_last_changes() {
        let store = store();
        for (name, time) in [
            ("a", "2020-03-01"),
            ("b", "2020-02-01"),
            ("c", "2020-01-02"),
        ] {
            put(&store, name, &format!("{time}T00:00:00Z")).await;
        }
        let now = Instant::now();
        let resource = store.resource("core/events");
        let mut deadlines = Deadlines::of_all(resource, TTL, |entry| match entry.key() {
            "a" => Duration::from_secs(10),
            "b" => Duration::from_secs(30),
            _ => Duration::from_secs(20),
        });
        assert!(deadlines.pop_due(now, 9).is_empty());
        let changed = put(&store, "c", "2020-04-01T00:00:00Z").await;
        assert_eq!(
            deadlines.push(&changed, now),
            None,
            "the list was not empty"
        );
        assert_eq!(names(&deadlines.pop_due(now + TTL * 2, 1)), ["b"]);
        assert_eq!(names(&deadlines.pop_due(now + TTL * 2, 9)), ["a", "c"]);
        assert_eq!(deadlines.next(), None);
        assert!(deadlines.push(&changed, now).is_some());
    }

    #[tokio::test]
    async fn an_object_that_changes_often_has_few_deadlines() {
        let store = store();
        let mut deadlines = Deadlines::of_all(store.resource("core/events"), TTL, age);
        for _ in 0..1000 {
            let changed = put(&store, "busy", "2020-01-01T00:00:00Z").await;
            deadlines.push(&changed, Instant::now());
            assert!(deadlines.list.len() <= TOLERATED + 3);
        }
        assert_eq!(
            names(&deadlines.pop_due(Instant::now() + TTL * 2, 9)),
            ["busy"]
        );
    }
}
