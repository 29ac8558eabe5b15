//! The types that a view shows: those of one member, or the union of all.

use crate::members::{Fleet, Member, SyncedType, VersionSource};
use crate::twins::{self, as_twin};
use bareboat_api::kind::{Column, Conversion, Kind, PureConvert};
use bareboat_api::{Str, Value};
use bareboat_schema::crd::Definition;
use bareboat_server::discovery::compare_versions;
use bareboat_server::kinds::custom::columns_of_version;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

/// The built-in kinds, by group and plural.
static BUILT_IN: LazyLock<HashMap<(Str, Str), Arc<Kind>>> = LazyLock::new(|| {
    let all = bareboat_builtin::kinds::all().into_iter();
    let keyed = all.map(|kind| {
        let key = (kind.group.clone(), kind.names.plural.clone());
        (key, Arc::new(kind))
    });
    keyed.collect()
});

/// Returns a built-in kind of Kubernetes, by its group and plural.
pub fn built_in(group: &str, resource: &str) -> Option<&'static Arc<Kind>> {
    BUILT_IN.get(&(Str::new(group), Str::new(resource)))
}

/// Returns all built-in kinds.
pub(crate) fn built_in_kinds() -> impl Iterator<Item = &'static Arc<Kind>> {
    BUILT_IN.values()
}

/// Returns what converts objects of a built-in kind to one of its versions.
pub(crate) fn converter(
    group: &str,
    resource: &str,
    version: &str,
) -> Option<&'static PureConvert> {
    let kind = built_in(group, resource)?;
    match &kind.conversion {
        Conversion::Pure(convert) if kind.version(version).is_some() => Some(convert),
        _ => None,
    }
}

/// Where a member's objects of a version come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From the shelf as they are.
    Stored,
    /// From the shelf, with another apiVersion.
    Rewritten,
    /// From the shelf, converted here.
    Converted,
    /// From the member itself.
    Live,
}

/// Returns where objects of a group and version come from; `None` if the type has no such version.
pub(crate) fn source(synced: &SyncedType, group: &str, version: &str) -> Option<Source> {
    if synced.group != group {
        let convert = twins::converter(group, &synced.resource, version);
        return convert.map(|_| Source::Converted);
    }
    if synced.version == version {
        return Some(Source::Stored);
    }
    let other = synced.others.iter().find(|other| other.name == version)?;
    if synced.definition.is_none() && converter(&synced.group, &synced.resource, version).is_some()
    {
        return Some(Source::Converted);
    }
    Some(match other.source {
        VersionSource::Shelf => Source::Rewritten,
        VersionSource::Member => Source::Live,
    })
}

/// A type as a view shows it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) synced: Arc<SyncedType>,
    /// The versions, the preferred one first.
    pub(crate) versions: Vec<String>,
}

/// Groups of types, by name; each with its types by plural.
pub(crate) type Groups = BTreeMap<String, BTreeMap<String, Shown>>;

/// Returns the types of some members together.
pub(crate) fn union<'m>(members: impl Iterator<Item = &'m Arc<Member>>) -> Groups {
    let mut groups = Groups::new();
    let types = members.flat_map(|member| &member.types);
    let twins = |synced: &Arc<SyncedType>| as_twin(synced).map(Arc::new);
    for synced in types.flat_map(|synced| [Some(synced.clone()), twins(synced)]) {
        let Some(synced) = synced else {
            continue;
        };
        let group = groups.entry(synced.group.clone()).or_default();
        let shown = group
            .entry(synced.resource.clone())
            .or_insert_with(|| Shown {
                synced: synced.clone(),
                versions: Vec::new(),
            });
        let others = synced.others.iter().map(|other| &other.name);
        for version in std::iter::once(&synced.version).chain(others) {
            if !shown.versions.contains(version) {
                shown.versions.push(version.clone());
            }
        }
    }
    for shown in groups.values_mut().flat_map(BTreeMap::values_mut) {
        shown.versions.sort_by(|a, b| compare_versions(a, b));
    }
    groups
}

/// A type and version as a request asks for it.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Whether the kind is in another group, too.
    pub(crate) has_twin: bool,
    /// Whether rows are in that other group, and are converted to this one.
    pub(crate) is_twin: bool,
    /// The columns after the name, and the kind that rows are printed for.
    pub(crate) columns: Arc<[Column]>,
    pub(crate) printer: Arc<Kind>,
}

