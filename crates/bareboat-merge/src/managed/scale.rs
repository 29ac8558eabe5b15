//! Ownership seen through the scale subresource: `spec.replicas` there is some path of the parent.
//!
//! Making the Scale object and writing replicas back is the server's business.

use super::{Managed, of, put};
use crate::fields::FieldSet;
use bareboat_api::{Str, Value};

const SCALE_VERSION: &str = "autoscaling/v1";

/// Where each version of a kind keeps its replicas.
#[derive(Clone, Debug, Default)]
pub struct ReplicasPaths(Vec<(Str, Option<FieldSet>)>);

impl ReplicasPaths {
    /// No version.
    pub fn new() -> ReplicasPaths {
        ReplicasPaths::default()
    }

    /// Adds a version with the members that lead to its replicas, or `None` if it can't be scaled.
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

/// Gives a Scale object the managed fields of its parent that concern replicas.
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

/// Puts the ownership found in a Scale object that was written back into its parent, which has the
/// given version.
// Upstream: apimachinery managedfields/scalehandler.go, ToParent.
pub fn to_parent(scale: &Value, parent: &mut Value, api_version: &str, paths: &ReplicasPaths) {
    let Some(Some(own_path)) = paths.get(api_version) else {
        return;
    };
    let mut scaled = entries(scale);
    let mut managed = entries(parent);
    managed.0.retain_mut(|entry| {
        // Versions that are no longer served are forgotten.
        let Some(path) = paths.get(&entry.api_version) else {
            return false;
        };
        let Some(path) = path.filter(|path| path.is_subset(&entry.fields)) else {
            return true;
        };
        let mut in_scale = entry.clone();
        in_scale.api_version = SCALE_VERSION.into();
        match scaled.place_of(&in_scale) {
            // Still there: the field was not taken.
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
                // Upstream looks the time up among the parent's entries and finds none.
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
