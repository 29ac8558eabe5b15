//! The quotas of one namespace, what is used of them, and what unfinished writes have reserved.
//!
//! Usage is the sum over stored objects, up to a revision for each resource. Later changes are added by events of the feed.
//! A reservation belongs to a change of one object at one revision. When an event shows that the object left this revision,
//! the change was stored or never will be, and the reservation is dropped.

use super::QUOTAS;
use bareboat_api::quantity::Quantity;
use bareboat_api::{Str, Value};
use bareboat_builtin::quota::{Amounts, Meter, Quota};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The usage of one namespace.
#[derive(Default)]
pub(crate) struct NamespaceUsage {
    /// The quotas may have changed since they were read.
    stale: AtomicBool,
    /// Events were lost, so everything must be counted again.
    recount: AtomicBool,
    usage: Mutex<Usage>,
}

/// The quotas of a namespace and their usage.
#[derive(Default)]
pub(crate) struct Usage {
    pub(super) quotas: Vec<QuotaUsage>,
    /// The revision up to which changes of a resource are in the sums.
    counted: HashMap<Box<str>, u64>,
    /// The revision up to which changes are in the sums, for resources that had no objects.
    since: u64,
    /// The revision of the last event.
    last_event: u64,
    reservations: Vec<Reservation>,
    number: u64,
}

/// A quota and what is used of it.
#[derive(Clone)]
pub(crate) struct QuotaUsage {
    pub(super) name: Str,
    pub(super) quota: Quota,
    pub(super) used: Amounts,
}

/// The amounts that an unfinished write takes from quotas.
struct Reservation {
    number: u64,
    change: PendingWrite,
    /// The amounts, by quota.
    amounts: Vec<(Str, Amounts)>,
    /// The revision of the write, once it is stored.
    stored: Option<u64>,
}

/// A change of one object at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingWrite {
    pub(super) store: Box<str>,
    pub(super) key: Box<str>,
    /// The revision before the change; 0 for a new object.
    pub(super) base: u64,
}

impl NamespaceUsage {
    pub(super) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    pub(super) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    pub(super) fn require_recount(&self) {
        self.recount.store(true, Ordering::Release);
        self.mark_stale();
    }

    /// The usage of the quotas as they are stored now.
    pub(super) fn current(&self, store: &Store, namespace: &str) -> MutexGuard<'_, Usage> {
        let mut usage = self.usage.lock();
        // Cleared before the quotas are read: a change after that sets it again.
        if self.stale.swap(false, Ordering::AcqRel) {
            let recount = self.recount.swap(false, Ordering::AcqRel);
            usage.read_quotas(store, namespace, recount);
        }
        usage
    }

    /// The usage of the quotas as they were last read.
    pub(super) fn lock(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock()
    }
}

impl Usage {
    fn read_quotas(&mut self, store: &Store, namespace: &str, recount: bool) {
        let prefix = format!("{namespace}/");
        let snapshot = store.resource(QUOTAS).snapshot();
        let quotas = snapshot.range(&prefix, None).map(|entry| QuotaUsage {
            name: Str::new(entry.name()),
            quota: Quota::read(&value(entry)),
            used: Amounts::default(),
        });
        let quotas: Vec<QuotaUsage> = quotas.collect();
        let same = |(a, b): (&QuotaUsage, &QuotaUsage)| a.name == b.name && a.quota == b.quota;
        let unchanged =
            quotas.len() == self.quotas.len() && quotas.iter().zip(&self.quotas).all(same);
        if recount || !unchanged {
            self.quotas = quotas;
            self.count(store, &prefix);
        }
    }

