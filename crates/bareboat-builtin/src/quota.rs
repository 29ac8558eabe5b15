//! Quotas as they are meant: which objects they count, and what those take.
//!
//! Pure: sums over many objects, and who is refused when, is the business of whoever keeps account.

mod claims;
mod meter;
mod pods;
mod scope;

pub use crate::resources::Amounts;
pub use meter::Meter;
pub use scope::Term;

use crate::reach::Reach;
use bareboat_api::Value;

/// What one ResourceQuota asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// How much there may be, by resource.
    pub hard: Amounts,
    /// Which objects count: those all terms are true of.
    pub scope: Vec<Term>,
}

impl Quota {
    /// Reads a ResourceQuota.
    pub fn read(quota: &Value) -> Quota {
        Quota {
            hard: Amounts::read(quota.members(&["spec", "hard"])),
            scope: Term::read(quota),
        }
    }

    /// Whether this quota counts anything objects of a kind take.
    pub fn concerns(&self, meter: &Meter) -> bool {
        self.hard.iter().any(|(name, _)| meter.covers(name))
    }

    /// Whether this quota counts an object.
    pub fn counts(&self, meter: &Meter, object: &Value) -> bool {
        self.concerns(meter) && self.scope.iter().all(|term| meter.is_within(term, object))
    }

    /// What an object takes of this quota; nothing if it is not counted.
    pub fn usage(&self, meter: &Meter, object: &Value) -> Amounts {
        if !self.counts(meter, object) {
            return Amounts::default();
        }
        let mut usage = meter.usage(object);
        usage.retain(|name, _| self.hard.get(name).is_some());
        usage
    }

    /// What so many objects take, of a kind that [only counts](Meter::only_counts).
    pub fn usage_of_many(&self, meter: &Meter, number: usize) -> Amounts {
        let mut usage = self.usage(meter, &Value::Null);
        let names: Vec<String> = usage.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            usage.set(name, meter::count(number));
        }
        usage
    }

    /// What a kind cannot be counted without, if an object lacks it.
    pub fn missing(&self, meter: &Meter, object: &Value) -> Option<String> {
        let required = self.hard.iter().map(|(name, _)| name);
        meter.missing(required.filter(|name| meter.covers(name)), object)
    }
}

#[cfg(test)]
mod tests;
