//! Values as text, the way cel-go's messages and conversions write them.

use super::time::{print_duration, print_timestamp};
use super::{MapVal, Object, Val};

/// A value as messages show it.
pub(crate) fn print(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".into(),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => float_text(*value),
        Val::String(text) => text.as_str().into(),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Duration(nanoseconds) => print_duration(*nanoseconds),
        Val::Timestamp(timestamp) => print_timestamp(*timestamp),
        Val::List(list) => {
            let items = list
                .iter()
                .map(|item| item.map_or_else(|e| e.to_string(), |v| print(&v)));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Val::Map(map) => print_map(map),
        Val::Object(object) => print_object(object),
        Val::Type(ty) => ty.name().into(),
        Val::Optional(None) => "optional.none()".into(),
        Val::Optional(Some(inner)) => format!("optional({})", print(inner)),
        Val::Special(special) => special
            .0
            .text()
            .unwrap_or_else(|| special.0.ty().name().into()),
    }
}

fn print_map(map: &MapVal<'_>) -> String {
    let entries = map.keys().into_iter().map(|key| {
        let value = match map.get(&key) {
            Some(Ok(value)) => print(&value),
            Some(Err(error)) => error.to_string(),
            None => String::new(),
        };
        format!("{}: {value}", print(&key))
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}

fn print_object(object: &Object<'_>) -> String {
    let fields = object.names().into_iter().map(|name| {
        let value = match object.field(&name) {
            Some(Ok(value)) => print(&value),
            Some(Err(error)) => error.to_string(),
            None => "null".into(),
        };
        format!("{name}: {value}")
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// A double in Go's shortest form (`%g`): `1`, `1.5`, `1e+06`, `NaN`, `+Inf`.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}
