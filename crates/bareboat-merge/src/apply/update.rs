//! Managed fields of writes other than apply: the manager owns the fields it changed.

use super::{ApplyError, FieldManager, Operation, Versions, Writer};
use crate::{
    managed::{self, Managed},
    typed::{self, Changes},
};
use bareboat_api::Value;

impl FieldManager<'_> {
    /// Records the owners of the new object's fields, after a create, update or patch.
    ///
    /// Without a live object the new one is being created. The only error is
    /// [`ApplyError::NeedsConversion`]: another failed conversion leaves the managers of that
    /// version unchanged.
    // Upstream: apimachinery managedfields/internal, fieldmanager.go and managedfieldsupdater.go.
    pub fn update(
        &self,
        live: Option<&Value>,
        mut new: Value,
        writer: Writer<'_>,
    ) -> Result<Value, ApplyError> {
        let supplied = managed::take(&mut new);
        let current = live.and_then(managed::of);
        let mut managed = match supplied {
            // A subresource cannot set the list.
            Some(supplied) if writer.subresource.is_empty() => entries(supplied, current),
            _ => current.map_or_else(Managed::default, |list| Managed::trusted(list.clone())),
        };
        if managed.0.is_empty() && live.is_some() {
            // Tracking begins with the creation or the first apply.
            return Ok(new);
        }
        let Some(node) = self.versions.type_of(self.api_version) else {
            managed::put(&mut new, managed);
            return Ok(new);
        };

        let mut changes = match live {
            Some(live) => typed::changes(live, &new, node),
            None => self.changes_from_empty(&new).unwrap_or_default(),
        };
        self.ignore_reset(&mut changes);
        if changes.is_empty() {
            managed::put(&mut new, managed);
            return Ok(new);
        }

        let nothing = Value::object();
        self.take_for_update(&mut managed, live.unwrap_or(&nothing), &new, &changes)?;
        if !changes.changed.is_empty() {
            let mut own = self.entry(Operation::Update, writer);
            own.time = Some(writer.now.into());
            match managed.place_of(&own) {
                Some(place) => {
                    let known = &mut managed.0[place];
                    known.fields.unite(&changes.changed);
                    known.time = own.time;
                }
                None => {
                    own.fields = changes.changed;
                    managed.0.push(own);
                }
            }
        }
        managed::cap_updates(&mut managed);
        managed::put(&mut new, managed);
        Ok(new)
    }

    /// Returns the fields of an object beyond those that every object of its kind has.
    pub(super) fn changes_from_empty(&self, object: &Value) -> Option<Changes> {
        let node = self.versions.type_of(self.api_version)?;
        let empty = (self.empty)().unwrap_or_else(Value::object);
        let mut changes = typed::changes(&empty, object, node);
        // Missing fields were never set.
        changes.removed = Default::default();
        self.ignore_reset(&mut changes);
        Some(changes)
    }

    pub(super) fn ignore_reset(&self, changes: &mut Changes) {
        ignore_reset(self.versions, self.api_version, changes);
    }
}

pub(super) fn ignore_reset(versions: &dyn Versions, api_version: &str, changes: &mut Changes) {
    if let Some(reset) = versions.reset_fields(api_version) {
        changes.ignore(reset);
    }
    if let Some(kept) = versions.kept_fields(api_version) {
        changes.keep(kept);
    }
}

/// Returns the managed fields to start from: none if the client resets them (`[]` or `[{}]`), the client's if they are
/// valid, else the current ones.
fn entries(supplied: Value, current: Option<&Value>) -> Managed {
    if current == Some(&supplied) {
        // An unchanged list needs no check and no copy.
        return Managed::trusted(supplied);
    }
    if managed::is_reset(&supplied) {
        return Managed::default();
    }
    match Managed::parse(&supplied) {
        Ok(managed) if !managed.0.is_empty() => managed,
        // Clients that do not understand the list must not lose it.
        _ => current.map_or_else(Managed::default, |list| Managed::trusted(list.clone())),
    }
}
