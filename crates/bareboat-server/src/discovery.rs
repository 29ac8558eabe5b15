//! Discovery documents: groups, versions, resources, and the list of all paths.
//!
//! They are made from the served kinds and from the discovery of remote API services. The caller negotiates, encodes
//! and caches, and keeps one [`Discovery`] per generation of its catalog.

mod aggregated;
mod json;
mod legacy;
mod paths;
mod remote;
mod version_order;

pub use aggregated::{AggregatedList, entity_tag};
pub use json::print;
pub use remote::{aggregated_resources, listed_resources};
pub use version_order::compare_versions;

use crate::kinds::computed::ANY_RESOURCE;
use bareboat_api::kind::{DiscoveryStyle, Verb, Version};
use bareboat_api::{Kind, Str, Value, sort_by};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Default priority of a version within its group; higher comes first.
const USUAL_VERSION_PRIORITY: u32 = 100;

/// A group and version that another server serves.
#[derive(Clone, Debug)]
pub struct RemoteVersion {
    /// The API group.
    pub group: Str,
    /// The version, such as `v1beta1`.
    pub version: Str,
    /// The priority of the group: higher comes first.
    pub group_priority: u32,
    /// The priority of the version within its group: higher comes first.
    pub version_priority: u32,
    /// Its resources, in the format of aggregated discovery; `None` while the server is unreachable.
    pub resources: Option<Vec<Value>>,
    /// The resources it had when it was last asked successfully, also while it is unreachable; `None` if it never was.
    pub last_resources: Option<Arc<[Value]>>,
}

/// The priorities that APIServices give to a group and to a version, by group and version.
pub type Priorities = BTreeMap<(Str, Str), (u32, u32)>;

/// The served groups in the order discovery lists them.
#[derive(Debug)]
pub struct Discovery {
    groups: Vec<Group>,
}

/// One API group.
#[derive(Debug)]
struct Group {
    name: Str,
    /// The preferred version comes first.
    versions: Vec<GroupVersion>,
}

/// One version of a group.
#[derive(Debug)]
struct GroupVersion {
    name: Str,
    content: Content,
}

/// The resources of a version.
#[derive(Debug)]
enum Content {
    /// Kinds of this server by plural, each with the index of the version.
    Local(Vec<(Arc<Kind>, usize)>),
    /// Resources as another server lists them.
    Remote(Option<Vec<Value>>),
}

/// A group while it is collected.
#[derive(Default)]
struct Gathered {
    priority: u32,
    versions: BTreeMap<Str, (u32, Content)>,
}

impl Discovery {
    /// Sorts kinds and remote versions into groups.
    ///
    /// A remote version hides local kinds of the same group and version, as routing does. A kind whose version has an
    /// APIService has the priorities of that; others have those of the kind.
    pub fn new(
        kinds: &[Arc<Kind>],
        remotes: &[RemoteVersion],
        priorities: &Priorities,
    ) -> Discovery {
        let mut groups: BTreeMap<Str, Gathered> = BTreeMap::new();
        for remote in remotes {
            let group = groups.entry(remote.group.clone()).or_default();
            group.priority = group.priority.max(remote.group_priority);
            let content = Content::Remote(remote.resources.clone());
            group
                .versions
                .insert(remote.version.clone(), (remote.version_priority, content));
        }
        for kind in kinds {
            for (index, version) in kind.versions.iter().enumerate() {
                if !version.served {
                    continue;
                }
                let place = (kind.group.clone(), version.name.clone());
                let (of_group, of_version) = priorities
                    .get(&place)
                    .copied()
                    .unwrap_or((kind.group_priority, USUAL_VERSION_PRIORITY));
                let group = groups.entry(place.0).or_default();
                let (_, content) = group
                    .versions
                    .entry(place.1)
                    .or_insert_with(|| (of_version, Content::Local(Vec::new())));
                if matches!(content, Content::Local(_)) {
                    group.priority = group.priority.max(of_group);
                }
                if let Content::Local(kinds) = content
                    && kind.names.plural != ANY_RESOURCE
                {
                    kinds.push((kind.clone(), index));
                }
            }
        }
        let mut groups: Vec<(Str, Gathered)> = groups.into_iter().collect();
        // Stable: equal priorities stay in the order of names.
        sort_by(&mut groups, |(_, a), (_, b)| b.priority.cmp(&a.priority));
        Discovery {
            groups: groups
                .into_iter()
                .map(|(name, gathered)| Group {
                    name,
                    versions: sorted_versions(gathered.versions),
                })
                .collect(),
        }
    }

    /// Returns all groups but core.
    fn named(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.name.is_empty())
    }

    fn find(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}

fn sorted_versions(versions: BTreeMap<Str, (u32, Content)>) -> Vec<GroupVersion> {
    let mut versions: Vec<(Str, (u32, Content))> = versions.into_iter().collect();
    sort_by(
        &mut versions,
        |(a, (a_priority, _)), (b, (b_priority, _))| {
            b_priority
                .cmp(a_priority)
                .then_with(|| compare_versions(a, b))
        },
    );
    versions
        .into_iter()
        .map(|(name, (_, mut content))| {
            if let Content::Local(kinds) = &mut content {
                sort_by(kinds, |(a, _), (b, _)| a.names.plural.cmp(&b.names.plural));
            }
            GroupVersion { name, content }
        })
        .collect()
}

/// Returns the subresources of a version in the order discovery lists them.
fn subresources<'a>(kind: &Kind, version: &'a Version) -> Vec<&'a bareboat_api::kind::Subresource> {
    let mut subresources: Vec<_> = version.subresources.iter().collect();
    if kind.conventions.discovery == DiscoveryStyle::Sorted {
        sort_by(&mut subresources, |a, b| a.name.cmp(&b.name));
    }
    subresources
}

/// Returns the verbs of a kind in the order discovery lists them.
fn verbs(kind: &Kind) -> Value {
    const DECLARED: [Verb; 8] = [
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Create,
        Verb::Update,
        Verb::Watch,
    ];
    let order = match kind.conventions.discovery {
        DiscoveryStyle::Declared => DECLARED,
        DiscoveryStyle::Sorted => Verb::ALL,
    };
    order
        .into_iter()
        .filter(|verb| kind.verbs.has(*verb))
        .map(Verb::name)
        .collect()
}

#[cfg(test)]
mod tests;
