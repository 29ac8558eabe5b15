//! The list in `metadata.managedFields`: the owner, time and version of each set of fields.
//!
//! Reads, writes, sorts and limits the list. [`crate::apply`] decides which manager gains and loses
//! fields in a write.

mod cap;
mod entry;
pub mod scale;
mod times;

pub(crate) use cap::cap_updates;
pub use entry::{Entry, ManagedError, Operation};
pub use times::keep_times;
pub(crate) use times::same_elsewhere;

use crate::fields::FieldSet;
use bareboat_api::{Map, Value};

/// The entries of an object, in no particular order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managed(pub Vec<Entry>);

impl Managed {
    /// Parses the list of a client; all entries must be well-formed.
    pub fn parse(list: &Value) -> Result<Managed, ManagedError> {
        let entries = match list {
            Value::Null => &[],
            Value::Array(entries) => entries.as_slice(),
            other => return Err(ManagedError::NotAList(other.type_name())),
        };
        let mut managed = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            managed.push(Entry::parse(index, entry)?);
        }
        // Of two entries of one manager the later counts: sorting is stable, and the later comes
        // first.
        managed.reverse();
        bareboat_api::sort_by(&mut managed, Entry::identity_order);
        managed.dedup_by(|later, earlier| later.same_identity(earlier));
        Ok(Managed(managed))
    }

    /// Takes a list that [`Managed::into_value`] has written.
    pub(crate) fn trusted(list: Value) -> Managed {
        match list {
            Value::Array(entries) => Managed(entries.into_iter().map(Entry::trusted).collect()),
            _ => Managed::default(),
        }
    }

    /// Returns the list as stored in objects; `None` when there is no entry.
    pub fn into_value(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        bareboat_api::sort_by(&mut self.0, Entry::order);
        Some(Value::Array(
            self.0.into_iter().map(Entry::into_value).collect(),
        ))
    }

    /// Returns the position of the entry with the identity of the given one.
    pub(crate) fn place_of(&self, identity: &Entry) -> Option<usize> {
        self.0
            .iter()
            .position(|entry| entry.same_identity(identity))
    }
}

/// Removes the list from an object and returns it.
pub(crate) fn take(object: &mut Value) -> Option<Value> {
    metadata_mut(object)?.remove("managedFields")
}

/// Returns the list of an object.
pub(crate) fn of(object: &Value) -> Option<&Value> {
    object.at(&["metadata", "managedFields"])
}

/// Puts the list into an object.
pub(crate) fn put(object: &mut Value, managed: Managed) {
    let Some(metadata) = metadata_mut(object) else {
        return;
    };
    match managed.into_value() {
        Some(list) => metadata.insert("managedFields", list),
        None => metadata.remove("managedFields"),
    };
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map> {
    object.as_object_mut()?.get_mut("metadata")?.as_object_mut()
}

/// Returns whether a client requests a reset of the list: it is empty or has one empty entry.
pub(crate) fn is_reset(list: &Value) -> bool {
    match list.as_array() {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

/// Removes the fields that are never tracked from a set.
pub(crate) fn strip(fields: &mut FieldSet) {
    use crate::fields::ITSELF;
    use crate::typed::{UNTRACKED, UNTRACKED_META};
    // Sets have few members at these levels, fewer than there are names.
    let is_among = |key: &str, names: &[&str]| {
        let name = key.strip_prefix("f:");
        name.is_some_and(|name| names.contains(&name))
    };
    fields.0.retain(|key, _| !is_among(key, &UNTRACKED));
    if let Some(Value::Object(metadata)) = fields.0.get_mut("f:metadata") {
        metadata.retain(|key, _| key != ITSELF && !is_among(key, &UNTRACKED_META));
        if metadata.is_empty() {
            fields.0.remove("f:metadata");
        }
    }
}

/// Checks the list of an object after webhooks have changed the object.
///
/// Nothing here calls it yet: admission webhooks, which are part of the work on extensions, will.
pub fn validate_managed_fields(object: &Value) -> Result<(), ManagedError> {
    match of(object) {
        None => Ok(()),
        Some(list) => Managed::parse(list).map(drop),
    }
}

#[cfg(test)]
mod tests;
