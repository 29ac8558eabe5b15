//! Checks the records of a log: revisions, predecessors, digests, names and sizes.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use ahash::AHashMap;
use serde::Deserialize;

use super::{Examination, NAMESPACES, RESTORE, Share};
use crate::backend::Record;
use crate::batch::{Chain, Digest, Mark};

/// The number of largest objects, and of those that change most, that are reported.
const LARGEST: usize = 5;

/// A live object.
struct Live {
    revision: u64,
    bytes: u64,
}

/// The identity of an object: logical cluster, resource, key.
type Place = (Arc<str>, Arc<str>, Arc<str>);

pub(super) struct Walk {
    floor: u64,
    next: u64,
    live: AHashMap<Place, Live>,
    resources: BTreeMap<Arc<str>, Share>,
    namespaces: AHashMap<Box<str>, Share>,
    /// The number of records in the history by object.
    changes: AHashMap<Place, u64>,
    /// The ends of the batches that are not reached yet.
    places: Peekable<std::vec::IntoIter<Mark>>,
    /// The digest of the batch that is being read; `None` until the digest of the batch before is known.
    chain: Option<Chain>,
    batches: u64,
    found: Examination,
}

#[derive(Deserialize)]
struct Named {
    metadata: Names,
}

#[derive(Deserialize)]
struct Names {
    name: String,
    namespace: Option<String>,
}

impl Walk {
    pub(super) fn new(floor: u64, places: Vec<Mark>) -> Self {
        let mut places = places.into_iter().peekable();
        // The chain begins at the floor if a batch ends there, otherwise at the first end of a batch above the floor.
        while places.next_if(|place| place.last < floor).is_some() {}
        let start = places.next_if(|place| place.last == floor);
        Self {
            floor,
            next: floor + 1,
            live: AHashMap::new(),
            resources: BTreeMap::new(),
            namespaces: AHashMap::new(),
            changes: AHashMap::new(),
            places,
            chain: start.map(|place| Chain::after(&place.digest)),
            batches: 0,
            found: Examination::default(),
        }
    }

    pub(super) fn see(&mut self, record: &Record) {
        if record.revision > self.floor {
            self.follow(record);
        }
        self.replace(record);
        self.look_inside(record);
    }

    /// Checks the revision and the digest of a record in the history.
    fn follow(&mut self, record: &Record) {
        if record.revision != self.next {
            let (from, to) = (self.next, record.revision);
            let problem = match to < from {
                true => format!("revision {to} exists more than once"),
                false => format!("revisions {from} to {} are missing", to - 1),
            };
            self.found.add(problem, RESTORE);
            self.chain = None;
        }
        self.next = record.revision + 1;
        let value = record.value.as_ref();
        if let Some(chain) = &mut self.chain {
            let (head, tail) = value.map_or((None, &[][..]), |value| {
                let (head, tail) = value.parts();
                (Some(head), tail)
            });
            chain.add(record, head, tail);
        }
        while self
            .places
            .next_if(|place| place.last < record.revision)
            .is_some()
        {}
        let Some(place) = self.places.next_if(|place| place.last == record.revision) else {
            return;
        };
        if let Some(chain) = &self.chain {
            self.batches += 1;
            let own = chain.digest();
            if own != place.digest && place.digest != Digest::default() {
                let last = record.revision;
                let problem =
                    format!("the batch that ends at revision {last} does not match its digest");
                self.found.add(problem, RESTORE);
            }
        }
        self.chain = Some(Chain::after(&place.digest));
    }

