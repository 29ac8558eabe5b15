//! Builds lists, maps and objects.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Machine, Slot, arithmetic};
use crate::cost;
use crate::error::EvalError;
use crate::library::lists;
use crate::program::{OpId, Span, StructOp};
use crate::value::{Built, Entries, List, MapVal, Object, Val};

impl<'a> Machine<'_, 'a> {
    pub(super) fn list(&mut self, items: Span, optional: &[u32]) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let mut values = Vec::with_capacity(items.len as usize);
        for (index, item) in (0..).zip(code.span(items)) {
            let value = match self.eval(*item) {
                Ok(value) => value,
                Err(error) => {
                    self.budget.charge(cost::LIST)?;
                    return Err(error);
                }
            };
            if optional.contains(&index) {
                values.extend(present(value)?);
            } else {
                values.push(value);
            }
        }
        self.budget.charge(cost::LIST)?;
        self.budget.allocate_list(values.len())?;
        Ok(Val::list(values))
    }

    pub(super) fn map(&mut self, entries: Span, optional: &[u32]) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let mut map = Entries::default();
        for (index, entry) in (0..).zip(code.span(entries).chunks_exact(2)) {
            let key = self.eval(entry[0])?;
            let mut value = self.eval(entry[1])?;
            if optional.contains(&index) {
                match present(value)? {
                    Some(inner) => value = inner,
                    None => continue,
                }
            }
            if code.unique_keys {
                let shown = key.clone();
                if !map.insert(key, value)? {
                    return Err(EvalError::new(format!("repeated key: {shown}")));
                }
            } else {
                map.set(key, value)?;
            }
        }
        self.budget.charge(cost::MAP)?;
        self.budget.allocate(map.bytes())?;
        Ok(Val::Map(MapVal::Values(Arc::new(map))))
    }

    pub(super) fn message(&mut self, message: &'a StructOp) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        let mut fields = Vec::with_capacity(message.names.len());
        let values = message.names.iter().zip(code.span(message.values));
        for (index, (name, op)) in (0..).zip(values) {
            let mut value = self.eval(*op)?;
            if message.optional.contains(&index) {
                match present(value)? {
                    Some(inner) => value = inner,
                    None => continue,
                }
            }
            fields.push((name.clone(), value));
        }
        self.budget.charge(cost::STRUCT)?;
        self.budget.allocate_list(2 * fields.len())?;
        Ok(Val::Object(Object::Built(Arc::new(Built {
            ty: message.ty.clone(),
            fields,
        }))))
    }

    pub(super) fn append(
        &mut self,
        slot: u16,
        item: OpId,
        constant: bool,
    ) -> Result<Val<'a>, EvalError> {
        // The cost of reading the accumulator, of the list of one element, and of the addition.
        self.budget.charge(1)?;
        let list = match std::mem::replace(&mut self.slots[usize::from(slot)], Slot::Empty) {
            Slot::Value(list) => list,
            Slot::Failed(error) => return Err(error),
            _ => return Err(EvalError::no_such_overload()),
        };
        let item = self.eval(item)?;
        let list_cost = if constant { 0 } else { cost::LIST };
        self.budget.charge(list_cost + 1)?;
        match list {
            Val::List(List::Values { mut items, decl }) => {
                let copied = match Arc::strong_count(&items) {
                    1 => 0,
                    _ => items.len(),
                };
                self.budget.allocate_list(copied + 1)?;
                Arc::make_mut(&mut items).push(item);
                Ok(Val::List(List::Values { items, decl }))
            }
            other => arithmetic::add(other, Val::list(vec![item]), self.budget),
        }
    }

    pub(super) fn insert(&mut self, slot: u16, args: Span) -> Result<Val<'a>, EvalError> {
        let code = self.code;
        self.budget.charge(1)?;
        let map = match std::mem::replace(&mut self.slots[usize::from(slot)], Slot::Empty) {
            Slot::Value(map) => map,
            Slot::Failed(error) => return Err(error),
            _ => return Err(EvalError::no_such_overload()),
        };
        let mut added: SmallVec<[Val<'a>; 2]> = SmallVec::new();
        for arg in code.span(args) {
            added.push(self.eval(*arg)?);
        }
        self.budget.charge(1)?;
        lists::insert(map, &added, self.budget)
    }
}

/// Returns the value of an optional.
fn present(value: Val<'_>) -> Result<Option<Val<'_>>, EvalError> {
    match value {
        Val::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
        _ => Err(EvalError::no_such_overload()),
    }
}
