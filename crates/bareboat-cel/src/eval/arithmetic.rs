//! Arithmetic, checked for overflow.

use std::sync::Arc;

use crate::budget::Budget;
use crate::decl::{DeclType, JsonType, ListOrder};
use crate::error::EvalError;
use crate::program::Arith;
use crate::value::time::moved;
use crate::value::{List, Val, equal, same_keys};

fn overflow(what: &'static str) -> EvalError {
    EvalError::new(what)
}

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";
const DURATION: &str = "integer overflow";
const TIMESTAMP: &str = "timestamp overflow";

/// Adds two values; joins lists and strings.
pub(crate) fn add<'a>(a: Val<'a>, b: Val<'a>, budget: &mut Budget) -> Result<Val<'a>, EvalError> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => a.checked_add(b).map(Val::Int).ok_or(overflow(INT)),
        (Val::Uint(a), Val::Uint(b)) => a.checked_add(b).map(Val::Uint).ok_or(overflow(UINT)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::String(a), Val::String(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            budget.allocate(a.len() + b.len())?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Val::text(text))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            budget.allocate(a.len() + b.len())?;
            Ok(Val::bytes([&a[..], &b[..]].concat()))
        }
        (Val::List(a), Val::List(b)) => join(a, &b, budget),
        (Val::Duration(a), Val::Duration(b)) => a
            .checked_add(b)
            .map(Val::Duration)
            .ok_or(overflow(DURATION)),
        (Val::Timestamp(time), Val::Duration(by)) | (Val::Duration(by), Val::Timestamp(time)) => {
            moved(time, by, false)
                .map(Val::Timestamp)
                .ok_or(overflow(TIMESTAMP))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Applies any operator except `+`.
pub(super) fn combine<'a>(how: Arith, a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>, EvalError> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => ints(how, *a, *b).map(Val::Int),
        (Val::Uint(a), Val::Uint(b)) => uints(how, *a, *b).map(Val::Uint),
        (Val::Double(a), Val::Double(b)) => match how {
            Arith::Subtract => Ok(Val::Double(a - b)),
            Arith::Multiply => Ok(Val::Double(a * b)),
            Arith::Divide => Ok(Val::Double(a / b)),
            _ => Err(EvalError::no_such_overload()),
        },
        (a, b) if how == Arith::Subtract => subtract_times(a, b),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn ints(how: Arith, a: i64, b: i64) -> Result<i64, EvalError> {
    let result = match how {
        Arith::Add => a.checked_add(b),
        Arith::Subtract => a.checked_sub(b),
        Arith::Multiply => a.checked_mul(b),
        Arith::Divide if b == 0 => return Err(EvalError::new("division by zero")),
        Arith::Divide => a.checked_div(b),
        Arith::Modulo if b == 0 => return Err(EvalError::new("modulus by zero")),
        Arith::Modulo => a.checked_rem(b),
    };
    result.ok_or(overflow(INT))
}

fn uints(how: Arith, a: u64, b: u64) -> Result<u64, EvalError> {
    let result = match how {
        Arith::Add => a.checked_add(b),
        Arith::Subtract => a.checked_sub(b),
        Arith::Multiply => a.checked_mul(b),
        Arith::Divide if b == 0 => return Err(EvalError::new("division by zero")),
        Arith::Divide => a.checked_div(b),
        Arith::Modulo if b == 0 => return Err(EvalError::new("modulus by zero")),
        Arith::Modulo => a.checked_rem(b),
    };
    result.ok_or(overflow(UINT))
}

fn subtract_times<'a>(a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>, EvalError> {
    match (a, b) {
        (Val::Duration(a), Val::Duration(b)) => a
            .checked_sub(*b)
            .map(Val::Duration)
            .ok_or(overflow(DURATION)),
        (Val::Timestamp(time), Val::Duration(by)) => moved(*time, *by, true)
            .map(Val::Timestamp)
            .ok_or(overflow(TIMESTAMP)),
        (Val::Timestamp(a), Val::Timestamp(b)) => {
            a.since(*b).map(Val::Duration).ok_or(overflow(DURATION))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Negates a number.
pub(super) fn negate<'a>(value: &Val<'a>) -> Result<Val<'a>, EvalError> {
    match value {
        Val::Int(value) => value.checked_neg().map(Val::Int).ok_or(overflow(INT)),
        Val::Double(value) => Ok(Val::Double(-value)),
        Val::Duration(value) => value
            .checked_neg()
            .map(Val::Duration)
            .ok_or(overflow(DURATION)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Joins two lists: sets without duplicates, map lists by their keys, others end to end.
fn join<'a>(a: List<'a>, b: &List<'a>, budget: &mut Budget) -> Result<Val<'a>, EvalError> {
    let decl = a.decl();
    budget.allocate_list(a.len() + b.len())?;
    let mut items = match a {
        List::Values { items, .. } => items,
        json => Arc::new(json.to_vec()?),
    };
    let joined = Arc::make_mut(&mut items);
    joined.reserve(b.len());
    match order(decl) {
        ListOrder::Atomic => {
            for item in b.iter() {
                joined.push(item?);
            }
        }
        ListOrder::Set => {
            'next: for item in b.iter() {
                let item = item?;
                for known in joined.iter() {
                    if equal(known, &item, budget)? {
                        continue 'next;
                    }
                }
                joined.push(item);
            }
        }
        ListOrder::Map(keys) => {
            'next: for item in b.iter() {
                let item = item?;
                for known in joined.iter_mut() {
                    if same_keys(keys, known, &item, budget)? {
                        *known = item;
                        continue 'next;
                    }
                }
                joined.push(item);
            }
        }
    }
    Ok(Val::List(List::Values { items, decl }))
}

fn order(decl: Option<&DeclType>) -> &ListOrder {
    match decl.map(|decl| &decl.json_type) {
        Some(JsonType::List { order, .. }) => order,
        _ => &ListOrder::Atomic,
    }
}