    /// Sums up the stored objects.
    fn count(&mut self, store: &Store, prefix: &str) {
        self.counted.clear();
        // Read before the resources are listed: a resource that is not listed has only later changes.
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
        let mut reservations = std::mem::take(&mut self.reservations);
        reservations.retain(|reservation| {
            reservation
                .stored
                .is_none_or(|at| !self.has_counted(&reservation.change.store, at))
        });
        self.reservations = reservations;
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

    /// Applies an event. Returns whether a sum changed.
    pub(super) fn apply_event(&mut self, store: &str, event: &Event) -> bool {
        self.last_event = self.last_event.max(event.rev);
        if self.has_counted(store, event.rev) {
            return false;
        }
        let change = PendingWrite {
            store: store.into(),
            key: event.key().into(),
            base: event.prev.as_ref().map_or(0, |prev| prev.revision()),
        };
        self.reservations
            .retain(|reservation| reservation.change != change);
        let Some(meter) = meter(store) else {
            return false;
        };
        if meter.only_counts() && event.kind == EventKind::Modified {
            return false;
        }
        if !self.quotas.iter().any(|own| own.quota.concerns(&meter)) {
            return false;
        }
        let read = |entry: &Entry| match meter.only_counts() {
            true => Value::Null,
            false => value(entry),
        };
        let before = event.prev.as_deref().map(read);
        let after = (event.kind != EventKind::Deleted).then(|| read(&event.entry));
        let mut changed = false;
        for own in &mut self.quotas {
            let usage = |object: &Option<Value>| {
                let object = object.as_ref();
                object.map_or_else(Amounts::default, |object| own.quota.usage(&meter, object))
            };
            let (before, after) = (usage(&before), usage(&after));
            if before != after {
                own.used.subtract_all(&before);
                own.used.add_all(&after);
                changed = true;
            }
        }
        changed
    }

    /// What is used and reserved of a quota.
    fn taken(&self, own: &QuotaUsage) -> Amounts {
        let mut taken = own.used.clone();
        let reserved = self.reservations.iter();
        let reserved = reserved.flat_map(|reservation| &reservation.amounts);
        for (_, amounts) in reserved.filter(|(name, _)| *name == own.name) {
            taken.add_all(amounts);
        }
        taken
    }

    /// What a write needs of each quota, or why it is refused.
    pub(super) fn check(
        &self,
        meter: &Meter,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<(Str, Amounts)>, String> {
        let counting = |own: &&QuotaUsage| own.quota.counts(meter, new);
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
            self.check_limit(own, &more)?;
            amounts.push((own.name.clone(), more));
        }
        Ok(amounts)
    }

    fn check_limit(&self, own: &QuotaUsage, more: &Amounts) -> Result<(), String> {
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

    /// Reserves what a write needs. Returns the number of the reservation.
    pub(super) fn reserve(&mut self, change: PendingWrite, amounts: Vec<(Str, Amounts)>) -> u64 {
        self.number += 1;
        self.reservations.push(Reservation {
            number: self.number,
            change,
            amounts,
            stored: None,
        });
        self.number
    }

    /// Drops the reservation of a write that failed.
    pub(super) fn release(&mut self, number: u64) {
        self.reservations
            .retain(|reservation| reservation.number != number);
    }

    /// Notes that a write was stored. Its reservation stays until the sums include it.
    pub(super) fn confirm(&mut self, number: u64, revision: u64) {
        let Some(at) = self
            .reservations
            .iter()
            .position(|own| own.number == number)
        else {
            return;
        };
        if revision <= self.last_event
            || self.has_counted(&self.reservations[at].change.store, revision)
        {
            self.reservations.swap_remove(at);
        } else {
            self.reservations[at].stored = Some(revision);
        }
    }
}

/// What a write needs of a quota beyond what the object used before.
fn more(
    own: &QuotaUsage,
    meter: &Meter,
    new: &Value,
    old: Option<&Value>,
) -> Result<Amounts, String> {
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

/// How usage of a stored resource is measured.
pub(super) fn meter(store: &str) -> Option<Meter> {
    let (group, plural) = store.split_once('/')?;
    Meter::of(if group == "core" { "" } else { group }, plural)
}

fn value(entry: &Entry) -> Value {
    // An object that cannot be parsed counts as an object without content.
    bareboat_wire::json::parse(entry.json()).map_or(Value::Null, |parsed| parsed.value)
}
