//! The work queue of a controller. A key is worked on by one task at a time, again if it was added meanwhile, and later
//! if the work failed.
//!
//! What the work is, the controller decides.

mod meter;

pub(crate) use meter::{Meter, QueueMetrics};

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// The wait after the first failure. It doubles with each failure that follows.
const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest wait after a failure. Work that never succeeds then costs next to nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);

/// How long to wait after a number of failures in a row.
fn wait_after(failures: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    wait.min(LONGEST_WAIT)
}

/// The result of working on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There is nothing more to do until the key is added again.
    Done,
    /// It failed. The key is tried again, after a wait that grows with each failure.
    Retry,
    /// Work on the key again after this time.
    After(Duration),
}

/// A queue of keys without duplicates.
pub(crate) struct Queue<K> {
    inner: Mutex<Inner<K>>,
    ready: Notify,
    /// Whether this server leads: a queue of another server takes no keys. Absent if that does not matter.
    leads: Option<watch::Receiver<bool>>,
}

struct Inner<K> {
    /// The keys that wait, and since when.
    waiting: VecDeque<(K, Instant)>,
    /// The keys in `waiting`, and those that were added while they were being worked on.
    dirty: HashSet<K>,
    /// The keys that are being worked on, and since when.
    running: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
    later: BinaryHeap<Reverse<Later<K>>>,
    /// Which entry of `later` is valid for a key: the earliest time that was asked for, and only once.
    scheduled: HashMap<K, (Instant, u64)>,
    count: u64,
    meter: Option<Meter>,
}

struct Later<K> {
    due: Instant,
    number: u64,
    key: K,
}

impl<K> PartialEq for Later<K> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<K> Eq for Later<K> {}

impl<K> PartialOrd for Later<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Later<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    pub(crate) fn new() -> Arc<Queue<K>> {
        Queue::with(None)
    }

    /// A queue that takes keys only while this server leads.
    pub(crate) fn of_leader(leads: watch::Receiver<bool>) -> Arc<Queue<K>> {
        Queue::with(Some(leads))
    }

    fn with(leads: Option<watch::Receiver<bool>>) -> Arc<Queue<K>> {
        Arc::new(Queue {
            leads,
            inner: Mutex::new(Inner {
                waiting: VecDeque::new(),
                dirty: HashSet::new(),
                running: HashMap::new(),
                failures: HashMap::new(),
                later: BinaryHeap::new(),
                scheduled: HashMap::new(),
                count: 0,
                meter: None,
            }),
            ready: Notify::new(),
        })
    }

    /// Starts to measure the queue.
    pub(crate) fn measure(&self, meter: Meter) {
        let mut inner = self.inner.lock();
        meter.begin(inner.waiting.len());
        inner.meter = Some(meter);
    }

    fn is_open(&self) -> bool {
        self.leads.as_ref().is_none_or(|leads| *leads.borrow())
    }

    /// Adds a key, to be worked on soon.
    pub(crate) fn add(&self, key: K) {
        if self.is_open() && self.inner.lock().add(key) {
            self.ready.notify_one();
        }
    }

    /// Adds a key, to be worked on at some time.
    pub(crate) fn add_at(&self, key: K, due: Instant) {
        if !self.is_open() {
            return;
        }
        self.inner.lock().add_at(key, due);
        self.ready.notify_one();
    }

    /// The keys that wait for their turn or for a time.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> HashSet<K> {
        let inner = self.inner.lock();
        let later = inner.scheduled.keys();
        inner.dirty.iter().chain(later).cloned().collect()
    }

    /// Waits for a key. The same key is not returned again before [`Queue::done`].
    async fn next(&self) -> K {
        loop {
            let earliest = {
                let mut inner = self.inner.lock();
                if !self.is_open() {
                    inner.clear();
                }
                inner.take_due(Instant::now());
                if let Some((key, since)) = inner.waiting.pop_front() {
                    let now = Instant::now();
                    if let Some(meter) = &inner.meter {
                        meter.taken(since, now);
                    }
                    inner.dirty.remove(&key);
                    inner.running.insert(key.clone(), now);
                    return key;
                }
                inner.later.peek().map(|Reverse(later)| later.due)
            };
            match earliest {
                Some(due) => {
                    // A timeout means that a key is due, which ends the wait like a notification.
                    let _ = tokio::time::timeout_at(due.into(), self.ready.notified()).await;
                }
                None => self.ready.notified().await,
            }
        }
    }

    fn done(&self, key: K, verdict: Verdict) {
        let mut inner = self.inner.lock();
        if let Some(begun) = inner.running.remove(&key)
            && let Some(meter) = &inner.meter
        {
            meter.done(begun);
        }
        if !self.is_open() {
            return inner.clear();
        }
        match verdict {
            Verdict::Done => {
                inner.failures.remove(&key);
            }
            Verdict::After(wait) => {
                inner.failures.remove(&key);
                inner.add_at(key.clone(), Instant::now() + wait);
            }
            Verdict::Retry => {
                if let Some(meter) = &inner.meter {
                    meter.retried();
                }
                let failures = inner.failures.entry(key.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                let wait = wait_after(*failures);
                inner.add_at(key.clone(), Instant::now() + wait);
            }
        }
        if inner.dirty.contains(&key) {
            inner.wait(key);
        }
        drop(inner);
        self.ready.notify_one();
    }
}

