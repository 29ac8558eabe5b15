//! ResourceQuota semantics: which objects a quota counts, and how much each uses.
//!
//! Pure functions. The quota controller sums up usage and rejects writes.

mod claims;
mod meter;
mod pods;
mod scope;

pub use crate::resources::Amounts;
pub use meter::Meter;
pub use scope::Term;

use crate::reach::Reach;
use bareboat_api::Value;

/// A parsed ResourceQuota.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// The limits by resource.
    pub hard: Amounts,
    /// An object counts if all terms match it.
    pub scope: Vec<Term>,
}

impl Quota {
    /// Parses a ResourceQuota.
    pub fn read(quota: &Value) -> Quota {
        Quota {
            hard: Amounts::read(quota.members(&["spec", "hard"])),
            scope: Term::read(quota),
        }
    }

    /// Returns whether this quota limits any resource that objects of a kind use.
    pub fn concerns(&self, meter: &Meter) -> bool {
        self.hard.iter().any(|(name, _)| meter.covers(name))
    }

    /// Returns whether this quota counts an object.
    pub fn counts(&self, meter: &Meter, object: &Value) -> bool {
        self.concerns(meter) && self.scope.iter().all(|term| meter.is_within(term, object))
    }

    /// Returns how much of this quota an object uses; empty if it is not counted.
    pub fn usage(&self, meter: &Meter, object: &Value) -> Amounts {
        if !self.counts(meter, object) {
            return Amounts::default();
        }
        let mut usage = meter.usage(object);
        usage.retain(|name, _| self.hard.get(name).is_some());
        usage
    }

    /// Returns the usage of several objects of a kind that [only counts](Meter::only_counts).
    pub fn usage_of_many(&self, meter: &Meter, number: usize) -> Amounts {
        let mut usage = self.usage(meter, &Value::Null);
        let names: Vec<String> = usage.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            usage.set(name, meter::count(number));
        }
        usage
    }

    /// Returns which required resources an object does not specify, if any.
    pub fn missing(&self, meter: &Meter, object: &Value) -> Option<String> {
        let required = self.hard.iter().map(|(name, _)| name);
        meter.missing(required.filter(|name| meter.covers(name)), object)
    }
}

#[cfg(test)]
mod tests;
