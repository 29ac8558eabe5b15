//! The list in `metadata.managedFields`: who owns which fields, since when and in which version.
//!
//! Reading, writing, ordering and bounding the list. Who gains and loses fields in a write is
//! decided in [`crate::apply`].

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
    /// Reads a list a client sent; everything must be well-formed.
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
        // Of two entries of one manager the later counts: sorting is stable, and the later comes first.
        managed.reverse();
        managed.sort_by(Entry::identity_order);
        managed.dedup_by(|later, earlier| later.same_identity(earlier));
        Ok(Managed(managed))
    }

    /// Takes a list that has gone through [`Managed::into_value`] before.
    pub(crate) fn trusted(list: Value) -> Managed {
        match list {
            Value::Array(entries) => Managed(entries.into_iter().map(Entry::trusted).collect()),
            _ => Managed::default(),
        }
    }

    /// The list as objects carry it; nothing when there is no entry.
    pub fn into_value(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(Entry::order);
        Some(Value::Array(
            self.0.into_iter().map(Entry::into_value).collect(),
        ))
    }

    /// The entry with the identity of the given one.
    pub(crate) fn place_of(&self, identity: &Entry) -> Option<usize> {
        self.0
            .iter()
            .position(|entry| entry.same_identity(identity))
    }
}

/// Takes the list out of an object.
pub(crate) fn take(object: &mut Value) -> Option<Value> {
    metadata_mut(object)?.remove("managedFields")
}

/// The list of an object.
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

/// Whether a client asks for the list to be forgotten: it is empty or holds one empty entry.
pub(crate) fn is_reset(list: &Value) -> bool {
    match list.as_array() {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

/// Takes the fields nobody owns out of a set.
pub(crate) fn strip(fields: &mut FieldSet) {
    use crate::fields::{ITSELF, field_key};
    use crate::typed::{UNTRACKED, UNTRACKED_META};
    for name in UNTRACKED {
        fields.0.remove(&field_key(name));
    }
    if let Some(Value::Object(metadata)) = fields.0.get_mut("f:metadata") {
        metadata.remove(ITSELF);
        for name in UNTRACKED_META {
            metadata.remove(&field_key(name));
        }
        if metadata.is_empty() {
            fields.0.remove("f:metadata");
        }
    }
}

/// Checks the list of an object, as it must be after webhooks have changed the object.
pub fn validate_managed_fields(object: &Value) -> Result<(), ManagedError> {
    match of(object) {
        None => Ok(()),
        Some(list) => Managed::parse(list).map(drop),
    }
}

#[cfg(test)]
mod tests;
