//! Set functions on lists.

use super::{Decl, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::value::{List, Val, equal};

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "sets.contains",
        call: |budget, args| match args {
            [Val::List(list), Val::List(part)] => Ok(Val::Bool(contains(list, part, budget)?)),
            _ => no_such_overload(),
        },
        overloads: &[("list_sets_contains_list", "list(T), list(T) -> bool")],
    },
    Decl {
        name: "sets.equivalent",
        call: |budget, args| match args {
            [Val::List(a), Val::List(b)] => Ok(Val::Bool(
                contains(a, b, budget)? && contains(b, a, budget)?,
            )),
            _ => no_such_overload(),
        },
        overloads: &[("list_sets_equivalent_list", "list(T), list(T) -> bool")],
    },
    Decl {
        name: "sets.intersects",
        call: |budget, args| match args {
            [Val::List(a), Val::List(b)] => {
                for item in a.iter() {
                    if holds(b, &item?, budget)? {
                        return Ok(Val::Bool(true));
                    }
                }
                Ok(Val::Bool(false))
            }
            _ => no_such_overload(),
        },
        overloads: &[("list_sets_intersects_list", "list(T), list(T) -> bool")],
    },
];

/// Returns whether a list contains a value.
pub(crate) fn holds(
    list: &List<'_>,
    value: &Val<'_>,
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    for item in list.iter() {
        if equal(&item?, value, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(list: &List<'_>, part: &List<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !holds(list, &item?, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}