impl Asked {
    /// Returns `apps/v1`, or `v1` for core.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Finds a type in the fleet; with a member, in that one only.
    pub(crate) fn find(
        fleet: &Fleet,
        member: Option<&Arc<Member>>,
        group: &str,
        version: &str,
        resource: &str,
    ) -> Option<Asked> {
        let members: Vec<&Arc<Member>> = match member {
            Some(member) => vec![member],
            None => fleet.members.values().collect(),
        };
        let types = members
            .into_iter()
            .filter_map(|member| member.synced(group, resource));
        let mut types = types.filter(|synced| source(synced, group, version).is_some());
        let synced = types.next()?;
        let definition = std::iter::once(synced)
            .chain(types)
            .find_map(|synced| synced.definition.clone());
        let (columns, printer) = printed(synced, group, version, definition.as_deref());
        Some(Asked {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            kind: synced.kind.clone(),
            namespaced: synced.namespaced,
            has_twin: twins::twin(group, resource).is_some(),
            is_twin: synced.group != group,
            columns,
            printer,
        })
    }
}

/// Returns the columns of a type, and the kind for its rows.
fn printed(
    synced: &SyncedType,
    group: &str,
    version: &str,
    definition: Option<&Value>,
) -> (Arc<[Column]>, Arc<Kind>) {
    if let Some(kind) = built_in(group, &synced.resource) {
        let found = kind.version(version).or(kind.versions.first());
        let columns = found.map(|version| version.columns.clone());
        return (columns.unwrap_or_default(), kind.clone());
    }
    let names = bareboat_api::kind::Names::new(&synced.resource, &synced.kind);
    let scope = match synced.namespaced {
        true => bareboat_api::kind::Scope::Namespaced,
        false => bareboat_api::kind::Scope::Cluster,
    };
    let kind = Arc::new(Kind::new(&synced.group, names, scope).into_custom());
    let parsed = definition.map(Definition::parse);
    let of_version = parsed.as_ref().and_then(|parsed| parsed.version(version));
    let columns = match of_version {
        Some(version) => columns_of_version(version),
        None => Arc::new([Column::age()]),
    };
    (columns, kind)
}

#[cfg(test)]
mod tests {
    use super::{Source, source, union};
    use crate::members::{Member, OtherVersion, SyncedType, VersionSource};
    use std::sync::Arc;

    fn member(version: &str, others: &[(&str, VersionSource)]) -> Arc<Member> {
        let others = others.iter().map(|(name, source)| OtherVersion {
            name: (*name).to_owned(),
            source: *source,
        });
        Arc::new(Member {
            types: vec![Arc::new(SyncedType {
                group: "a.example.com".to_owned(),
                version: version.to_owned(),
                resource: "things".to_owned(),
                others: others.collect(),
                ..SyncedType::default()
            })],
            ..Member::default()
        })
    }

    #[test]
    fn members_add_versions_to_a_type() {
        let members = [
            member("v1", &[("v1beta1", VersionSource::Shelf)]),
            member("v2", &[("v1", VersionSource::Member)]),
        ];
        let groups = union(members.iter());
        assert_eq!(
            groups["a.example.com"]["things"].versions,
            ["v2", "v1", "v1beta1"]
        );
        let synced = &members[0].types[0];
        let source = |version: &str| source(synced, "a.example.com", version);
        assert_eq!(source("v1"), Some(Source::Stored));
        assert_eq!(source("v1beta1"), Some(Source::Rewritten));
        assert_eq!(source("v3"), None);
    }

    #[test]
    fn built_in_kinds_are_converted_here() {
        let mut autoscalers = SyncedType {
            group: "autoscaling".to_owned(),
            version: "v2".to_owned(),
            resource: "horizontalpodautoscalers".to_owned(),
            others: vec![OtherVersion {
                name: "v1".to_owned(),
                source: VersionSource::Member,
            }],
            ..SyncedType::default()
        };
        let group = "autoscaling";
        assert_eq!(source(&autoscalers, group, "v1"), Some(Source::Converted));
        // A version that is not known here is the member's business.
        autoscalers.others[0].name = "v3".to_owned();
        assert_eq!(source(&autoscalers, group, "v3"), Some(Source::Live));
    }

    #[test]
    fn events_are_shown_in_both_groups() {
        let group = "events.k8s.io";
        let events = SyncedType {
            version: "v1".to_owned(),
            resource: "events".to_owned(),
            ..SyncedType::default()
        };
        assert_eq!(source(&events, "", "v1"), Some(Source::Stored));
        assert_eq!(source(&events, group, "v1"), Some(Source::Converted));
        assert_eq!(source(&events, group, "v1beta1"), None);
        let member = Arc::new(Member {
            types: vec![Arc::new(events)],
            ..Member::default()
        });
        let groups = union(std::iter::once(&member));
        assert_eq!(groups[""]["events"].versions, ["v1"]);
        assert_eq!(groups[group]["events"].versions, ["v1"]);
        assert_eq!(groups[group]["events"].synced.group, group);
        assert!(member.synced(group, "events").is_some());
        assert!(member.synced(group, "pods").is_none());
    }
}