    /// Compares `record` with the record that it replaces.
    fn replace(&mut self, record: &Record) {
        let len = record.value.as_ref().map_or(0, |value| value.len());
        let bytes = (record.key.len() + len) as u64;
        let in_history = record.revision > self.floor;
        let place = (
            record.cluster.clone(),
            record.resource.clone(),
            record.key.clone(),
        );
        if in_history {
            *self.changes.entry(place.clone()).or_default() += 1;
        }
        let before = match record.value {
            Some(_) => {
                let live = Live {
                    revision: record.revision,
                    bytes,
                };
                self.live.insert(place, live)
            }
            None => self.live.remove(&place),
        };
        let replaced = before.as_ref().map_or(0, |live| live.revision);
        let add = |share: &mut Share| {
            if in_history {
                share.history += 1;
                share.history_bytes += bytes;
            }
            if record.value.is_some() {
                share.objects += 1;
                share.bytes += bytes;
            }
            if let Some(before) = &before {
                share.objects -= 1;
                share.bytes -= before.bytes;
            }
        };
        add(self.resources.entry(record.resource.clone()).or_default());
        if let Some((namespace, _)) = record.key.split_once('/') {
            match self.namespaces.get_mut(namespace) {
                Some(share) => add(share),
                None => add(self.namespaces.entry(namespace.into()).or_default()),
            }
        }
        let expected = match in_history {
            true => record.prev,
            // Records that the state replaced are compacted.
            false => 0,
        };
        if replaced != expected {
            let name = format!("{} {}", record.resource, record.key);
            let problem = match in_history {
                true => format!(
                    "revision {} of {name} replaces revision {expected}, but {replaced} was found",
                    record.revision
                ),
                false => format!(
                    "{name} exists more than once: revisions {replaced} and {}",
                    record.revision
                ),
            };
            self.found.add(problem, RESTORE);
        }
    }

    /// Checks whether the value of `record` is the object that its key names.
    fn look_inside(&mut self, record: &Record) {
        let Some(value) = &record.value else { return };
        let name = || {
            format!(
                "{} {} (revision {})",
                record.resource, record.key, record.revision
            )
        };
        if value.is_damaged() {
            let advice = "restore it from a backup, or delete it with ignoreStoreReadErrorWithClusterBreakingPotential";
            self.found
                .add(format!("{} does not match its checksum", name()), advice);
            return;
        }
        let stored = value.to_bytes();
        if !stored.starts_with(b"{") {
            return;
        }
        let wrong = match serde_json::from_slice::<Named>(&stored) {
            Err(_) => Some("is not an object in JSON"),
            Ok(Named { metadata }) => {
                let key = match &metadata.namespace {
                    Some(namespace) => format!("{namespace}/{}", metadata.name),
                    None => metadata.name,
                };
                (key != *record.key).then_some("contains another name")
            }
        };
        if let Some(wrong) = wrong {
            self.found.add(format!("{} {wrong}", name()), RESTORE);
        }
    }

    /// Returns the next revision if it is missing in a log that ends at `last`.
    pub(super) fn missing(&self, last: u64) -> Option<u64> {
        (self.next <= last).then_some(self.next)
    }

    /// Moves the results into `found`.
    pub(super) fn finish(&mut self, found: &mut Examination) {
        let own = std::mem::take(&mut self.found);
        for finding in own.findings {
            found.add(finding.problem, &finding.advice);
        }
        found.more_findings |= own.more_findings;
        found.batches = self.batches;
        let shares = std::mem::take(&mut self.resources).into_iter();
        found.resources = shares
            .map(|(resource, share)| (resource.to_string(), share))
            .collect();
        let namespaces = std::mem::take(&mut self.namespaces).into_iter();
        let mut namespaces: Vec<(String, Share)> = namespaces
            .map(|(namespace, share)| (namespace.into(), share))
            .collect();
        namespaces.sort_by(|(one, a), (other, b)| {
            let size = |share: &Share| share.bytes + share.history_bytes;
            size(b).cmp(&size(a)).then_with(|| one.cmp(other))
        });
        namespaces.truncate(NAMESPACES);
        found.namespaces = namespaces;
        found.largest = most(self.live.iter().map(|(place, live)| (place, live.bytes)));
        let changed = self.changes.iter().filter(|(_, changes)| **changes > 1);
        found.busiest = most(changed.map(|(place, changes)| (place, *changes)));
    }
}

/// Returns the objects with the largest numbers, largest first.
fn most<'a>(numbered: impl Iterator<Item = (&'a Place, u64)>) -> Vec<(String, u64)> {
    let mut all: Vec<(&Place, u64)> = numbered.collect();
    all.sort_unstable_by(|(one, a), (other, b)| b.cmp(a).then_with(|| one.cmp(other)));
    let first = all.into_iter().take(LARGEST);
    first
        .map(|((_, resource, key), number)| (format!("{resource} {key}"), number))
        .collect()
}
