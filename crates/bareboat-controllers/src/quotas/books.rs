//! The account of one namespace: its quotas, what is used of them, and what writes on their way hold.
//!
//! Usage is the sum over what is stored, up to a revision for each resource; later changes are added as the feed tells
//! of them. A share belongs to a change of one object from one state: when the feed tells that the object left that
//! state, the change happened or never will, and the share is settled.

use super::QUOTAS;
use bareboat_api::quantity::Quantity;
use bareboat_api::{Str, Value};
use bareboat_builtin::quota::{Amounts, Meter, Quota};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of one namespace.
#[derive(Default)]
pub(crate) struct Account {
    /// The quotas may have changed since they were read.
    doubtful: AtomicBool,
    /// Events were missed: everything is to be counted again.
    distrusted: AtomicBool,
    books: Mutex<Books>,
}

/// The numbers.
#[derive(Default)]
pub(crate) struct Books {
    pub(super) quotas: Vec<Booked>,
    /// Up to which revision the changes of a resource are in the sums.
    counted: HashMap<Box<str>, u64>,
    /// The same for resources that had nothing to count.
    since: u64,
    /// The last change the feed told of.
    heard: u64,
    shares: Vec<Share>,
    number: u64,
}

/// One quota with what is used of it.
#[derive(Clone)]
pub(crate) struct Booked {
    pub(super) name: Str,
    pub(super) quota: Quota,
    pub(super) used: Amounts,
}

/// What a write on its way holds.
struct Share {
    number: u64,
    change: Change,
    /// How much, by quota.
    amounts: Vec<(Str, Amounts)>,
    /// The revision at which it was stored, if that is known.
    stored: Option<u64>,
}

/// A change of one object from one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) store: Box<str>,
    pub(super) key: Box<str>,
    /// The revision of the state before; 0 if there is none.
    pub(super) base: u64,
}

impl Account {
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    pub(super) fn distrust(&self) {
        self.distrusted.store(true, Ordering::Release);
        self.doubt();
    }

    /// The numbers, with the quotas as they are now.
    pub(super) fn open(&self, store: &Store, namespace: &str) -> MutexGuard<'_, Books> {
        let mut books = self.books.lock();
        // Taken back before the look: what changes after it raises the doubt again.
        if self.doubtful.swap(false, Ordering::AcqRel) {
            let distrusted = self.distrusted.swap(false, Ordering::AcqRel);
            books.read_quotas(store, namespace, distrusted);
        }
        books
    }

    /// The numbers as they are.
    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }
}

impl Books {
    fn read_quotas(&mut self, store: &Store, namespace: &str, anew: bool) {
        let prefix = format!("{namespace}/");
        let snapshot = store.resource(QUOTAS).snapshot();
        let quotas = snapshot.range(&prefix, None).map(|entry| Booked {
            name: Str::new(entry.name()),
            quota: Quota::read(&value(entry)),
            used: Amounts::default(),
        });
        let quotas: Vec<Booked> = quotas.collect();
        let same = |(a, b): (&Booked, &Booked)| a.name == b.name && a.quota == b.quota;
        let unchanged =
            quotas.len() == self.quotas.len() && quotas.iter().zip(&self.quotas).all(same);
        if anew || !unchanged {
            self.quotas = quotas;
            self.count(store, &prefix);
        }
    }

    /// Sums up what is stored.
    fn count(&mut self, store: &Store, prefix: &str) {
        self.counted.clear();
        // Read before the resources are listed: what is not among them begins after this.
        self.since = store.visible();
        for resource in store.resources() {
            let Some(meter) = meter(resource.name()) else {
                continue;
            };
            if self.quotas.iter().any(|own| own.quota.concerns(&meter)) {
                let at = self.count_resource(&resource, &meter, prefix);
                self.counted.insert(resource.name().into(), at);
            }
        }
        let mut shares = std::mem::take(&mut self.shares);
        shares.retain(|share| {
            share
                .stored
                .is_none_or(|at| !self.has_counted(&share.change.store, at))
        });
        self.shares = shares;
    }

    fn count_resource(&mut self, resource: &Resource, meter: &Meter, prefix: &str) -> u64 {
        let snapshot = resource.snapshot();
        if meter.only_counts() {
            let number = snapshot.count(prefix, None);
            for own in &mut self.quotas {
                own.used.add_all(&own.quota.usage_of_many(meter, number));
            }
        } else {
            for object in snapshot.range(prefix, None).map(|entry| value(entry)) {
                for own in &mut self.quotas {
                    own.used.add_all(&own.quota.usage(meter, &object));
                }
            }
        }
        snapshot.revision()
    }

    fn has_counted(&self, store: &str, revision: u64) -> bool {
        let upto = self.counted.get(store).copied().unwrap_or(self.since);
        revision <= upto
    }

