//! What evaluations may cost and have cost.

use crate::error::EvalError;
use crate::library::go_regex::{Steps, TooManySteps};
use crate::value::Val;

/// The cost that evaluations may still run up, and what they have.
///
/// Each evaluation is limited by itself as well: by default to what Kubernetes allows per call.
///
/// The cost is the one of Kubernetes, which does not see everything: text that is replaced by longer text,
/// or lists that hold one another many times. Two further limits therefore hold: on the memory that an
/// evaluation takes for what it makes, and on its work. An evaluation that passes one of them fails.
#[derive(Clone, Debug)]
pub struct Budget {
    per_call: u64,
    remaining: u64,
    pub(crate) spent: u64,
    pub(crate) limit: u64,
    last: u64,
    /// The bytes this evaluation may still take, and all evaluations together.
    memory: u64,
    total_memory: u64,
    work: u64,
    total_work: u64,
}

/// What one evaluation may cost in Kubernetes.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// The bytes that one evaluation may take for strings, lists and maps it makes.
const MEMORY: u64 = 16 << 20;
/// The bytes that all evaluations of a budget may take, one after the other.
const TOTAL_MEMORY: u64 = 256 << 20;
/// The work that all evaluations of a budget may do beyond what their cost tells. A unit is a value that
/// is looked at, a step of a regular expression, or some bytes that are read.
const TOTAL_WORK: u64 = 1 << 26;
/// How many bytes are read for one unit of work.
const BYTES_READ: usize = 64;

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
            memory: MEMORY,
            total_memory: TOTAL_MEMORY,
            work: TOTAL_WORK,
            total_work: TOTAL_WORK,
        }
    }

    /// The same budget with another limit on work.
    #[must_use]
    pub fn with_work(mut self, units: u64) -> Budget {
        self.work = units;
        self.total_work = units;
        self
    }

    /// What is left for further evaluations.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// What the last evaluation cost.
    pub fn last_cost(&self) -> u64 {
        self.last
    }

    /// The bytes that all evaluations so far have taken for what they made.
    pub fn allocated(&self) -> u64 {
        TOTAL_MEMORY - self.total_memory
    }

    /// The work that all evaluations so far have done.
    pub fn worked(&self) -> u64 {
        self.total_work - self.work
    }

    /// Takes a cost off that was run up elsewhere.
    pub fn deduct(&mut self, cost: u64) {
        self.remaining = self.remaining.saturating_sub(cost);
    }

    pub(crate) fn start(&mut self) {
        self.spent = 0;
        self.limit = self.per_call.min(self.remaining);
        self.memory = MEMORY;
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

    /// Takes memory; fails when this evaluation or all of them have taken too much. Asked before the
    /// memory is really taken wherever a result can be much larger than what it is made of.
    #[inline]
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        let bytes = bytes as u64;
        match (
            self.memory.checked_sub(bytes),
            self.total_memory.checked_sub(bytes),
        ) {
            (Some(memory), Some(total)) => {
                self.memory = memory;
                self.total_memory = total;
                Ok(())
            }
            _ => Err(EvalError::OutOfBudget),
        }
    }

    /// Takes the memory of a list of so many elements.
    pub(crate) fn allocate_list(&mut self, elements: usize) -> Result<(), EvalError> {
        self.allocate(elements.saturating_mul(size_of::<Val<'_>>()))
    }

    /// Does work; fails when there was too much of it.
    #[inline]
    pub(crate) fn work(&mut self, units: u64) -> Result<(), EvalError> {
        match self.work.checked_sub(units) {
            Some(left) => {
                self.work = left;
                Ok(())
            }
            None => Err(EvalError::OutOfBudget),
        }
    }

    /// The work of looking at a value, without what is in a list or map.
    #[inline]
    pub(crate) fn look_at(&mut self, value: &Val<'_>) -> Result<(), EvalError> {
        let bytes = match value {
            Val::String(text) => text.as_str().len(),
            Val::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.work(1 + (bytes / BYTES_READ) as u64)
    }

    /// The same for the argument of a function, which may look at every element of a list.
    pub(crate) fn look_through(&mut self, value: &Val<'_>) -> Result<(), EvalError> {
        if let Val::List(list) = value {
            self.work(list.len() as u64 / 8)?;
        }
        self.look_at(value)
    }

    /// Runs a search that counts its steps.
    pub(crate) fn search<T>(
        &mut self,
        search: impl FnOnce(&mut Steps) -> Result<T, TooManySteps>,
    ) -> Result<T, EvalError> {
        let mut steps = Steps::limited(self.work);
        let found = search(&mut steps);
        self.work = steps.left();
        found.map_err(|TooManySteps| EvalError::OutOfBudget)
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