impl<K: Clone + Eq + Hash> Inner<K> {
    /// Adds a key. Returns whether it can be taken at once.
    fn add(&mut self, key: K) -> bool {
        if !self.dirty.insert(key.clone()) || self.running.contains_key(&key) {
            return false;
        }
        self.wait(key);
        true
    }

    /// Forgets all keys. Another server works on them.
    fn clear(&mut self) {
        if let Some(meter) = &self.meter {
            meter.forgotten(self.waiting.len());
        }
        self.waiting.clear();
        self.dirty.clear();
        self.failures.clear();
        self.later.clear();
        self.scheduled.clear();
    }

    fn wait(&mut self, key: K) {
        if let Some(meter) = &self.meter {
            meter.added();
        }
        self.waiting.push_back((key, Instant::now()));
    }

    fn add_at(&mut self, key: K, due: Instant) {
        let known = self.scheduled.get(&key);
        if known.is_some_and(|(earlier, _)| *earlier <= due) {
            return;
        }
        let number = self.count;
        self.count += 1;
        self.scheduled.insert(key.clone(), (due, number));
        self.later.push(Reverse(Later { due, number, key }));
    }

    fn take_due(&mut self, now: Instant) {
        while self
            .later
            .peek()
            .is_some_and(|Reverse(later)| later.due <= now)
        {
            let Some(Reverse(later)) = self.later.pop() else {
                return;
            };
            // The key may have been scheduled for an earlier time since.
            let scheduled = self.scheduled.get(&later.key).map(|(_, number)| *number);
            if scheduled == Some(later.number) {
                self.scheduled.remove(&later.key);
                self.add(later.key);
            }
        }
    }
}

/// Work on one key. If it panics, it has failed.
struct Turn<K: Clone + Eq + Hash> {
    queue: Arc<Queue<K>>,
    key: Option<K>,
    verdict: Verdict,
}

impl<K: Clone + Eq + Hash> Turn<K> {
    fn end_with(mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

impl<K: Clone + Eq + Hash> Drop for Turn<K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.queue.done(key, self.verdict);
        }
    }
}

/// Works on the keys of a queue until it is cancelled, on several of them at the same time.
pub(crate) async fn work<K, F, Fut>(
    queue: Arc<Queue<K>>,
    parallel: usize,
    turns: TaskTracker,
    job: F,
) where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Verdict> + Send + 'static,
{
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        if running.len() >= parallel.max(1) {
            // The queue already knows the result.
            let _ = running.join_next().await;
            continue;
        }
        let key = queue.next().await;
        let work = job(key.clone());
        let turn = Turn {
            queue: queue.clone(),
            key: Some(key),
            verdict: Verdict::Retry,
        };
        running.spawn(turns.track_future(async move {
            turn.end_with(work.await);
        }));
    }
}

#[cfg(test)]
mod tests;
