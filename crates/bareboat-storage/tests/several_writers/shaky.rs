//! A connection to a shared log that fails at random: requests and answers are lost, the log cannot be reached, appends
//! find a longer log.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bareboat_storage::{
    Appended, Attention, Backend, BackendError, Batch, Decide, Mark, MemoryBackend, Record, Tail,
    Value,
};

/// The connection of one store.
pub(crate) struct Shaky {
    log: MemoryBackend,
    dice: AtomicU64,
    /// How many of a hundred appends fail.
    pub(crate) faults: AtomicU64,
    /// The number of following appends that find a longer log.
    pub(crate) moved: AtomicU64,
    /// The number of appends that held the log.
    pub(crate) held: AtomicU64,
    /// The number of appends with a lost answer.
    pub(crate) unknown: AtomicU64,
    /// The number of reads of the end of the log.
    pub(crate) marks: AtomicU64,
    /// Whether another writer appends before every read of the tail.
    pub(crate) growing: AtomicBool,
    /// Whether another writer creates and deletes `core/configmaps x` before the next append that holds the log. More
    /// batches than one tail contains are between these two writes.
    pub(crate) flood: AtomicBool,
    /// What waits for the writes of other stores.
    pub(crate) attention: Mutex<Attention>,
}

impl Shaky {
    pub(crate) fn new(log: &MemoryBackend, seed: u64, faults: u64) -> Arc<Self> {
        Arc::new(Self {
            log: log.clone(),
            dice: AtomicU64::new(seed),
            faults: AtomicU64::new(faults),
            moved: AtomicU64::new(0),
            held: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            marks: AtomicU64::new(0),
            growing: AtomicBool::new(false),
            flood: AtomicBool::new(false),
            attention: Mutex::default(),
        })
    }

    /// Appends as another writer. Writes another object, or `core/configmaps x` if `x` is given; `x` is the replaced
    /// revision, and if it is not 0, the object is deleted.
    fn grow(&self, x: Option<u64>) -> Result<u64, BackendError> {
        let base = self.log.mark()?;
        let revision = base.last + 1;
        let (resource, key, prev) = match x {
            Some(prev) => ("core/configmaps", "x".to_owned(), prev),
            None => ("other", format!("{revision}"), 0),
        };
        let record = Record {
            revision,
            prev,
            cluster: "".into(),
            resource: resource.into(),
            key: key.into(),
            actor: None,
            value: (prev == 0).then(|| Value::new(super::object(revision))),
        };
        let batch = Batch {
            id: u128::from(revision),
            writer: 1,
            records: vec![record],
        };
        self.log.append(&base, &batch)?;
        Ok(revision)
    }

    fn roll(&self, sides: u64) -> u64 {
        let mut dice = self.dice.load(Ordering::Relaxed);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        self.dice.store(dice, Ordering::Relaxed);
        dice % sides
    }
}

impl Backend for Shaky {
    bareboat_storage::delegate_backend!(log: load read_since read_at compact compacted);

    fn is_shared(&self) -> bool {
        true
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        if self.moved.load(Ordering::SeqCst) > 0 {
            self.moved.fetch_sub(1, Ordering::SeqCst);
            return Ok(Appended::Moved(self.log.tail(base)?));
        }
        if self.roll(100) >= self.faults.load(Ordering::Relaxed) {
            return self.log.append(base, batch);
        }
        let lost = || BackendError::Unknown("the connection was lost".into());
        match self.roll(4) {
            0 => Err(BackendError::Unreachable("nobody answers".into())),
            1 => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
                Err(lost())
            }
            2 => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
                self.log.append(base, batch)?;
                Err(lost())
            }
            // The first request arrives after its repetition.
            _ => {
                let answer = self.log.append(base, batch)?;
                let again = self.log.append(base, batch)?;
                if let (Appended::Done(first), Appended::Done(second)) = (&answer, &again) {
                    assert_eq!(first, second);
                }
                Ok(answer)
            }
        }
    }

    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        self.held.fetch_add(1, Ordering::SeqCst);
        if self.flood.swap(false, Ordering::SeqCst) {
            let made = self.grow(Some(0))?;
            for _ in 0..300 {
                self.grow(None)?;
            }
            self.grow(Some(made))?;
        }
        self.log.append_held(base, decide)
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        if self.roll(100) < self.faults.load(Ordering::Relaxed) / 4 {
            return Err(BackendError::Unreachable("nobody answers".into()));
        }
        if self.growing.load(Ordering::SeqCst) {
            self.grow(None)?;
        }
        self.log.tail(after)
    }

    fn wait(&self, after: u64, until: Instant) -> bool {
        let soon = Instant::now() + Duration::from_millis(20);
        self.log.wait(after, until.min(soon));
        true
    }

    fn attend(&self, attention: Attention) {
        *self.attention.lock().unwrap() = attention;
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.marks.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1));
        self.log.mark()
    }
}
