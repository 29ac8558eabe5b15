//! Managed fields of the scale subresource: its `spec.replicas` is some path of the parent.
//!
//! The server builds the Scale object and writes replicas back.

use super::{Managed, of, put};
use crate::fields::FieldSet;
use bareboat_api::{Str, Value};

const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in each version of a kind.
#[derive(Clone, Debug, Default)]
pub struct ReplicasPaths(Vec<(Str, Option<FieldSet>)>);

impl ReplicasPaths {
    /// Returns an empty list of versions.
    pub fn new() -> ReplicasPaths {
        ReplicasPaths::default()
    }

    /// Adds a version with the path of its replicas, or `None` if it cannot be scaled.
    #[must_use]
    pub fn with(mut self, api_version: &str, path: Option<&[&str]>) -> ReplicasPaths {
        self.0
            .push((Str::new(api_version), path.map(FieldSet::of_names)));
        self
    }

    fn get(&self, api_version: &str) -> Option<Option<&FieldSet>> {
        let (_, path) = self.0.iter().find(|(version, _)| version == api_version)?;
        Some(path.as_ref())
    }
}

/// Copies the managed fields that concern replicas from the parent to its Scale object.
// Upstream: apimachinery managedfields/scalehandler.go, ToSubresource.
pub fn to_scale(parent: &Value, scale: &mut Value, paths: &ReplicasPaths) {
    let mut managed = entries(parent);
    managed.0.retain_mut(|entry| {
        let Some(Some(path)) = paths.get(&entry.api_version) else {
            return false;
        };
        if !path.is_subset(&entry.fields) {
            return false;
        }
        entry.fields = in_scale();
        entry.api_version = SCALE_VERSION.into();
        true
    });
    put(scale, managed);
}

/// Copies the managed fields of a written Scale object to its parent, which has the given version.
// Upstream: apimachinery managedfields/scalehandler.go, ToParent.
pub fn to_parent(scale: &Value, parent: &mut Value, api_version: &str, paths: &ReplicasPaths) {
    let Some(Some(own_path)) = paths.get(api_version) else {
        return;
    };
    let mut scaled = entries(scale);
    let mut managed = entries(parent);
    managed.0.retain_mut(|entry| {
        // Versions that are no longer served are dropped.
        let Some(path) = paths.get(&entry.api_version) else {
            return false;
        };
        let Some(path) = path.filter(|path| path.is_subset(&entry.fields)) else {
            return true;
        };
        let mut in_scale = entry.clone();
        in_scale.api_version = SCALE_VERSION.into();
        match scaled.place_of(&in_scale) {
            // The entry is still present: the field did not change its owner.
            Some(place) => {
                scaled.0.remove(place);
                true
            }
            None => {
                entry.fields.subtract(path);
                !entry.fields.is_empty()
            }
        }
    });
    for mut entry in scaled.0 {
        if !in_scale().is_subset(&entry.fields) {
            continue;
        }
        entry.api_version = api_version.into();
        entry.fields = own_path.clone();
        match managed.place_of(&entry) {
            Some(place) => managed.0[place].fields.unite(&entry.fields),
            None => {
                // Upstream looks for the time in the parent's entries and finds none.
                entry.time = None;
                managed.0.push(entry);
            }
        }
    }
    put(parent, managed);
}

fn in_scale() -> FieldSet {
    FieldSet::of_names(&["spec", "replicas"])
}

fn entries(object: &Value) -> Managed {
    of(object).map_or_else(Managed::default, |list| Managed::trusted(list.clone()))
}
