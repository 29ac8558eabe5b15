//! Fields, keys and indexes.

use crate::error::EvalError;
use crate::value::Val;

/// Returns the field of an object or map, or an error.
pub(super) fn select<'a>(operand: Val<'a>, field: &str) -> Result<Val<'a>, EvalError> {
    match operand {
        Val::Object(object) => object
            .field(field)
            .unwrap_or_else(|| Err(EvalError::no_such_key(field))),
        Val::Map(map) => map
            .get_str(field)
            .unwrap_or_else(|| Err(EvalError::no_such_key(field))),
        Val::Optional(Some(inner)) => opt_select((*inner).clone(), field),
        Val::Optional(None) => Ok(Val::Optional(None)),
        _ => Err(EvalError::no_such_key(field)),
    }
}

fn found<'a>(operand: &Val<'a>, field: &str) -> Result<Option<Val<'a>>, EvalError> {
    match operand {
        Val::Object(object) => object.field(field).transpose(),
        Val::Map(map) => map.get_str(field).transpose(),
        Val::Optional(Some(inner)) => found(inner, field),
        Val::Optional(None) => Ok(None),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns whether there is a field.
pub(super) fn has(operand: Val<'_>, field: &str) -> Result<bool, EvalError> {
    match &operand {
        // A field with malformed data is present.
        Val::Object(object) => Ok(object.field(field).is_some()),
        Val::Map(map) => Ok(map.get_str(field).is_some()),
        other => Ok(found(other, field)?.is_some()),
    }
}

/// Returns the field as an optional.
pub(super) fn opt_select<'a>(operand: Val<'a>, field: &str) -> Result<Val<'a>, EvalError> {
    Ok(match found(&operand, field)? {
        // Selecting an optional field from an optional does not wrap it twice.
        Some(value @ Val::Optional(_)) if matches!(operand, Val::Optional(_)) => value,
        Some(value) => Val::some(value),
        None => Val::Optional(None),
    })
}

/// Converts an index value to a position in a list.
fn position(index: &Val<'_>) -> Result<Option<usize>, EvalError> {
    Ok(match index {
        Val::Int(index) => usize::try_from(*index).ok(),
        Val::Uint(index) => usize::try_from(*index).ok(),
        Val::Double(value) if value.fract() == 0.0 => {
            (*value >= 0.0 && *value < 9e15).then_some(*value as usize)
        }
        _ => {
            return Err(EvalError::new(format!(
                "unsupported index type '{}' in list",
                index.type_of().name()
            )));
        }
    })
}

/// Returns the element of a list or the value of a key.
pub(super) fn index<'a>(operand: Val<'a>, index: &Val<'a>) -> Result<Val<'a>, EvalError> {
    match &operand {
        Val::List(list) => match position(index)?.and_then(|at| list.get(at)) {
            Some(value) => value,
            None => Err(EvalError::new(format!("index out of bounds: {index}"))),
        },
        Val::Map(map) => map
            .get(index)
            .unwrap_or_else(|| Err(EvalError::no_such_key(index))),
        Val::Object(object) => match index.as_str() {
            Some(name) => object
                .field(name)
                .unwrap_or_else(|| Err(EvalError::no_such_key(name))),
            None => Err(EvalError::no_such_overload()),
        },
        Val::Optional(_) => opt_index(operand, index),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns the element or value as an optional.
pub(super) fn opt_index<'a>(operand: Val<'a>, index: &Val<'a>) -> Result<Val<'a>, EvalError> {
    let value = match &operand {
        Val::List(list) => position(index)?.and_then(|at| list.get(at)).transpose()?,
        Val::Map(map) => map.get(index).transpose()?,
        Val::Object(object) => match index.as_str() {
            Some(name) => object.field(name).transpose()?,
            None => return Err(EvalError::no_such_overload()),
        },
        Val::Optional(Some(inner)) => return opt_index((**inner).clone(), index),
        Val::Optional(None) => None,
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(value.map_or(Val::Optional(None), Val::some))
}
