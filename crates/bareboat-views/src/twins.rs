//! Kinds of Kubernetes that two groups have, such as events: members are synced in one of them, and views show both.

use crate::collections::TypeName;
use crate::members::{Member, SyncedType};
use crate::types::{Asked, built_in, built_in_kinds};
use bareboat_api::Str;
use bareboat_api::kind::{Conversion, Kind, PureConvert};
use bareboat_builtin::kinds::event_member_in;
use bareboat_shelf::{Directory, KindId, Narrow};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The groups and plurals of kinds that have a twin, and the twin. Twins have one store in a server.
static TWINS: LazyLock<HashMap<(Str, Str), Arc<Kind>>> = LazyLock::new(|| {
    let mut twins = HashMap::new();
    for kind in built_in_kinds() {
        let twin = |other: &&Arc<Kind>| other.store == kind.store && other.group != kind.group;
        if let Some(twin) = built_in_kinds().find(twin) {
            let key = (kind.group.clone(), kind.names.plural.clone());
            twins.insert(key, twin.clone());
        }
    }
    twins
});

/// Returns the same kind in another group.
pub(crate) fn twin(group: &str, resource: &str) -> Option<&'static Arc<Kind>> {
    TWINS.get(&(Str::new(group), Str::new(resource)))
}

/// Returns what converts objects to a kind from its twin.
pub(crate) fn converter(
    group: &str,
    resource: &str,
    version: &str,
) -> Option<&'static PureConvert> {
    let (kind, twin) = (built_in(group, resource)?, twin(group, resource)?);
    kind.version(version)?;
    // One of them is the form in which a server stores objects, and has nothing to convert.
    [kind, twin]
        .into_iter()
        .find_map(|one| match &one.conversion {
            Conversion::Pure(convert) => Some(convert),
            _ => None,
        })
}

/// Returns a synced type as it is in the group of its twin.
pub(crate) fn as_twin(synced: &SyncedType) -> Option<SyncedType> {
    let twin = twin(&synced.group, &synced.resource)?;
    let version = twin.versions.first()?;
    Some(SyncedType {
        group: twin.group.to_string(),
        version: version.name.to_string(),
        others: Vec::new(),
        ..synced.clone()
    })
}

impl Asked {
    /// Returns the kinds of rows that are shown as this kind.
    pub(crate) fn kinds(&self, directory: &Directory) -> Vec<KindId> {
        kinds(&self.group, &self.resource, directory)
    }

    /// Returns the kind of rows of a member that are shown as this kind.
    pub(crate) fn kind_in(&self, member: &Member, directory: &Directory) -> Option<KindId> {
        let synced = member.synced(&self.group, &self.resource)?;
        directory.kind(&synced.group, &synced.resource)
    }

    /// Returns whether a row is of this kind and version, so that it needs no conversion.
    pub(crate) fn is_stored(&self, narrow: &Narrow, directory: &Directory) -> bool {
        // Nearly all kinds are in one group only.
        let in_group = || {
            let info = directory.kind_info(narrow.kind);
            info.is_none_or(|info| info.group == self.group)
        };
        narrow.version == self.version && (!self.has_twin || in_group())
    }

    /// Returns what converts rows of members to this kind, and the apiVersion, if rows are in another group.
    pub(crate) fn form(&self) -> Option<(&'static PureConvert, String)> {
        let convert = converter(&self.group, &self.resource, &self.version);
        let convert = convert.filter(|_| self.is_twin)?;
        Some((convert, self.api_version()))
    }

    /// Returns what a top-level field is called in the rows of members.
    pub(crate) fn stored_name(&self, name: &str) -> Option<&'static str> {
        let twin = twin(&self.group, &self.resource).filter(|_| self.is_twin)?;
        event_member_in(&twin.group, name)
    }
}

impl TypeName {
    /// Returns whether this is the same kind as another one in another group.
    pub(crate) fn is_twin_of(&self, other: &TypeName) -> bool {
        let twin = twin(&self.group, &self.resource);
        twin.is_some_and(|twin| twin.group == other.group && self.resource == other.resource)
    }

    /// Returns the kinds of rows that are shown as this type.
    pub(crate) fn kinds(&self, directory: &Directory) -> Vec<KindId> {
        kinds(&self.group, &self.resource, directory)
    }
}

/// Returns the kinds of rows that are shown as a kind: its own, and its twin.
fn kinds(group: &str, resource: &str, directory: &Directory) -> Vec<KindId> {
    let twin = twin(group, resource).map(|twin| twin.group.as_str());
    let groups = std::iter::once(group).chain(twin);
    groups
        .filter_map(|group| directory.kind(group, resource))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{TWINS, converter, twin};

    #[test]
    fn events_are_the_kind_that_two_groups_have() {
        assert_eq!(TWINS.len(), 2);
        assert_eq!(
            twin("", "events").map(|kind| &*kind.group),
            Some("events.k8s.io")
        );
        assert_eq!(
            twin("events.k8s.io", "events").map(|kind| &*kind.group),
            Some("")
        );
        assert!(converter("", "events", "v1").is_some());
        assert!(converter("events.k8s.io", "events", "v1").is_some());
        assert!(converter("events.k8s.io", "events", "v1beta1").is_none());
        assert!(converter("", "pods", "v1").is_none());
    }
}
