//! A storage backend that wraps another backend: it encrypts values of chosen resources before they are committed, and
//! decrypts them when they are read.
//!
//! At the start, every value of the log must decrypt: with a missing or wrong key the server does not start, and writes
//! nothing. New rules are accepted only if they can decrypt stored values.

use crate::rules::{OpenError, Rules, prefix};
use arc_swap::ArcSwap;
use bareboat_storage::{
    Appended, Backend, BackendError, Batch, ChangePage, Decide, Mark, PageLimit, Record, Refill,
    Rewritten, Stop, Tail, Value,
};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;

/// A stored value, on which new rules are tested.
struct Sample {
    key: Arc<str>,
    stored: Bytes,
}

/// Samples by resource and prefix.
type Samples = HashMap<(Arc<str>, Vec<u8>), Sample>;

/// The error for a value that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("revision {revision} ({resource} {key}) cannot be read")]
struct Unreadable {
    revision: u64,
    resource: Arc<str>,
    key: Arc<str>,
    #[source]
    source: OpenError,
}

/// An object whose stored value should be encrypted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// The resource of the object.
    pub resource: Arc<str>,
    /// The key of the object within its resource.
    pub key: Arc<str>,
    /// The revision of the stored value.
    pub revision: u64,
}

/// A backend that encrypts values of chosen resources.
pub struct EncryptedBackend {
    inner: Arc<dyn Backend>,
    rules: ArcSwap<Rules>,
    /// One stored value for each resource and encryption key in the log; empty while there are no rules.
    samples: Mutex<Samples>,
    /// Locked for reading from the encryption of a batch to the end of its commit. Locked for writing while rules are
    /// replaced and while all values are rewritten.
    gate: RwLock<()>,
}

impl std::fmt::Debug for EncryptedBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptedBackend")
            .field("rules", &self.rules.load())
            .finish_non_exhaustive()
    }
}

impl EncryptedBackend {
    /// Wraps `inner`, with `rules` for encryption.
    pub fn new(inner: Arc<dyn Backend>, rules: Rules) -> EncryptedBackend {
        EncryptedBackend {
            inner,
            rules: ArcSwap::from_pointee(rules),
            samples: Mutex::default(),
            gate: RwLock::new(()),
        }
    }

    /// Returns the rules in use.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Replaces the rules. Fails if the new rules cannot decrypt stored values. Stored values are not changed.
    pub fn replace_rules(&self, rules: Rules) -> Result<(), OpenError> {
        // While this lock is held, no commit can use a key that the new rules do not have.
        let _alone = self.gate.write();
        let open =
            |resource: &str, sample: &Sample| rules.open(resource, &sample.key, &sample.stored);
        let refused = {
            let samples = self.samples.lock();
            let mut opened = samples
                .iter()
                .map(|((resource, _), one)| open(resource, one));
            opened.find_map(Result::err)
        };
        if let Some(refused) = refused {
            // A key may be gone from the log since its sample was taken.
            if !self.reads_everything(&rules) {
                return Err(refused);
            }
            let mut samples = self.samples.lock();
            samples.retain(|(resource, _), sample| open(resource, sample).is_ok());
        }
        self.rules.store(Arc::new(rules));
        Ok(())
    }

    /// Returns whether `rules` decrypt everything in the log, its history included.
    fn reads_everything(&self, rules: &Rules) -> bool {
        let (stop, mut readable) = (Stop::default(), true);
        // Reading the end also shows how far the history was compacted.
        let read = self.inner.mark().and_then(|_| {
            let mut see = |record: Record| {
                let value = record.value.filter(|value| !value.is_damaged());
                let Some(stored) = value.map(|value| value.to_bytes()) else {
                    return;
                };
                if rules.open(&record.resource, &record.key, &stored).is_err() {
                    readable = false;
                    stop.request();
                }
            };
            self.inner.dump(self.inner.compacted(), &mut see, &stop)
        });
        readable && read.is_ok()
    }

