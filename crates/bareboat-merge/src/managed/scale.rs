//! Managed fields of the scale subresource: its `spec.replicas` is some path of the parent.
//!
//! The server builds the Scale object and writes replicas back.

use super::{Entry, Managed, Operation, of, put};
use crate::fields::FieldSet;
use bareboat_api::{Str, Value};
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, VecDeque};

const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in each version of a kind.
#[derive(Clone, Debug, Default)]
pub struct ReplicasPaths(HashMap<Str, Option<FieldSet>>);

impl ReplicasPaths {
    /// Returns an empty list of versions.
    pub fn new() -> ReplicasPaths {
        ReplicasPaths::default()
    }

    /// Adds a version with the path of its replicas, or `None` if it cannot be scaled.
    #[must_use]
    pub fn with(mut self, api_version: &str, path: Option<&[&str]>) -> ReplicasPaths {
        let known = self.0.entry(Str::new(api_version));
        known.or_insert_with(|| path.map(FieldSet::of_names));
        self
    }

    fn get(&self, api_version: &str) -> Option<Option<&FieldSet>> {
        self.0.get(api_version).map(Option::as_ref)
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
    let mut scaled: Vec<Option<Entry>> = entries(scale).0.into_iter().map(Some).collect();
    let mut managed = entries(parent);
    let mut places: HashMap<Identity, VecDeque<usize>> = HashMap::new();
    for (place, entry) in scaled.iter().flatten().enumerate() {
        let identity = identity(entry, &entry.api_version);
        places.entry(identity).or_default().push_back(place);
    }
    managed.0.retain_mut(|entry| {
        // Versions that are no longer served are dropped.
        let Some(path) = paths.get(&entry.api_version) else {
            return false;
        };
        let Some(path) = path.filter(|path| path.is_subset(&entry.fields)) else {
            return true;
        };
        let in_scale = places.get_mut(&identity(entry, &SCALE_VERSION.into()));
        match in_scale.and_then(VecDeque::pop_front) {
            // The entry is still present: the field did not change its owner.
            Some(place) => {
                scaled[place] = None;
                true
            }
            None => {
                entry.fields.subtract(path);
                !entry.fields.is_empty()
            }
        }
    });
    let mut places: HashMap<Identity, usize> = HashMap::new();
    for (place, entry) in managed.0.iter().enumerate() {
        places
            .entry(identity(entry, &entry.api_version))
            .or_insert(place);
    }
    for mut entry in scaled.into_iter().flatten() {
        if !in_scale().is_subset(&entry.fields) {
            continue;
        }
        entry.api_version = api_version.into();
        entry.fields = own_path.clone();
        match places.entry(identity(&entry, &entry.api_version)) {
            Occupied(place) => managed.0[*place.get()].fields.unite(&entry.fields),
            Vacant(place) => {
                // Upstream looks for the time in the parent's entries and finds none.
                entry.time = None;
                place.insert(managed.0.len());
                managed.0.push(entry);
            }
        }
    }
    put(parent, managed);
}

/// What entries of one manager share: [`Entry::same_identity`].
type Identity = (bool, Str, Str, Str);

/// Returns the identity of an entry, as if it had the given version.
fn identity(entry: &Entry, api_version: &Str) -> Identity {
    let applied = entry.operation == Operation::Apply;
    let version = match applied {
        true => Str::default(),
        false => api_version.clone(),
    };
    (
        applied,
        entry.manager.clone(),
        entry.subresource.clone(),
        version,
    )
}

fn in_scale() -> FieldSet {
    FieldSet::of_names(&["spec", "replicas"])
}

fn entries(object: &Value) -> Managed {
    of(object).map_or_else(Managed::default, |list| Managed::trusted(list.clone()))
}