    /// Takes in a change; tells whether it moved a sum.
    pub(super) fn heard(&mut self, store: &str, event: &Event) -> bool {
        self.heard = self.heard.max(event.rev);
        if self.has_counted(store, event.rev) {
            return false;
        }
        let change = Change {
            store: store.into(),
            key: event.key().into(),
            base: event.prev.as_ref().map_or(0, |prev| prev.revision()),
        };
        self.shares.retain(|share| share.change != change);
        let Some(meter) = meter(store) else {
            return false;
        };
        if meter.only_counts() && event.kind == EventKind::Modified {
            return false;
        }
        if !self.quotas.iter().any(|own| own.quota.concerns(&meter)) {
            return false;
        }
        let look = |entry: &Entry| match meter.only_counts() {
            true => Value::Null,
            false => value(entry),
        };
        let before = event.prev.as_deref().map(look);
        let after = (event.kind != EventKind::Deleted).then(|| look(&event.entry));
        let mut moved = false;
        for own in &mut self.quotas {
            let usage = |object: &Option<Value>| {
                let object = object.as_ref();
                object.map_or_else(Amounts::default, |object| own.quota.usage(&meter, object))
            };
            let (before, after) = (usage(&before), usage(&after));
            if before != after {
                own.used.subtract_all(&before);
                own.used.add_all(&after);
                moved = true;
            }
        }
        moved
    }

    /// What is used of a quota and held of it.
    fn taken(&self, own: &Booked) -> Amounts {
        let mut taken = own.used.clone();
        let shares = self.shares.iter().flat_map(|share| &share.amounts);
        for (_, amounts) in shares.filter(|(name, _)| *name == own.name) {
            taken.add_all(amounts);
        }
        taken
    }

    /// What a write would take of each quota, or why it may not.
    pub(super) fn weigh(
        &self,
        meter: &Meter,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<(Str, Amounts)>, String> {
        let counting = |own: &&Booked| own.quota.counts(meter, new);
        for own in self.quotas.iter().filter(counting) {
            if let Some(missing) = own.quota.missing(meter, new) {
                return Err(format!("failed quota: {}: {missing}", own.name));
            }
        }
        let mut amounts = Vec::new();
        for own in self.quotas.iter().filter(counting) {
            let more = more(own, meter, new, old)?;
            if more.is_empty() {
                continue;
            }
            self.allow(own, &more)?;
            amounts.push((own.name.clone(), more));
        }
        Ok(amounts)
    }

    fn allow(&self, own: &Booked, more: &Amounts) -> Result<(), String> {
        let taken = self.taken(own);
        let of = |amounts: &Amounts, name: &str| amounts.get(name).unwrap_or(Quantity::ZERO);
        let exceeds = |name: &str| {
            let sum = of(&taken, name).checked_add(of(more, name));
            sum.map_or(true, |sum| sum > of(&own.quota.hard, name))
        };
        let mut requested = more.clone();
        requested.retain(|name, _| exceeds(name));
        if requested.is_empty() {
            return Ok(());
        }
        let (mut used, mut limited) = (Amounts::default(), Amounts::default());
        for (name, _) in requested.iter() {
            used.set(name, of(&taken, name));
            limited.set(name, of(&own.quota.hard, name));
        }
        Err(format!(
            "exceeded quota: {}, requested: {requested}, used: {used}, limited: {limited}",
            own.name
        ))
    }

    /// Holds a share for a write; gives its number.
    pub(super) fn hold(&mut self, change: Change, amounts: Vec<(Str, Amounts)>) -> u64 {
        self.number += 1;
        self.shares.push(Share {
            number: self.number,
            change,
            amounts,
            stored: None,
        });
        self.number
    }

    /// The write did not happen.
    pub(super) fn give_back(&mut self, number: u64) {
        self.shares.retain(|share| share.number != number);
    }

    /// The write happened: its share is held until the sums have it.
    pub(super) fn keep(&mut self, number: u64, revision: u64) {
        let Some(at) = self.shares.iter().position(|own| own.number == number) else {
            return;
        };
        if revision <= self.heard || self.has_counted(&self.shares[at].change.store, revision) {
            self.shares.swap_remove(at);
        } else {
            self.shares[at].stored = Some(revision);
        }
    }
}

/// What a write takes of a quota beyond what the object took before.
fn more(own: &Booked, meter: &Meter, new: &Value, old: Option<&Value>) -> Result<Amounts, String> {
    let mut usage = own.quota.usage(meter, new);
    let negative = usage.iter().filter(|(_, amount)| amount.sign() < 0);
    let negative: Vec<&str> = negative.map(|(name, _)| name).collect();
    if !negative.is_empty() {
        let names = negative.join(",");
        return Err(format!("quota usage is negative for resource(s): {names}"));
    }
    if let Some(old) = old {
        usage.subtract_all(&own.quota.usage(meter, old));
    }
    usage.retain(|_, amount| amount.sign() > 0);
    Ok(usage)
}

/// How the objects of a resource in storage are measured.
pub(super) fn meter(store: &str) -> Option<Meter> {
    let (group, plural) = store.split_once('/')?;
    Meter::of(if group == "core" { "" } else { group }, plural)
}

fn value(entry: &Entry) -> Value {
    // What does not parse counts as an object without content.
    bareboat_wire::json::parse(entry.json()).map_or(Value::Null, |parsed| parsed.value)
}
