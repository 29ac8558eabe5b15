//! The times of entries: one form, and no change without a change.

use bareboat_api::{Map, Str, Value};

/// A time in UTC and whole seconds, as the API writes it.
pub(super) fn whole_seconds(text: &str) -> Option<Str> {
    if is_plain(text) {
        return Some(Str::new(text));
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    let seconds = jiff::Timestamp::from_second(time.as_second()).ok()?;
    Some(seconds.to_string().into())
}

/// Whether the text is of the form `2006-01-02T15:04:05Z`.
fn is_plain(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

/// Puts the old times back if nothing but times has changed, so that a write that changes nothing
/// writes nothing; says whether the objects are then the same.
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

/// Whether two objects are the same but for one member.
fn same_but(a: &Value, b: &Value, member: &str) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return a == b;
    };
    others(a, member).eq(others(b, member))
}

fn others<'a>(map: &'a Map, member: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    map.iter().filter(move |(name, _)| *name != member)
}

/// Whether two objects are the same but for their managed fields.
pub(crate) fn same_elsewhere(a: &Value, b: &Value) -> bool {
    match (a.get("metadata"), b.get("metadata")) {
        (Some(old), Some(new)) => same_but(old, new, "managedFields") && same_but(a, b, "metadata"),
        _ => a == b,
    }
}
