//! The times of entries: normalised, and kept when nothing else changes.

use bareboat_api::time::Timestamp;
use bareboat_api::{Map, Str, Value};

/// Converts a time to UTC and whole seconds, the API's format.
pub(super) fn whole_seconds(text: &str) -> Option<Str> {
    if is_plain(text) {
        return Some(Str::new(text));
    }
    Some(Timestamp::parse(text).ok()?.print_seconds().into())
}

/// Returns whether the text has the form `2006-01-02T15:04:05Z`.
fn is_plain(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

/// Restores the old times if nothing else has changed, so that a write without changes stores
/// nothing; returns whether the objects are then equal.
// Upstream: apiserver handlers/fieldmanager/equality.go.
pub fn keep_times(live: &Value, new: &mut Value) -> bool {
    let (Some(old), Some(list)) = (entries(live), entries(new)) else {
        return live == new;
    };
    let alike = old.len() == list.len()
        && old
            .iter()
            .zip(list)
            .all(|(old, new)| same_but(old, new, "time"));
    if !alike || !same_elsewhere(live, new) {
        return false;
    }
    let old = old.to_vec();
    if let Some(list) = new.at_mut(&["metadata", "managedFields"]) {
        *list = Value::Array(old);
    }
    true
}

fn entries(object: &Value) -> Option<&[Value]> {
    super::of(object)?.as_array()
}

/// Returns whether two objects are equal except for one member.
fn same_but(a: &Value, b: &Value, member: &str) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return a == b;
    };
    others(a, member).eq(others(b, member))
}

fn others<'a>(map: &'a Map, member: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    map.iter().filter(move |(name, _)| *name != member)
}

/// Returns whether two objects are equal except for their managed fields.
pub(crate) fn same_elsewhere(a: &Value, b: &Value) -> bool {
    match (a.get("metadata"), b.get("metadata")) {
        (Some(old), Some(new)) => same_but(old, new, "managedFields") && same_but(a, b, "metadata"),
        _ => a == b,
    }
}
