//! Removes fields from other managers: they lose the fields that a write changes or removes.

use super::{ApplyError, Conflict, Conflicts, ConvertError, FieldManager, update::ignore_reset};
use crate::{
    fields::FieldSet,
    managed::{Entry, Managed},
    typed::{self, Changes},
};
use bareboat_api::{Str, Value, interrupt};
use std::collections::HashMap;

/// The changes of one write, converted to each version that managers use.
struct Views<'a> {
    fields: &'a FieldManager<'a>,
    old: &'a Value,
    new: &'a Value,
    known: HashMap<Str, View>,
}

enum View {
    Changes(Changes),
    /// The version no longer exists.
    Missing,
    /// Conversion failed.
    Failed(String),
}

impl Views<'_> {
    /// Returns the changes in a version.
    fn get(&mut self, version: &Str) -> Result<&View, ApplyError> {
        if !self.known.contains_key(version) {
            let view = self.make(version)?;
            self.known.insert(version.clone(), view);
        }
        Ok(&self.known[version])
    }

    fn make(&self, version: &Str) -> Result<View, ApplyError> {
        let Some(node) = self.fields.versions.type_of(version) else {
            return Ok(View::Missing);
        };
        if version == self.fields.api_version {
            let mut changes = typed::changes(self.old, self.new, node);
            ignore_reset(self.fields.versions, version, &mut changes);
            return Ok(View::Changes(changes));
        }
        let mut converted = [Value::Null, Value::Null];
        for (object, converted) in [self.old, self.new].into_iter().zip(&mut converted) {
            match self.fields.converter.convert(object, version) {
                Ok(object) => *converted = object,
                Err(ConvertError::UnknownVersion) => return Ok(View::Missing),
                Err(ConvertError::NeedsConversion) => return Err(ApplyError::NeedsConversion),
                Err(ConvertError::Failed(text)) => return Ok(View::Failed(text)),
            }
        }
        let mut changes = typed::changes(&converted[0], &converted[1], node);
        ignore_reset(self.fields.versions, version, &mut changes);
        Ok(View::Changes(changes))
    }
}

impl FieldManager<'_> {
    /// Removes the fields that an update changes from every manager; `changes` has the request's
    /// version.
    pub(super) fn take_for_update(
        &self,
        managed: &mut Managed,
        old: &Value,
        new: &Value,
        changes: &Changes,
    ) -> Result<(), ApplyError> {
        let mut views = self.views(old, new);
        let mut kept = Vec::with_capacity(managed.0.len());
        for mut entry in std::mem::take(&mut managed.0).into_iter().rev() {
            if interrupt::requested() {
                break;
            }
            let changes = match entry.api_version == self.api_version {
                true => Some(changes),
                false => match views.get(&entry.api_version)? {
                    View::Changes(changes) => Some(changes),
                    View::Missing => None,
                    // A manager keeps its fields if they cannot be converted; it must not lose all
                    // of them.
                    View::Failed(_) => {
                        kept.push(entry);
                        continue;
                    }
                },
            };
            match changes {
                Some(changes) => {
                    // Where a type became atomic, fields below it must go with the whole.
                    if let Some(node) = self.versions.type_of(&entry.api_version) {
                        typed::settle_along(&mut entry.fields, &changes.changed, node);
                        typed::settle_along(&mut entry.fields, &changes.removed, node);
                    }
                    release(&mut entry, changes);
                }
                None => entry.fields = FieldSet::new(),
            }
            if !entry.fields.is_empty() {
                kept.push(entry);
            }
        }
        kept.reverse();
        managed.0 = kept;
        Ok(())
    }

    /// Removes the fields that an apply changes from every other manager, or returns the conflicts.
    pub(super) fn take_from(
        &self,
        others: &mut Managed,
        old: &Value,
        new: &Value,
        force: bool,
    ) -> Result<(), ApplyError> {
        if others.0.is_empty() {
            return Ok(());
        }
        let mut views = self.views(old, new);
        let mut conflicts = Vec::new();
        let mut keep = Vec::with_capacity(others.0.len());
        for entry in &others.0 {
            if interrupt::requested() {
                return Ok(());
            }
            let version = &entry.api_version;
            let changes = match views.get(version)? {
                View::Changes(changes) => changes,
                View::Missing => {
                    keep.push(false);
                    continue;
                }
                View::Failed(text) => {
                    let (version, text) = (version.clone(), text.clone());
                    return Err(ApplyError::Conversion { version, text });
                }
            };
            keep.push(true);
            if !force {
                let fields = entry.fields.intersection(&changes.changed);
                if !fields.is_empty() {
                    conflicts.push((entry, fields));
                }
            }
        }
        if !conflicts.is_empty() {
            bareboat_api::sort_by(&mut conflicts, |(a, _), (b, _)| a.identity_order(b));
            return Err(ApplyError::Conflicts(Conflicts::new(
                conflicts
                    .into_iter()
                    .map(|(entry, fields)| Conflict::new(entry, fields))
                    .collect(),
            )));
        }
        let mut keep = keep.into_iter();
        others.0.retain_mut(|entry| {
            if keep.next() == Some(false) {
                return false;
            }
            if let Ok(View::Changes(changes)) = views.get(&entry.api_version) {
                release(entry, changes);
            }
            !entry.fields.is_empty()
        });
        Ok(())
    }

    fn views<'a>(&'a self, old: &'a Value, new: &'a Value) -> Views<'a> {
        Views {
            fields: self,
            old,
            new,
            known: HashMap::new(),
        }
    }
}

fn release(entry: &mut Entry, changes: &Changes) {
    entry.fields.subtract(&changes.changed);
    entry.fields.subtract(&changes.removed);
}
