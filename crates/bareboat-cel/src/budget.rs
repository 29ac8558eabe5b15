//! Limits and counts the cost of evaluations.

use crate::error::EvalError;
use crate::library::go_regex::{Steps, TooManySteps};
use crate::value::Val;

/// The cost that evaluations have used, and may still use.
///
/// Each evaluation also has its own limit: by default Kubernetes' limit per call.
///
/// The cost model is that of Kubernetes, which misses some work: text that is replaced by longer
/// text, or lists that contain each other many times. Two more limits therefore apply: on the
/// memory that an evaluation allocates for its values, and on its work. An evaluation that exceeds
/// one of them fails.
#[derive(Clone, Debug)]
pub struct Budget {
    per_call: u64,
    remaining: u64,
    pub(crate) spent: u64,
    pub(crate) limit: u64,
    last: u64,
    /// The bytes that this evaluation, and all evaluations together, may still allocate.
    memory: u64,
    total_memory: u64,
    work: u64,
    total_work: u64,
}

/// Kubernetes' cost limit of one evaluation.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// The bytes that one evaluation may allocate for strings, lists and maps.
const MEMORY: u64 = 16 << 20;
/// The bytes that all evaluations of a budget may allocate in total.
const TOTAL_MEMORY: u64 = 256 << 20;
/// The work that all evaluations of a budget may do in addition to their cost. One unit is a value
/// visited, a step of a regular expression, or [`BYTES_READ`] bytes read.
const TOTAL_WORK: u64 = 1 << 26;
/// The bytes read per unit of work.
const BYTES_READ: usize = 64;

impl Budget {
    /// Returns a budget for several evaluations, each limited to [`PER_CALL_LIMIT`].
    pub fn new(total: u64) -> Budget {
        Budget::with_per_call(total, PER_CALL_LIMIT)
    }

    /// Returns a budget with its own limit per evaluation.
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

    /// Sets another limit on work.
    #[must_use]
    pub fn with_work(mut self, units: u64) -> Budget {
        self.work = units;
        self.total_work = units;
        self
    }

    /// Splits off a budget for one evaluation, which may run inside another one: a full cost limit
    /// per call, and half of the memory and work that are left. [`Budget::rejoin`] takes back what
    /// the evaluation did not use.
    #[must_use]
    pub fn split(&mut self) -> Budget {
        let (memory, work) = (self.total_memory / 2, self.work / 2);
        self.total_memory -= memory;
        self.work -= work;
        Budget {
            per_call: self.per_call,
            remaining: self.per_call,
            spent: 0,
            limit: self.per_call,
            last: 0,
            memory: MEMORY,
            total_memory: memory,
            work,
            total_work: work,
        }
    }

    /// Takes back the memory and work that a split budget did not use.
    pub fn rejoin(&mut self, part: Budget) {
        self.total_memory += part.total_memory;
        self.work += part.work;
    }

    /// Returns the cost left for further evaluations.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the cost of the last evaluation.
    pub fn last_cost(&self) -> u64 {
        self.last
    }

    /// Returns the bytes that all evaluations so far have allocated.
    pub fn allocated(&self) -> u64 {
        TOTAL_MEMORY - self.total_memory
    }

    /// Returns the work that all evaluations so far have done.
    pub fn worked(&self) -> u64 {
        self.total_work - self.work
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

    /// Adds a cost; fails when the limit is exceeded.
    #[inline]
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit {
            return Err(EvalError::OutOfBudget);
        }
        Ok(())
    }

    /// Takes back a cost that upstream does not count in this place.
    #[inline]
    pub(crate) fn refund(&mut self, cost: u64) {
        self.spent = self.spent.saturating_sub(cost);
    }

    /// Counts an allocation; fails when this evaluation or all of them exceed their limit. Called
    /// before the allocation wherever a result can be much larger than its inputs.
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

    /// Counts the allocation of a list with this many elements.
    pub(crate) fn allocate_list(&mut self, elements: usize) -> Result<(), EvalError> {
        self.allocate(elements.saturating_mul(size_of::<Val<'_>>()))
    }

    /// Counts work; fails when the limit is exceeded.
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

    /// Counts the work of visiting a value, without the elements of a list or map.
    #[inline]
    pub(crate) fn look_at(&mut self, value: &Val<'_>) -> Result<(), EvalError> {
        let bytes = match value {
            Val::String(text) => text.as_str().len(),
            Val::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.work(1 + (bytes / BYTES_READ) as u64)
    }

    /// Counts the work of visiting the argument of a function, which may visit every element of a
    /// list.
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

    /// Fails if a future cost would exceed the limit. Called before the allocation of a result
    /// whose cost is charged afterwards.
    pub(crate) fn foresee(&self, cost: u64) -> Result<(), EvalError> {
        if self.spent.saturating_add(cost) > self.limit {
            return Err(EvalError::OutOfBudget);
        }
        Ok(())
    }
}
