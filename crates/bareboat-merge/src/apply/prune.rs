//! Removes fields that a manager applied before, no longer applies, and no other manager owns.

use super::{ApplyError, ConvertError, FieldManager};
use crate::{
    fields::FieldSet,
    managed::{Entry, Managed},
    typed::{self, hollow_fields, name_owned_structs, remove_fields, to_set},
};
use bareboat_api::{Str, Value, interrupt, typing::TypeNode};
use std::collections::HashMap;

impl FieldManager<'_> {
    /// Removes from the merged object the fields that the manager has dropped since its last apply.
    ///
    /// Also returns the object with null in place of containers that lost their last element: their
    /// owners still own them.
    // Upstream: structured-merge-diff, merge/update.go, prune.
    pub(super) fn prune(
        &self,
        merged: &mut Value,
        node: &dyn TypeNode,
        last: &Entry,
        own: &Entry,
        others: &Managed,
        config: &Value,
    ) -> Result<Option<Value>, ApplyError> {
        let same_version = last.api_version == self.api_version;
        if last.fields.is_empty() || (same_version && last.fields.is_subset(&own.fields)) {
            // Nothing was dropped; all owned fields are still owned.
            return Ok(None);
        }
        let last_node = match same_version {
            true => node,
            false => match self.versions.type_of(&last.api_version) {
                Some(node) => node,
                None => return Ok(None),
            },
        };
        let Some(mut object) = self.converted(merged, &last.api_version)? else {
            return Ok(None);
        };
        let dropped = name_owned_structs(last.fields.clone(), last_node);
        let mut pruned = object.clone();
        hollow_fields(&mut pruned, &dropped, last_node);

        // Restores owned fields, first in the current version, which conversion may need.
        for (version, owners) in by_version(&last.api_version, others.0.iter().chain([own])) {
            if interrupt::requested() {
                return Ok(None);
            }
            let owned = owners.into_iter().map(|entry| entry.fields.clone());
            let owned = FieldSet::union(owned.collect());
            if !owned.is_empty() {
                pruned = self.put_back(&object, pruned, version, owned)?;
            }
        }

        // Of the fields that vanished, only those that the manager had applied are removed.
        let Some(pruned) = self.converted(&pruned, &last.api_version)? else {
            return Ok(None);
        };
        let mut gone = fields_of(&object, last_node);
        gone.subtract(&fields_of(&pruned, last_node));
        let gone = gone.intersection(&dropped);
        let mut hollow = object.clone();
        hollow_fields(&mut hollow, &gone, last_node);
        remove_fields(&mut object, &gone, last_node);
        let (Some(object), Some(mut hollow)) = (
            self.converted(&object, self.api_version)?,
            self.converted(&hollow, self.api_version)?,
        ) else {
            return Ok(None);
        };
        *merged = object;
        // The configuration stays complete, including empty maps and lists; otherwise applying it
        // twice would differ from applying it once.
        typed::merge(merged, config, node);
        typed::merge(&mut hollow, config, node);
        Ok(Some(hollow))
    }

    /// Returns the pruned object, in some version, with the fields owned in that version.
    fn put_back(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        owned: FieldSet,
    ) -> Result<Value, ApplyError> {
        let Some(node) = self.versions.type_of(version) else {
            return Ok(pruned);
        };
        let (Some(mut merged), Some(short)) = (
            self.converted(merged, version)?,
            self.converted(&pruned, version)?,
        ) else {
            return Ok(pruned);
        };
        let mut gone = fields_of(&merged, node);
        gone.subtract(&fields_of(&short, node));
        gone.subtract(&name_owned_structs(owned, node));
        hollow_fields(&mut merged, &gone, node);
        Ok(merged)
    }

    /// Converts the object to a version; `None` if it no longer exists.
    fn converted(&self, object: &Value, version: &str) -> Result<Option<Value>, ApplyError> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(version) {
            return Ok(Some(object.clone()));
        }
        match self.converter.convert(object, version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::UnknownVersion) => Ok(None),
            Err(ConvertError::NeedsConversion) => Err(ApplyError::NeedsConversion),
            Err(ConvertError::Failed(text)) => Err(ApplyError::Conversion {
                version: version.into(),
                text,
            }),
        }
    }
}

/// Groups entries by their versions, in the order in which they first occur, after the given one.
fn by_version<'a>(
    first: &'a Str,
    entries: impl Iterator<Item = &'a Entry>,
) -> Vec<(&'a Str, Vec<&'a Entry>)> {
    let mut groups = vec![(first, Vec::new())];
    let mut places = HashMap::from([(first, 0)]);
    for entry in entries {
        let version = &entry.api_version;
        let place = *places.entry(version).or_insert_with(|| {
            groups.push((version, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(entry);
    }
    groups
}

fn fields_of(object: &Value, node: &dyn TypeNode) -> FieldSet {
    name_owned_structs(to_set(object, node), node)
}
