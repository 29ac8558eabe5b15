//! What evaluations may cost and have cost.

use crate::error::EvalError;

/// The cost that evaluations may still run up, and what they have.
///
/// Each evaluation is limited by itself as well: by default to what Kubernetes allows per call.
#[derive(Clone, Debug)]
pub struct Budget {
    per_call: u64,
    remaining: u64,
    pub(crate) spent: u64,
    pub(crate) limit: u64,
    last: u64,
}

/// What one evaluation may cost in Kubernetes.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

impl Budget {
    /// A budget for several evaluations, each of which may cost [`PER_CALL_LIMIT`] at most.
    pub fn new(total: u64) -> Budget {
        Budget::with_per_call(total, PER_CALL_LIMIT)
    }

    /// A budget with its own limit per evaluation.
    pub fn with_per_call(total: u64, per_call: u64) -> Budget {
        Budget {
            per_call,
            remaining: total,
            spent: 0,
            limit: per_call.min(total),
            last: 0,
        }
    }

    /// What is left for further evaluations.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// What the last evaluation cost.
    pub fn last_cost(&self) -> u64 {
        self.last
    }

    /// Takes a cost off that was run up elsewhere.
    pub fn deduct(&mut self, cost: u64) {
        self.remaining = self.remaining.saturating_sub(cost);
    }

    pub(crate) fn start(&mut self) {
        self.spent = 0;
        self.limit = self.per_call.min(self.remaining);
    }

    pub(crate) fn finish(&mut self) {
        self.last = self.spent;
        self.remaining = self.remaining.saturating_sub(self.spent);
    }

    /// Adds a cost; fails once the limit is passed.
    #[inline]
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit {
            return Err(EvalError::OutOfBudget);
        }
        Ok(())
    }

    /// Takes back a cost that upstream does not count where something stands.
    #[inline]
    pub(crate) fn refund(&mut self, cost: u64) {
        self.spent = self.spent.saturating_sub(cost);
    }

    /// Fails if a cost that is about to arise would pass the limit: asked before memory is taken
    /// for a result whose cost is charged afterwards.
    pub(crate) fn foresee(&self, cost: u64) -> Result<(), EvalError> {
        if self.spent.saturating_add(cost) > self.limit {
            return Err(EvalError::OutOfBudget);
        }
        Ok(())
    }
}