    /// Encrypts stored values again, except those that the first provider wrote with its current key, and removes the
    /// old values. Commits of encrypted resources wait in the meantime.
    pub fn encrypt_again(&self) -> Result<Rewritten, BackendError> {
        let _alone = self.gate.write();
        let rules = self.rules.load_full();
        let done = self.inner.rewrite(&mut |record| {
            let new = rules.rewritten(record)?;
            if let Some(value) = &new {
                self.note(&rules, record, &value.to_bytes());
            }
            Ok(new)
        })?;
        // Samples of keys that no stored value uses are not needed any more.
        let mut samples = self.samples.lock();
        samples.retain(|(resource, _), sample| rules.is_current(resource, &sample.stored));
        Ok(done)
    }

    /// Returns how many objects are stored, and which of them the first provider did not write with its current key.
    /// The history is not looked at.
    pub fn outdated(&self) -> Result<(u64, Vec<Outdated>), BackendError> {
        let rules = self.rules.load_full();
        let (stop, mut failed) = (Stop::default(), None);
        let (mut objects, mut outdated) = (0, Vec::new());
        let end = self.inner.mark()?.last;
        let read = self.inner.dump(
            end,
            &mut |record| {
                objects += 1;
                match rules.rewritten(&record) {
                    Ok(None) => {}
                    Ok(Some(_)) => outdated.push(Outdated {
                        resource: record.resource,
                        key: record.key,
                        revision: record.revision,
                    }),
                    Err(error) => {
                        stop.request();
                        failed.get_or_insert(error);
                    }
                }
            },
            &stop,
        );
        match failed {
            Some(error) => Err(BackendError::Failed(error)),
            None => read.map(|_| (objects, outdated)),
        }
    }

    fn note(&self, rules: &Rules, record: &Record, stored: &[u8]) {
        if rules.is_empty() {
            return;
        }
        let own = prefix(stored);
        if own.is_empty() && !rules.encrypts(&record.resource) {
            return;
        }
        let place = (record.resource.clone(), own.to_vec());
        self.samples.lock().entry(place).or_insert_with(|| Sample {
            key: record.key.clone(),
            stored: Bytes::copy_from_slice(stored),
        });
    }

    /// Returns the record with its value decrypted.
    fn opened(&self, rules: &Rules, mut record: Record) -> Result<Record, Unreadable> {
        let Some(value) = record.value.as_ref().filter(|value| !value.is_damaged()) else {
            return Ok(record);
        };
        let (head, tail) = value.parts();
        let joined;
        let stored = match tail.is_empty() {
            true => head,
            // The bytes are shared with an entry. Such bytes are never encrypted.
            false => {
                joined = value.to_bytes();
                &joined
            }
        };
        let opened = rules.open(&record.resource, &record.key, stored);
        let opened = opened.map_err(|source| Unreadable {
            revision: record.revision,
            resource: record.resource.clone(),
            key: record.key.clone(),
            source,
        })?;
        self.note(rules, &record, stored);
        if let Some(plain) = opened {
            record.value = Some(Value::new(plain.into()));
        }
        Ok(record)
    }

    /// Returns the error for history that cannot be decrypted. Such history is treated as compacted: clients list
    /// again.
    fn forgotten(&self, error: &Unreadable) -> BackendError {
        tracing::error!(%error, why = %error.source, "a part of the history cannot be decrypted");
        match self.inner.mark() {
            Ok(end) => BackendError::Compacted { floor: end.last },
            Err(error) => error,
        }
    }
}

impl EncryptedBackend {
    fn encrypts(&self, batch: &Batch) -> bool {
        let rules = self.rules.load();
        let mut records = batch.records.iter();
        records.any(|record| rules.encrypts(&record.resource))
    }

