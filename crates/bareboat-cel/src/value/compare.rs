//! Equality and order of values; numbers of different types compare by value.

use std::cmp::Ordering;
use std::collections::HashMap;

use bareboat_api::Value;

use super::map::Key;
use super::{List, MapVal, Object, Val};
use crate::budget::Budget;
use crate::decl::{DeclType, JsonType, ListOrder};
use crate::error::EvalError;

/// Returns whether two values are equal; values of different types are not.
pub(crate) fn equal(a: &Val<'_>, b: &Val<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    budget.look_at(a)?;
    Ok(match (a, b) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Int(a), Val::Int(b)) => a == b,
        (Val::String(a), Val::String(b)) => a.as_str() == b.as_str(),
        (Val::Bytes(a), Val::Bytes(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
        (
            Val::Int(_) | Val::Uint(_) | Val::Double(_),
            Val::Int(_) | Val::Uint(_) | Val::Double(_),
        ) => numbers(a, b) == Some(Ordering::Equal),
        (Val::List(a), Val::List(b)) => return lists(a, b, budget),
        (Val::Object(a), Val::Object(b)) => return objects(a, b, budget),
        (Val::Map(a), Val::Map(b)) => return maps(a, b, budget),
        (Val::Map(map), Val::Object(object)) | (Val::Object(object), Val::Map(map)) => {
            return object_and_map(object, map, budget);
        }
        (Val::Type(a), Val::Type(b)) => a.name() == b.name(),
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => return equal(a, b, budget),
            _ => false,
        },
        (Val::Special(a), Val::Special(b)) => return a.0.equals(&b.0),
        _ => false,
    })
}

/// Returns the order of two values, or `None` if they have none (or one is NaN).
pub(crate) fn compare(a: &Val<'_>, b: &Val<'_>) -> Result<Option<Ordering>, EvalError> {
    Ok(match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::String(a), Val::String(b)) => Some(a.as_str().cmp(b.as_str())),
        (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
        (Val::Duration(a), Val::Duration(b)) => Some(a.cmp(b)),
        (Val::Timestamp(a), Val::Timestamp(b)) => Some(a.cmp(b)),
        (
            Val::Int(_) | Val::Uint(_) | Val::Double(_),
            Val::Int(_) | Val::Uint(_) | Val::Double(_),
        ) => numbers(a, b),
        _ => return Err(EvalError::no_such_overload()),
    })
}

fn numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Double(a), b) => double_to_whole(*a, whole(b)),
        (a, Val::Double(b)) => double_to_whole(*b, whole(a)).map(Ordering::reverse),
        (a, b) => Some(whole(a).cmp(&whole(b))),
    }
}

fn whole(value: &Val<'_>) -> i128 {
    match value {
        Val::Int(value) => (*value).into(),
        Val::Uint(value) => (*value).into(),
        _ => 0,
    }
}

fn double_to_whole(a: f64, b: i128) -> Option<Ordering> {
    // A double beyond this is larger than every 64-bit integer.
    if a.abs() >= 2e19 {
        return a.partial_cmp(&0.0);
    }
    a.partial_cmp(&(b as f64))
}

