//! What becomes of an object, given how its owners stand.

use super::FOREGROUND;
use bareboat_api::kind::Kind;
use bareboat_server::kinds::catalog::{Serving, Table};
use bareboat_storage::{Entry, Owner};
use std::sync::Arc;

/// How an owner stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there.
    Alive,
    /// It is there, but only until its dependents are gone.
    Leaving,
    /// It is not there.
    Absent,
    /// Nobody can tell: its kind is not known here.
    Unknown,
    /// It cannot own this object: an object outside of namespaces has no owner in one.
    Invalid,
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing.
    Keep,
    /// It cannot be decided before the kinds that are served change.
    Undecided,
    /// It loses these of its references, by place.
    Strip(Vec<usize>),
    /// It goes, and so do its dependents, before it.
    DeleteForeground,
    /// It goes in the way its own finalizers ask for.
    Delete,
}

/// Decides what becomes of an object.
pub(super) fn decide(owners: &[Standing], has_dependents: bool) -> Decision {
    let any = |wanted: Standing| owners.contains(&wanted);
    if owners.is_empty() || any(Standing::Invalid) {
        return Decision::Keep;
    }
    if any(Standing::Unknown) {
        return Decision::Undecided;
    }
    if any(Standing::Alive) {
        let dead = owners.iter().enumerate();
        let dead = dead.filter(|(_, standing)| **standing != Standing::Alive);
        let dead: Vec<usize> = dead.map(|(index, _)| index).collect();
        return match dead.is_empty() {
            true => Decision::Keep,
            false => Decision::Strip(dead),
        };
    }
    if any(Standing::Leaving) && has_dependents {
        return Decision::DeleteForeground;
    }
    Decision::Delete
}

/// Finds out how an owner stands, by its uid and by its coordinates.
pub(super) fn standing(table: &Table, namespace: Option<&str>, owner: &Owner) -> Standing {
    let (group, version) = owner
        .api_version
        .rsplit_once('/')
        .unwrap_or(("", &owner.api_version));
    let Some(Serving::Stored(served)) = table.find_kind(group, &owner.kind) else {
        return Standing::Unknown;
    };
    let kind: &Arc<Kind> = &served.kind;
    let resolved = served.version_index(version).is_some();
    let found = match (kind.namespaced(), namespace) {
        (true, None) if resolved => return Standing::Invalid,
        (true, None) => return Standing::Unknown,
        (true, Some(namespace)) => served.resource().get(&served.key(namespace, &owner.name)),
        (false, _) => served.resource().get(&owner.name),
    };
    match found {
        // That it is there is certain, even if the version it was named by is served no longer.
        Some(entry) if entry.facets().uid == owner.uid => match is_leaving(&entry) {
            true => Standing::Leaving,
            false => Standing::Alive,
        },
        _ if resolved => Standing::Absent,
        _ => Standing::Unknown,
    }
}

/// Whether an object only waits until its dependents are gone.
pub(super) fn is_leaving(entry: &Entry) -> bool {
    let facets = entry.facets();
    facets.deletion_timestamp.is_some() && facets.has_finalizer(FOREGROUND)
}

#[cfg(test)]
mod tests {
    use super::Standing::{Absent, Alive, Invalid, Leaving, Unknown};
    use super::*;

    #[test]
    fn owners_decide_over_their_dependents() {
        let cases: &[(&[Standing], bool, Decision)] = &[
            (&[], false, Decision::Keep),
            (&[Alive], false, Decision::Keep),
            (&[Absent], false, Decision::Delete),
            (&[Absent, Absent], true, Decision::Delete),
            (&[Absent, Alive, Leaving], true, Decision::Strip(vec![0, 2])),
            (&[Leaving], false, Decision::Delete),
            (&[Leaving], true, Decision::DeleteForeground),
            (&[Absent, Leaving], true, Decision::DeleteForeground),
            (&[Absent, Unknown], false, Decision::Undecided),
            (&[Alive, Unknown, Absent], false, Decision::Undecided),
            (&[Absent, Invalid], false, Decision::Keep),
        ];
        for (owners, has_dependents, expected) in cases {
            assert_eq!(decide(owners, *has_dependents), *expected, "{owners:?}");
        }
    }
}