    /// Returns the batch with the values of chosen resources encrypted. The caller holds the gate.
    fn sealed(&self, batch: &Batch) -> Result<Batch, BackendError> {
        let rules = self.rules.load();
        let mut samples = self.samples.lock();
        let mut sealed = batch.clone();
        for record in &mut sealed.records {
            let Some(value) = record
                .value
                .as_ref()
                .filter(|_| rules.encrypts(&record.resource))
            else {
                continue;
            };
            let stored = rules
                .seal(&record.resource, &record.key, &value.to_bytes())
                .map_err(|error| BackendError::Busy(error.into()))?;
            if let Some(stored) = stored {
                let stored = Bytes::from(stored);
                let place = (record.resource.clone(), prefix(&stored).to_vec());
                samples.entry(place).or_insert_with(|| Sample {
                    key: record.key.clone(),
                    stored: stored.clone(),
                });
                record.value = Some(Value::new(stored));
            }
        }
        Ok(sealed)
    }

    fn opened_answer(&self, appended: Appended) -> Result<Appended, BackendError> {
        match appended {
            Appended::Moved(tail) => self.opened_tail(tail).map(Appended::Moved),
            done => Ok(done),
        }
    }

    fn opened_tail(&self, tail: Tail) -> Result<Tail, BackendError> {
        let Tail::Batches { batches, end, more } = tail else {
            return Ok(tail);
        };
        let rules = self.rules.load_full();
        let open = |records: Vec<Record>| -> Result<Vec<Record>, Unreadable> {
            let records = records.into_iter();
            records.map(|record| self.opened(&rules, record)).collect()
        };
        let opened: Result<_, Unreadable> = batches.into_iter().map(open).collect();
        let batches = opened.map_err(|error| BackendError::Failed(Box::new(error)))?;
        Ok(Tail::Batches { batches, end, more })
    }
}

impl Backend for EncryptedBackend {
    bareboat_storage::delegate_backend!(inner: is_shared limits wait attend is_complete next_epoch compact history revision_before compacted mark rewrite release_memory stats close);

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        let appended = match self.encrypts(batch) {
            false => self.inner.append(base, batch)?,
            true => {
                let _passing = self.gate.read();
                self.inner.append(base, &self.sealed(batch)?)?
            }
        };
        self.opened_answer(appended)
    }

    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        let _passing = self.gate.read();
        let mut failed = None;
        let appended = self.inner.append_held(base, &mut |tail| {
            let sealed = self.opened_tail(tail).and_then(|tail| {
                let decided = decide(tail);
                decided
                    .map(|(base, batch)| Ok((base, self.sealed(&batch)?)))
                    .transpose()
            });
            sealed.unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        })?;
        match (failed, appended) {
            (Some(error), _) => Err(error),
            (None, Some(appended)) => self.opened_answer(appended).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        self.opened_tail(self.inner.tail(after)?)
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        let rules = self.rules.load_full();
        let mut failed = None;
        let end = self.inner.load(after, &mut |record| {
            if failed.is_some() {
                return;
            }
            match self.opened(&rules, record) {
                Ok(record) => visit(record),
                Err(error) => failed = Some(error),
            }
        })?;
        match failed {
            Some(error) => Err(BackendError::Failed(Box::new(error))),
            None => Ok(end),
        }
    }

    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        let Refill::State(records) = step else {
            return self.inner.refill(step);
        };
        let _passing = self.gate.read();
        let sealed = self.sealed(&Batch {
            id: 0,
            writer: 0,
            records: records.to_vec(),
        })?;
        self.inner.refill(Refill::State(&sealed.records))
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let mut page = self.inner.read_since(resource, after, upto, limit, stop)?;
        let rules = self.rules.load_full();
        for change in &mut page.changes {
            let opened = self.opened(&rules, change.record.clone());
            change.record = opened.map_err(|error| self.forgotten(&error))?;
            if let Some(previous) = change.previous.take() {
                let opened = self.opened(&rules, previous);
                change.previous = Some(opened.map_err(|error| self.forgotten(&error))?);
            }
        }
        Ok(page)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        let rules = self.rules.load_full();
        let mut failed = None;
        self.inner.read_at(
            resource,
            revision,
            &mut |record| {
                if failed.is_some() {
                    return;
                }
                match self.opened(&rules, record) {
                    Ok(record) => visit(record),
                    Err(error) => failed = Some(error),
                }
            },
            stop,
        )?;
        match failed {
            Some(error) => Err(self.forgotten(&error)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
