//! Prints values as in cel-go's messages and conversions.

use super::Val;
use super::time::{print_duration, print_timestamp};
use crate::error::EvalError;

/// Prints a scalar in full; prints a list or map as in messages.
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
        Val::Type(ty) => ty.name().into(),
        Val::Special(special) => special
            .0
            .text()
            .unwrap_or_else(|| special.0.ty().name().into()),
        Val::List(_) | Val::Map(_) | Val::Object(_) | Val::Optional(_) => shown(value),
    }
}

/// The maximum number of bytes of a value in a message.
const SHOWN: usize = 4096;

/// Prints a value as in messages. A value may contain another many times, so the text is cut off at
/// a limit.
pub(crate) fn shown(value: &Val<'_>) -> String {
    let mut out = String::new();
    if write(value, &mut out).is_none() {
        out.push('…');
    }
    out
}

/// Writes a value; `None` when there is no more room.
fn write(value: &Val<'_>, out: &mut String) -> Option<()> {
    match value {
        Val::List(list) => {
            push("[", out)?;
            for (index, item) in list.iter().enumerate() {
                push(if index > 0 { ", " } else { "" }, out)?;
                write_or_error(item, out)?;
            }
            push("]", out)
        }
        Val::Map(map) => {
            push("{", out)?;
            for (index, key) in map.keys().into_iter().enumerate() {
                push(if index > 0 { ", " } else { "" }, out)?;
                write(&key, out)?;
                push(": ", out)?;
                if let Some(value) = map.get(&key) {
                    write_or_error(value, out)?;
                }
            }
            push("}", out)
        }
        Val::Object(object) => {
            push("{", out)?;
            for (index, name) in object.names().into_iter().enumerate() {
                push(if index > 0 { ", " } else { "" }, out)?;
                push(&name, out)?;
                push(": ", out)?;
                write_or_error(object.field(&name).unwrap_or(Ok(Val::Null)), out)?;
            }
            push("}", out)
        }
        Val::Optional(None) => push("optional.none()", out),
        Val::Optional(Some(inner)) => {
            push("optional(", out)?;
            write(inner, out)?;
            push(")", out)
        }
        scalar => push(&print(scalar), out),
    }
}

fn write_or_error(value: Result<Val<'_>, EvalError>, out: &mut String) -> Option<()> {
    match value {
        Ok(value) => write(&value, out),
        Err(error) => push(&error.to_string(), out),
    }
}

/// Appends as much of a text as there is room for.
fn push(text: &str, out: &mut String) -> Option<()> {
    let room = SHOWN.saturating_sub(out.len());
    if text.len() <= room {
        out.push_str(text);
        return Some(());
    }
    let fits = (0..=room).rev().find(|end| text.is_char_boundary(*end));
    out.push_str(&text[..fits.unwrap_or(0)]);
    None
}

/// Prints a double in Go's shortest form (`%g`): `1`, `1.5`, `1e+06`, `NaN`, `+Inf`.
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
