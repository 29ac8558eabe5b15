//! Decides what happens to an object, given the states of its owners.

use super::FOREGROUND;
use bareboat_api::kind::Kind;
use bareboat_server::kinds::catalog::{Backing, Table};
use bareboat_storage::{Entry, Owner};
use std::sync::Arc;

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// The owner exists.
    Alive,
    /// The owner is being deleted and waits for its dependents.
    ForegroundDeleting,
    /// The owner does not exist.
    Absent,
    /// The kind of the owner is not served, so its state is not known.
    Unknown,
    /// The owner cannot own this object: a cluster-scoped object cannot have an owner in a namespace.
    Invalid,
}

/// What the garbage collector does with an object that has owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The object stays unchanged.
    Keep,
    /// The decision depends on owners whose kinds are not served.
    Undecided,
    /// The owner references with these indices are removed.
    RemoveOwners(Vec<usize>),
    /// The object is deleted after its dependents.
    DeleteForeground,
    /// The object is deleted, with the propagation that its finalizers ask for.
    Delete,
}

/// Decides what happens to an object.
pub(super) fn decide(owners: &[OwnerState], has_dependents: bool) -> Decision {
    let any = |wanted: OwnerState| owners.contains(&wanted);
    if owners.is_empty() || any(OwnerState::Invalid) {
        return Decision::Keep;
    }
    if any(OwnerState::Unknown) {
        return Decision::Undecided;
    }
    if any(OwnerState::Alive) {
        let dead = owners.iter().enumerate();
        let dead = dead.filter(|(_, state)| **state != OwnerState::Alive);
        let dead: Vec<usize> = dead.map(|(index, _)| index).collect();
        return match dead.is_empty() {
            true => Decision::Keep,
            false => Decision::RemoveOwners(dead),
        };
    }
    if any(OwnerState::ForegroundDeleting) && has_dependents {
        return Decision::DeleteForeground;
    }
    Decision::Delete
}

/// Finds the state of an owner by its kind, namespace, name and uid.
pub(super) fn owner_state(table: &Table, namespace: Option<&str>, owner: &Owner) -> OwnerState {
    let (group, version) = owner
        .api_version
        .rsplit_once('/')
        .unwrap_or(("", &owner.api_version));
    let Some(Backing::Stored(served)) = table.find_kind(group, &owner.kind) else {
        return OwnerState::Unknown;
    };
    let kind: &Arc<Kind> = &served.kind;
    let resolved = served.version_index(version).is_some();
    let found = match (kind.namespaced(), namespace) {
        (true, None) if resolved => return OwnerState::Invalid,
        (true, None) => return OwnerState::Unknown,
        (true, Some(namespace)) => served.resource().get(&served.key(namespace, &owner.name)),
        (false, _) => served.resource().get(&owner.name),
    };
    match found {
        // It exists, even if the version in the reference is not served any more.
        Some(entry) if entry.facets().uid == owner.uid => match is_foreground_deleting(&entry) {
            true => OwnerState::ForegroundDeleting,
            false => OwnerState::Alive,
        },
        _ if resolved => OwnerState::Absent,
        _ => OwnerState::Unknown,
    }
}

/// Whether an object is being deleted and waits for its dependents.
pub(super) fn is_foreground_deleting(entry: &Entry) -> bool {
    let facets = entry.facets();
    facets.deletion_timestamp.is_some() && facets.has_finalizer(FOREGROUND)
}

#[cfg(test)]
mod tests {
    use super::OwnerState::{Absent, Alive, ForegroundDeleting, Invalid, Unknown};
    use super::*;

    #[test]
    fn the_states_of_owners_decide_about_an_object() {
        let cases: &[(&[OwnerState], bool, Decision)] = &[
            (&[], false, Decision::Keep),
            (&[Alive], false, Decision::Keep),
            (&[Absent], false, Decision::Delete),
            (&[Absent, Absent], true, Decision::Delete),
            (
                &[Absent, Alive, ForegroundDeleting],
                true,
                Decision::RemoveOwners(vec![0, 2]),
            ),
            (&[ForegroundDeleting], false, Decision::Delete),
            (&[ForegroundDeleting], true, Decision::DeleteForeground),
            (
                &[Absent, ForegroundDeleting],
                true,
                Decision::DeleteForeground,
            ),
            (&[Absent, Unknown], false, Decision::Undecided),
            (&[Alive, Unknown, Absent], false, Decision::Undecided),
            (&[Absent, Invalid], false, Decision::Keep),
        ];
        for (owners, has_dependents, expected) in cases {
            assert_eq!(decide(owners, *has_dependents), *expected, "{owners:?}");
        }
    }
}
