//! What batches of changes mean for rows, decided in memory. Versions are
//! counted down from -1, and become final when the counter is taken.

use bareboat_shelf::{Applied, Batch, Change, Context, Draft, Event, KindId, Narrow, decide};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};

/// Where an object is: member, kind, namespace and name.
pub(crate) type Place = (i64, i64, String, String);

/// A row, as it is in the database or will be.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) narrow: Narrow,
    pub(crate) body: Bytes,
    pub(crate) splice: usize,
    /// Whether the database has the row.
    pub(crate) stored: bool,
    pub(crate) changed: bool,
}

/// What a member gains by a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gain {
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}

/// A change, for those who watch.
struct Noted<'b> {
    narrow: Narrow,
    /// The object as it is now; `None` if it is gone.
    draft: Option<&'b Draft>,
    before: Option<(Narrow, Bytes)>,
}

/// One transaction.
pub(crate) struct Pass<'b> {
    context: &'b Context<'b>,
    pub(crate) slots: Vec<Slot>,
    live: HashMap<Place, usize>,
    /// How many versions are needed.
    pub(crate) count: i64,
    noted: Vec<Noted<'b>>,
    pub(crate) applied: Vec<Applied>,
    /// The slots of the rows that each batch put.
    put: Vec<Vec<usize>>,
    pub(crate) gains: BTreeMap<i64, Gain>,
}

impl<'b> Pass<'b> {
    pub(crate) fn new(context: &'b Context<'b>) -> Pass<'b> {
        Pass {
            context,
            slots: Vec::new(),
            live: HashMap::new(),
            count: 0,
            noted: Vec::new(),
            applied: Vec::new(),
            put: Vec::new(),
            gains: BTreeMap::new(),
        }
    }

    /// Takes a row that the database has.
    pub(crate) fn know(&mut self, narrow: Narrow, body: Bytes) {
        let place = (
            narrow.member,
            narrow.kind,
            narrow.namespace.clone(),
            narrow.name.clone(),
        );
        self.live.insert(place, self.slots.len());
        self.slots.push(Slot {
            narrow,
            body,
            splice: 0,
            stored: true,
            changed: false,
        });
    }

    /// Decides about the changes of a batch.
    pub(crate) fn batch(&mut self, batch: &'b Batch) {
        self.applied.push(Applied::default());
        self.put.push(Vec::new());
        self.gains.entry(batch.member.0).or_default();
        for change in &batch.changes {
            match change {
                Change::Put(draft) => self.put(batch, draft),
                Change::Delete {
                    namespace,
                    name,
                    version,
                } => {
                    let place = (
                        batch.member.0,
                        batch.kind.0,
                        namespace.clone(),
                        name.clone(),
                    );
                    if let Some(slot) = self.live.remove(&place) {
                        self.bury(slot, version.as_deref());
                    }
                }
            }
        }
    }

    fn gain(&mut self, member: i64, objects: i64, bytes: i64) {
        let gain = self.gains.entry(member).or_default();
        gain.objects += objects;
        gain.bytes += bytes;
    }

    fn changed(&mut self) {
        self.count += 1;
        if let Some(applied) = self.applied.last_mut() {
            applied.changed += 1;
        }
    }

    fn put(&mut self, batch: &'b Batch, draft: &'b Draft) {
        let (member, KindId(kind)) = (batch.member.0, batch.kind);
        let place = (
            member,
            kind,
            draft.namespace().to_owned(),
            draft.name().to_owned(),
        );
        let mut found = self.live.get(&place).copied();
        if let Some(slot) = found {
            let old = &self.slots[slot];
            if decide::is_same(&old.narrow, draft) && old.body == *draft.body() {
                self.note_put(slot);
                return;
            }
            if old.narrow.uid != draft.uid() {
                self.bury(slot, None);
                found = None;
            }
        }
        self.changed();
        let old = found.map(|slot| self.slots[slot].clone());
        let declared = self.context.directory.declared(batch.kind);
        let before = old
            .as_ref()
            .map(|old| (old.narrow.clone(), old.body.clone()));
        let narrow = old.map(|old| old.narrow);
        let mut narrow = decide::next(narrow, draft, declared, self.context.now);
        narrow.rev = -self.count;
        let length = i64::try_from(draft.body().len()).unwrap_or(0);
        let slot = match (found, &before) {
            (Some(slot), Some((_, body))) => {
                let less = i64::try_from(body.len()).unwrap_or(0);
                self.gain(member, 0, length - less);
                slot
            }
            _ => {
                (narrow.member, narrow.kind, narrow.born) = (member, kind, -self.count);
                self.gain(member, 1, length);
                self.live.insert(place, self.slots.len());
                self.slots.push(Slot {
                    narrow: Narrow::default(),
                    body: Bytes::new(),
                    splice: 0,
                    stored: false,
                    changed: true,
                });
                self.slots.len() - 1
            }
        };
        let kept = &mut self.slots[slot];
        (kept.narrow, kept.body) = (narrow.clone(), draft.body().clone());
        (kept.splice, kept.changed) = (draft.splice(), true);
        self.note_put(slot);
        if self.context.watched {
            self.noted.push(Noted {
                narrow,
                draft: Some(draft),
                before,
            });
        }
    }

    fn note_put(&mut self, slot: usize) {
        if let Some(put) = self.put.last_mut() {
            put.push(slot);
        }
    }

    /// Makes a row a deletion, at a version of the member if that is known.
    fn bury(&mut self, slot: usize, version: Option<&str>) {
        self.changed();
        let kept = &mut self.slots[slot];
        let before = (kept.narrow.clone(), kept.body.clone());
        if let Some(version) = version {
            version.clone_into(&mut kept.narrow.member_version);
        }
        (kept.narrow.rev, kept.narrow.gone, kept.changed) = (-self.count, true, true);
        let (member, length) = (kept.narrow.member, kept.body.len());
        let narrow = kept.narrow.clone();
        self.gain(member, -1, -i64::try_from(length).unwrap_or(0));
        if self.context.watched {
            self.noted.push(Noted {
                narrow,
                draft: None,
                before: Some(before),
            });
        }
    }

    /// Takes the versions after a number. A new row has the version of its birth as its number.
    pub(crate) fn number(&mut self, base: i64) {
        for slot in &mut self.slots {
            settle(&mut slot.narrow, base);
        }
        for noted in &mut self.noted {
            settle(&mut noted.narrow, base);
            if let Some((before, _)) = &mut noted.before {
                settle(before, base);
            }
        }
        for (applied, put) in self.applied.iter_mut().zip(&self.put) {
            let rows = put.iter().map(|slot| self.slots[*slot].narrow.id);
            applied.rows = rows.collect();
        }
    }

    /// Returns the changes, if there is a watch.
    pub(crate) fn events(self) -> (Vec<Applied>, Option<Vec<Event>>) {
        let watched = self.context.watched;
        let events = self
            .noted
            .into_iter()
            .filter_map(|noted| match noted.draft {
                Some(draft) => Some(decide::put(noted.narrow, draft, noted.before)),
                None => {
                    let (before, body) = noted.before?;
                    Some(decide::bury(noted.narrow, before, body))
                }
            });
        (self.applied, watched.then(|| events.collect()))
    }
}

/// Makes the versions of a row final.
fn settle(narrow: &mut Narrow, base: i64) {
    for version in [&mut narrow.rev, &mut narrow.born] {
        if *version < 0 {
            *version = base - *version;
        }
    }
    if narrow.id == 0 {
        narrow.id = narrow.born;
    }
}
