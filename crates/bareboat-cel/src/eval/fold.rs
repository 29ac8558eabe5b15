//! Comprehensions.

use super::{Machine, Slot};
use crate::error::EvalError;
use crate::program::FoldOp;
use crate::value::{Object, Val};
use bareboat_api::interrupt;

/// The collection that a comprehension iterates over.
enum Range<'a> {
    List(crate::value::List<'a>),
    Map(crate::value::MapVal<'a>, Vec<Val<'a>>),
    Object(Object<'a>, Vec<bareboat_api::Str>),
}

impl<'a> Range<'a> {
    fn of(value: Val<'a>) -> Result<Range<'a>, EvalError> {
        Ok(match value {
            Val::List(list) => Range::List(list),
            Val::Map(map) => {
                let keys = map.keys();
                Range::Map(map, keys)
            }
            Val::Object(object) => {
                let names = object.names();
                Range::Object(object, names)
            }
            other => {
                return Err(EvalError::new(format!(
                    "got '{}', expected iterable type",
                    other.type_of().name()
                )));
            }
        })
    }

    fn len(&self) -> usize {
        match self {
            Range::List(list) => list.len(),
            Range::Map(_, keys) => keys.len(),
            Range::Object(_, names) => names.len(),
        }
    }

    /// Returns the value of a single loop variable: elements of lists, keys of maps.
    fn single(&self, index: usize) -> Result<Val<'a>, EvalError> {
        match self {
            Range::List(list) => list.get(index).unwrap_or(Ok(Val::Null)),
            _ => self.first(index),
        }
    }

    /// Returns the value of the first of two loop variables: indexes and keys.
    fn first(&self, index: usize) -> Result<Val<'a>, EvalError> {
        Ok(match self {
            Range::List(_) => Val::Int(index as i64),
            Range::Map(_, keys) => keys[index].clone(),
            Range::Object(_, names) => Val::text(names[index].as_str()),
        })
    }

    /// Returns the value of the second of two loop variables: elements and values.
    fn second(&self, index: usize) -> Result<Val<'a>, EvalError> {
        match self {
            Range::List(list) => list.get(index).unwrap_or(Ok(Val::Null)),
            Range::Map(map, keys) => map.get(&keys[index]).unwrap_or(Ok(Val::Null)),
            Range::Object(object, names) => object.field(&names[index]).unwrap_or(Ok(Val::Null)),
        }
    }
}

impl<'a> Machine<'_, 'a> {
    pub(super) fn fold(&mut self, fold: &'a FoldOp) -> Result<Val<'a>, EvalError> {
        let range = Range::of(self.eval(fold.range)?)?;
        if !matches!(range, Range::List(_)) {
            // The keys were collected, even if the first one ends the loop.
            self.budget.work(range.len() as u64)?;
        }
        let init = self.eval(fold.init)?;
        let (accu, var) = (usize::from(fold.accu), usize::from(fold.var));
        self.slots[accu] = Slot::Value(init);
        for index in 0..range.len() {
            if interrupt::requested() {
                return Err(EvalError::OutOfBudget);
            }
            let first = match fold.var2 {
                Some(_) => range.first(index),
                None => range.single(index),
            };
            self.slots[var] = slot(first);
            if let Some(var2) = fold.var2 {
                self.slots[usize::from(var2)] = slot(range.second(index));
            }
            if let Some(condition) = fold.condition
                && !matches!(self.eval(condition)?, Val::Bool(true))
            {
                break;
            }
            match self.eval(fold.step) {
                Ok(value) => self.slots[accu] = Slot::Value(value),
                Err(EvalError::OutOfBudget) => return Err(EvalError::OutOfBudget),
                // Without a condition, later steps cannot absorb the error.
                Err(error) if fold.condition.is_none() => return Err(error),
                Err(error) => self.slots[accu] = Slot::Failed(error),
            }
        }
        let result = self.eval(fold.result);
        self.slots[accu] = Slot::Empty;
        self.slots[var] = Slot::Empty;
        result
    }
}

fn slot(value: Result<Val<'_>, EvalError>) -> Slot<'_> {
    match value {
        Ok(value) => Slot::Value(value),
        Err(error) => Slot::Failed(error),
    }
}
