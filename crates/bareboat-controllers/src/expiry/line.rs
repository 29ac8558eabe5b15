//! The objects of a kind in the order in which they end.

use bareboat_storage::{Entry, Resource};
use memchr::memmem;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many that stand in line for nothing do not matter.
const TOLERATED: usize = 64;

/// The objects of a kind in the order in which they end.
pub(super) struct Line {
    resource: Arc<Resource>,
    lasts: Duration,
    places: VecDeque<Place>,
}

/// An object in the state it had when its time began.
struct Place {
    due: Instant,
    key: Arc<str>,
    revision: u64,
}

impl Line {
    /// The line of everything there is, given how long ago an object was changed.
    pub(super) fn of_all(
        resource: Arc<Resource>,
        lasts: Duration,
        age: impl Fn(&Entry) -> Duration,
    ) -> Line {
        let now = Instant::now();
        let place = |entry: &Arc<Entry>| Place {
            due: now + lasts.saturating_sub(age(entry)),
            key: entry.shared_key().clone(),
            revision: entry.revision(),
        };
        let mut places: Vec<Place> = resource.snapshot().range("", None).map(place).collect();
        places.sort_by_key(|place| place.due);
        Line {
            resource,
            lasts,
            places: places.into(),
        }
    }

    /// An object whose time begins now; tells when the line moves, if nobody stood in it before.
    pub(super) fn join(&mut self, entry: &Entry, now: Instant) -> Option<Instant> {
        // Objects that change often would fill it with places nobody stands at.
        if self.places.len() >= 2 * self.resource.len() + TOLERATED {
            let resource = &self.resource;
            self.places.retain(|place| place.entry(resource).is_some());
        }
        let due = now + self.lasts;
        let first = self.places.is_empty();
        self.places.push_back(Place {
            due,
            key: entry.shared_key().clone(),
            revision: entry.revision(),
        });
        first.then_some(due)
    }

    /// Takes out objects whose time is over, at most so many.
    pub(super) fn leave(&mut self, now: Instant, at_most: usize) -> Vec<Arc<Entry>> {
        let mut over = Vec::new();
        while over.len() < at_most && self.next().is_some_and(|due| due <= now) {
            let place = self.places.pop_front();
            over.extend(place.and_then(|place| place.entry(&self.resource)));
        }
        over
    }

    /// When the first one ends.
    pub(super) fn next(&self) -> Option<Instant> {
        self.places.front().map(|place| place.due)
    }
}

impl Place {
    /// The object, if it has not changed.
    fn entry(&self, resource: &Resource) -> Option<Arc<Entry>> {
        let live = resource.get(&self.key)?;
        (live.revision() == self.revision).then_some(live)
    }
}

/// Metadata tell times in whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// How long ago an object was last changed at least, as far as its metadata tell; found without reading all of it.
pub(super) fn age(entry: &Entry) -> Duration {
    let json = entry.json();
    let texts = |member: &'static [u8]| {
        memmem::find_iter(json, member).filter_map(move |at| {
            let from = at + member.len();
            let length = memchr::memchr(b'"', &json[from..])?;
            std::str::from_utf8(&json[from..from + length]).ok()
        })
    };
    // The first is that of the object, the others are those of its managers, or at worst make it last longer.
    let times = texts(br#""creationTimestamp":""#).chain(texts(br#""time":""#));
    let times = times.filter_map(|time| time.parse::<jiff::Timestamp>().ok());
    times.max().map_or(Duration::ZERO, |time| {
        let passed = jiff::Timestamp::now().duration_since(time);
        let passed = Duration::try_from(passed).unwrap_or(Duration::ZERO);
        // It may have been at the end of its second: nothing ends before its time.
        passed.saturating_sub(SECOND)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_storage::{Change, Expect, MemoryBackend, Store, StoreOptions, Write};

    const LASTS: Duration = Duration::from_secs(3600);

    fn object(name: &str, time: &str) -> Vec<u8> {
        format!(
            r#"{{"apiVersion":"v1","kind":"Event","metadata":{{"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{{"time":"{time}"}}],"name":"{name}"}}}}"#
        )
        .into_bytes()
    }

    fn store() -> Store {
        Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).expect("it is opened")
    }

    async fn put(store: &Store, name: &str, time: &str) -> Arc<Entry> {
        let resource = store.resource("core/events");
        let value = object(name, time).into();
        let write = Write {
            resource: resource.clone(),
            key: name.into(),
            expect: Expect::Any,
            change: Change::Put { value, shape: 0 },
        };
        store.commit(write).await.expect("it is written");
        resource.get(name).expect("it is there")
    }

    fn names(entries: &[Arc<Entry>]) -> Vec<&str> {
        entries.iter().map(|entry| entry.key()).collect()
    }

    #[test]
    fn an_object_is_as_old_as_its_last_change() {
        let entry =
            |time: &str| Entry::new("a".into(), 1, &object("a", time), 0).expect("an object");
        let difference = age(&entry("yesterday")).abs_diff(age(&entry("2020-01-02T00:00:00Z")));
        assert!(difference.abs_diff(Duration::from_secs(86_400)) < Duration::from_secs(600));
        assert_eq!(age(&entry("2999-01-01T00:00:00Z")), Duration::ZERO);
    }

    #[test]
    fn no_object_is_older_than_it_is() {
        let changed = jiff::Timestamp::now();
        let second = changed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let entry = Entry::new("a".into(), 1, &object("a", &second), 0).expect("an object");
        let told = age(&entry);
        let passed = jiff::Timestamp::now().duration_since(changed);
        assert!(
            told <= Duration::try_from(passed).expect("time passes"),
            "{told:?}"
        );
    }

    #[tokio::test]
    async fn objects_end_in_the_order_of_their_last_changes() {
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
        let mut line = Line::of_all(resource, LASTS, |entry| match entry.key() {
            "a" => Duration::from_secs(10),
            "b" => Duration::from_secs(30),
            _ => Duration::from_secs(20),
        });
        assert!(line.leave(now, 9).is_empty());
        let changed = put(&store, "c", "2020-04-01T00:00:00Z").await;
        assert_eq!(line.join(&changed, now), None, "others stand before it");
        assert_eq!(names(&line.leave(now + LASTS * 2, 1)), ["b"]);
        assert_eq!(names(&line.leave(now + LASTS * 2, 9)), ["a", "c"]);
        assert_eq!(line.next(), None);
        assert!(line.join(&changed, now).is_some());
    }

    #[tokio::test]
    async fn an_object_that_changes_often_stands_in_line_a_few_times_at_most() {
        let store = store();
        let mut line = Line::of_all(store.resource("core/events"), LASTS, age);
        for _ in 0..1000 {
            let changed = put(&store, "busy", "2020-01-01T00:00:00Z").await;
            line.join(&changed, Instant::now());
            assert!(line.places.len() <= TOLERATED + 3);
        }
        assert_eq!(names(&line.leave(Instant::now() + LASTS * 2, 9)), ["busy"]);
    }
}