fn lists(a: &List<'_>, b: &List<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.decl().or_else(|| b.decl()).map(|decl| &decl.json_type) {
        Some(JsonType::List {
            order: ListOrder::Set,
            ..
        }) => same_members(a, b, budget, equal, |value| {
            Some(vec![Some(Key::of(value)?)])
        }),
        Some(JsonType::List {
            order: ListOrder::Map(keys),
            ..
        }) => same_members(
            a,
            b,
            budget,
            |x, y, budget| Ok(same_keys(keys, x, y, budget)? && equal(x, y, budget)?),
            |value| keys_of(keys, value),
        ),
        _ => {
            for (x, y) in a.iter().zip(b.iter()) {
                if !equal(&x?, &y?, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Lists with at most this many elements are searched linearly; longer ones by key, if their
/// elements have keys.
const FEW: usize = 16;

/// Returns whether each element of one list has an equal element in the other. Equal elements have
/// equal keys.
fn same_members<'a>(
    a: &List<'a>,
    b: &List<'a>,
    budget: &mut Budget,
    same: impl Fn(&Val<'a>, &Val<'a>, &mut Budget) -> Result<bool, EvalError>,
    key_of: impl Fn(&Val<'a>) -> Option<Vec<Option<Key>>>,
) -> Result<bool, EvalError> {
    let known = a.to_vec()?;
    let mut by_key = None;
    // Unchanged lists are the common case, and have the same order.
    'next: for (index, value) in b.iter().enumerate() {
        let value = value?;
        if same(&known[index], &value, budget)? {
            continue;
        }
        let by_key = by_key.get_or_insert_with(|| by_key_of(&known, &key_of));
        let places = match (&*by_key, key_of(&value)) {
            (Some(by_key), Some(key)) => by_key.get(&key).cloned().unwrap_or_default(),
            _ => (0..known.len()).collect(),
        };
        for place in places {
            if same(&known[place], &value, budget)? {
                continue 'next;
            }
        }
        return Ok(false);
    }
    Ok(true)
}

/// Indexes elements by their keys; `None` if there are few elements, or one has no key.
fn by_key_of<'a>(
    known: &[Val<'a>],
    key_of: impl Fn(&Val<'a>) -> Option<Vec<Option<Key>>>,
) -> Option<HashMap<Vec<Option<Key>>, Vec<usize>>> {
    if known.len() <= FEW {
        return None;
    }
    let mut by_key: HashMap<_, Vec<usize>> = HashMap::with_capacity(known.len());
    for (place, value) in known.iter().enumerate() {
        by_key.entry(key_of(value)?).or_default().push(place);
    }
    Some(by_key)
}

/// Returns the keys of an element of a map list; `None` if one is not a scalar.
fn keys_of(keys: &[bareboat_api::Str], value: &Val<'_>) -> Option<Vec<Option<Key>>> {
    let key = |name: &bareboat_api::Str| match property(value, name) {
        None => Some(None),
        Some(found) => Key::of(&found.ok()?).map(Some),
    };
    keys.iter().map(key).collect()
}

/// Returns whether two elements of a map list have the same key.
pub(crate) fn same_keys(
    keys: &[bareboat_api::Str],
    a: &Val<'_>,
    b: &Val<'_>,
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    for key in keys {
        let same = match (property(a, key), property(b, key)) {
            (None, None) => true,
            (Some(a), Some(b)) => equal(&a?, &b?, budget)?,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn property<'a>(value: &Val<'a>, property: &str) -> Option<Result<Val<'a>, EvalError>> {
    match value {
        Val::Object(Object::Json { map, ty }) => {
            let value = map.get(property)?;
            Some(match ty.property(property) {
                Some(field) => Val::of(value, &field.decl),
                None => Ok(Val::of_json(value)),
            })
        }
        Val::Object(object) => object.field(property),
        Val::Map(map) => map.get_str(property),
        _ => None,
    }
}

fn maps(a: &MapVal<'_>, b: &MapVal<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for key in a.keys() {
        match (a.get(&key), b.get(&key)) {
            (Some(x), Some(y)) => {
                if !equal(&x?, &y?, budget)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn objects(a: &Object<'_>, b: &Object<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if let (Object::Json { map: x, ty }, Object::Json { map: y, .. }) = (a, b) {
        return json_objects(x, y, ty, budget);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for name in a.names() {
        match (a.field(&name), b.field(&name)) {
            (Some(x), Some(y)) => {
                if !equal(&x?, &y?, budget)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn json_objects(
    a: &bareboat_api::Map,
    b: &bareboat_api::Map,
    ty: &crate::decl::ObjectType,
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    if std::ptr::eq(a, b) {
        return Ok(true);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for (property, x) in a.iter() {
        let y = b.get(property);
        let same = match (ty.property(property), y) {
            (Some(field), Some(y)) => json_fields(x, y, &field.decl, budget)?,
            (Some(_), None) => x.is_null(),
            // A field without a declared type counts only if both objects have it.
            (None, Some(y)) => equal(&Val::of_json(x), &Val::of_json(y), budget)?,
            (None, None) => true,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn json_fields(
    a: &Value,
    b: &Value,
    decl: &DeclType,
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    match (a, b) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        _ => equal(&Val::of(a, decl)?, &Val::of(b, decl)?, budget),
    }
}

fn object_and_map(
    object: &Object<'_>,
    map: &MapVal<'_>,
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    if object.len() != map.len() {
        return Ok(false);
    }
    for name in object.names() {
        match (object.field(&name), map.get_str(&name)) {
            (Some(x), Some(y)) => {
                if !equal(&x?, &y?, budget)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}
