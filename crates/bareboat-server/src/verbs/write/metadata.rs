//! Metadata that the server sets, and that clients may not set.

use bareboat_api::value::Seen;
use bareboat_api::{Object, Status, Value};

/// Letters and digits that form no words and do not look alike.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Longer prefixes are cut, so that a generated name fits a label.
const LONGEST_PREFIX: usize = 58;

/// Metadata only the server may set.
const SERVERS_OWN: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "selfLink",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Generates a name from a prefix.
pub(crate) fn generate_name(prefix: &str) -> String {
    let mut cut = prefix.len().min(LONGEST_PREFIX);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut name = prefix[..cut].to_owned();
    let random = crate::random::bytes();
    name.extend(
        random[10..15]
            .iter()
            .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])),
    );
    name
}

/// Returns whether a text is the resourceVersion of an object.
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok_and(|it| it != 0)
}

/// Prepares the metadata of a new object.
pub(super) fn for_create(
    object: &mut Object,
    namespace: Option<&str>,
    counts: bool,
) -> Result<(), Status> {
    // A text that is not a resourceVersion is dropped without an error.
    if is_version(object.resource_version()) {
        return Err(Status::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    place(object, namespace)?;
    let metadata = object.metadata_mut();
    for key in SERVERS_OWN {
        // If the kind has no generation, the client's value stays.
        if key != "generation" || counts {
            metadata.remove(key);
        }
    }
    metadata.remove("resourceVersion");
    Ok(())
}

/// Sets uid and time of creation of a new object.
pub(super) fn fill(object: &mut Object, now: &str) {
    let mut text = uuid::Uuid::encode_buffer();
    let uid = crate::random::uuid().hyphenated();
    object.set_meta("uid", Value::string(uid.encode_lower(&mut text)));
    object.set_meta("creationTimestamp", Value::string(now));
}

/// Sets an object's namespace to that of the URL; rejects an object with another one.
pub(crate) fn place(object: &mut Object, namespace: Option<&str>) -> Result<(), Status> {
    match namespace {
        Some(namespace) => {
            let own = object.namespace();
            if !own.is_empty() && own != namespace {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            object.set_meta("namespace", Value::string(namespace));
        }
        None => {
            object.remove_meta("namespace");
        }
    }
    Ok(())
}

/// Restores the metadata that only the server may change.
pub(super) fn for_update(object: &mut Object, live: &Object) {
    let (metadata, live) = (object.metadata_mut(), live.metadata());
    for key in SERVERS_OWN {
        match (live.and_then(|live| live.get(key)), metadata.get_mut(key)) {
            (Some(value), Some(own)) if value == own => {}
            (Some(value), Some(own)) => *own = value.clone(),
            (Some(value), None) => {
                metadata.insert(key, value.clone());
            }
            (None, Some(_)) => {
                metadata.remove(key);
            }
            (None, None) => {}
        }
    }
}

/// The stage at which duplicates were found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    BeforeAdmission,
    AfterAdmission,
}

/// Drops duplicate owner references; returns a warning that lists them.
pub(super) fn drop_duplicate_owners(object: &mut Object, when: Found) -> Option<String> {
    let owners = match object.meta("ownerReferences") {
        Some(Value::Array(owners)) if owners.len() > 1 => owners,
        _ => return None,
    };
    let mut seen = Seen::new();
    let (kept, again): (Vec<&Value>, Vec<&Value>) =
        owners.iter().partition(|owner| seen.insert(owner));
    let uid = |owner: &Value| {
        owner
            .get("uid")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let mut uids: Vec<String> = again.into_iter().map(uid).collect();
    if uids.is_empty() {
        return None;
    }
    bareboat_api::sort_by(&mut uids, Ord::cmp);
    uids.dedup();
    let kept: Vec<Value> = kept.into_iter().cloned().collect();
    object.set_meta("ownerReferences", Value::Array(kept));
    let when = match when {
        Found::BeforeAdmission => "",
        Found::AfterAdmission => " after mutating admission happens",
    };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        uids.join(", ")
    ))
}

/// Removes empty members that would be absent if no client had set them.
pub(super) fn tidy(object: &mut Object) {
    let metadata = object.metadata_mut();
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    // Mostly nothing is empty, and one pass is cheaper than looking for each member.
    if !metadata.iter().any(|(_, value)| is_empty(value)) {
        return;
    }
    for key in ["labels", "annotations"] {
        if metadata.get(key).is_some_and(|value| {
            value.is_null() || value.as_object().is_some_and(|map| map.is_empty())
        }) {
            metadata.remove(key);
        }
    }
    for key in ["finalizers", "ownerReferences", "managedFields"] {
        if metadata.get(key).is_some_and(|value| {
            value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty)
        }) {
            metadata.remove(key);
        }
    }
    for key in ["name", "generateName", "namespace"] {
        if metadata.get_str(key) == Some("") {
            metadata.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_fit_a_label() {
        let name = generate_name(&"x".repeat(80));
        assert_eq!(name.len(), 63);
        assert!(name[58..].bytes().all(|byte| ALPHABET.contains(&byte)));
        assert_ne!(generate_name("a-"), generate_name("a-"));
        assert!(generate_name(&"ü".repeat(40)).starts_with("üü"));
    }
}
