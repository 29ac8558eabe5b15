//! What the server serves, told to clients: groups, versions, resources, and the list of all paths.
//!
//! Everything here follows from the served kinds and from what remote API services say of
//! themselves. Choosing the form, encoding and caching are left to the caller, who keeps one
//! [`Discovery`] per generation of its catalog.

mod aggregated;
mod json;
mod legacy;
mod order;
mod paths;
mod remote;

pub use aggregated::{AggregatedList, entity_tag};
pub use json::print;
pub use order::compare_versions;
pub use remote::{aggregated_resources, listed_resources};

use bareboat_api::kind::{Verb, Version};
use bareboat_api::{Kind, Str, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How early a version comes within its group when nobody says so; higher is earlier.
const USUAL_VERSION_PRIORITY: u32 = 100;

/// A group and version that another server answers for.
#[derive(Clone, Debug)]
pub struct RemoteVersion {
    /// The API group.
    pub group: Str,
    /// The version, such as `v1beta1`.
    pub version: Str,
    /// How early the group comes: higher is earlier.
    pub group_priority: u32,
    /// How early the version comes within its group: higher is earlier.
    pub version_priority: u32,
    /// Its resources as aggregated discovery lists them; nothing while the server cannot be asked.
    pub resources: Option<Vec<Value>>,
}

/// The served groups in the order discovery lists them.
#[derive(Debug)]
pub struct Discovery {
    groups: Vec<Group>,
}

/// One API group.
#[derive(Debug)]
struct Group {
    name: Str,
    /// The preferred one first.
    versions: Vec<GroupVersion>,
}

/// One version of a group.
#[derive(Debug)]
struct GroupVersion {
    name: Str,
    content: Content,
}

/// Where the resources of a version are described.
#[derive(Debug)]
enum Content {
    /// Kinds of this server by plural, each with the index of the version.
    Local(Vec<(Arc<Kind>, usize)>),
    /// Another server's word for it.
    Remote(Option<Vec<Value>>),
}

/// A group while it is being gathered.
#[derive(Default)]
struct Gathered {
    priority: u32,
    versions: BTreeMap<Str, (u32, Content)>,
}

impl Discovery {
    /// Sorts kinds and remote versions into groups.
    ///
    /// A remote version hides local kinds of the same group and version, as routing does.
    pub fn new(kinds: &[Arc<Kind>], remotes: &[RemoteVersion]) -> Discovery {
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
                let group = groups.entry(kind.group.clone()).or_default();
                group.priority = group.priority.max(kind.group_priority);
                let (_, content) = group
                    .versions
                    .entry(version.name.clone())
                    .or_insert_with(|| (USUAL_VERSION_PRIORITY, Content::Local(Vec::new())));
                if let Content::Local(kinds) = content {
                    kinds.push((kind.clone(), index));
                }
            }
        }
        let mut groups: Vec<(Str, Gathered)> = groups.into_iter().collect();
        // Stable: equal priorities stay in the order of names.
        groups.sort_by_key(|(_, group)| Reverse(group.priority));
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

    /// The groups that have a name, that is all but core.
    fn named(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.name.is_empty())
    }

    fn find(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}

fn sorted_versions(versions: BTreeMap<Str, (u32, Content)>) -> Vec<GroupVersion> {
    let mut versions: Vec<(Str, (u32, Content))> = versions.into_iter().collect();
    versions.sort_by(|(a, (a_priority, _)), (b, (b_priority, _))| {
        b_priority
            .cmp(a_priority)
            .then_with(|| compare_versions(a, b))
    });
    versions
        .into_iter()
        .map(|(name, (_, mut content))| {
            if let Content::Local(kinds) = &mut content {
                kinds.sort_by(|(a, _), (b, _)| a.names.plural.cmp(&b.names.plural));
            }
            GroupVersion { name, content }
        })
        .collect()
}

/// The subresources of a version in the order discovery lists them: built-in ones by name, those of
/// custom kinds as declared.
fn subresources<'a>(kind: &Kind, version: &'a Version) -> Vec<&'a bareboat_api::kind::Subresource> {
    let mut subresources: Vec<_> = version.subresources.iter().collect();
    if !kind.custom {
        subresources.sort_by(|a, b| a.name.cmp(&b.name));
    }
    subresources
}

/// The verbs of a kind in the order discovery lists them.
fn verbs(kind: &Kind) -> Value {
    // Upstream lists the verbs of custom kinds in another order than those of built-in ones.
    const CUSTOM: [Verb; 8] = [
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Create,
        Verb::Update,
        Verb::Watch,
    ];
    let order = if kind.custom { CUSTOM } else { Verb::ALL };
    order
        .into_iter()
        .filter(|verb| kind.verbs.has(*verb))
        .map(Verb::name)
        .collect()
}

#[cfg(test)]
mod tests;
