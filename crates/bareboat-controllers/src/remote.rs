//! Resources of other API servers, which are reached through this one. `pages` lists their objects, with limits, because
//! another server may answer anything.

mod pages;

pub(crate) use pages::{Metadata, OwnerReference, list};

use bareboat_api::{Str, Value};
use bareboat_server::Server;
use bareboat_server::discovery::RemoteVersion;
use std::collections::HashSet;

/// How many collections are listed at the same time for one purpose.
pub(crate) const AT_ONCE: usize = 4;

/// The group and the plural of a resource.
pub(crate) type GroupResource = (Str, Str);

/// A resource of another server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteResource {
    pub(crate) group: Str,
    pub(crate) version: Str,
    pub(crate) plural: Str,
    pub(crate) kind: Str,
    pub(crate) namespaced: bool,
    verbs: Vec<Str>,
}

impl RemoteResource {
    pub(crate) fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| *known == verb)
    }

    /// Whether it is namespaced, and can be listed and deleted.
    fn can_be_removed(&self) -> bool {
        let deletes = self.has("delete") || self.has("deletecollection");
        self.namespaced && deletes && self.has("list")
    }

    /// The name in messages: `flunders.wardle.example.com`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The group and the plural, which are the same in all versions.
    pub(crate) fn group_resource(&self) -> GroupResource {
        (self.group.clone(), self.plural.clone())
    }

    /// The URL of the collection, in a namespace if the resource is namespaced.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}

/// Returns the resources of other servers whose objects can be removed from a namespace, each in one version that can
/// list and delete, and the versions that are not available (`GROUP/VERSION`) and may have such resources.
pub(crate) fn removable(server: &Server) -> (Vec<RemoteResource>, Vec<String>) {
    removable_of(server.remote_versions())
}

/// Returns the resources of other servers whose objects can be collected, each in one version, and the groups with a
/// version that is not available.
// Upstream: garbagecollector/garbagecollector.go, GetDeletableResources.
pub(crate) fn collectable(server: &Server) -> (Vec<RemoteResource>, HashSet<Str>) {
    let verbs = ["list", "watch", "delete"];
    let versions = server.remote_versions();
    let (found, unavailable) = choose(versions, |resource| {
        verbs.iter().all(|verb| resource.has(verb))
    });
    let groups = unavailable.into_iter().map(|version| version.group);
    (found, groups.collect())
}

fn removable_of(versions: Vec<RemoteVersion>) -> (Vec<RemoteResource>, Vec<String>) {
    let (found, unavailable) = choose(versions, RemoteResource::can_be_removed);
    (found, unavailable.iter().map(group_version).collect())
}

/// Returns the resources that meet a condition, each in one version, and the versions that are not available. One that had no
/// such resource when its server last answered is left out: it is nothing to wait for.
fn choose(
    versions: Vec<RemoteVersion>,
    is_wanted: impl Fn(&RemoteResource) -> bool,
) -> (Vec<RemoteResource>, Vec<RemoteVersion>) {
    let mut seen: HashSet<GroupResource> = HashSet::new();
    let (mut found, mut unavailable) = (Vec::new(), Vec::new());
    for version in versions {
        match resources_of(&version) {
            None => {
                let last = version.last_resources.as_deref();
                let last = last.map(|resources| parse(&version, resources));
                if last.is_none_or(|last| last.iter().any(&is_wanted)) {
                    unavailable.push(version);
                }
            }
            Some(resources) => {
                let new = |resource: &RemoteResource| {
                    is_wanted(resource) && seen.insert(resource.group_resource())
                };
                found.extend(resources.into_iter().filter(new));
            }
        }
    }
    (found, unavailable)
}

fn group_version(version: &RemoteVersion) -> String {
    match version.group.as_str() {
        "" => version.version.to_string(),
        group => format!("{group}/{}", version.version),
    }
}

/// Returns the resources of one version, if they are known.
pub(crate) fn resources_of(version: &RemoteVersion) -> Option<Vec<RemoteResource>> {
    let resources = version.resources.as_ref()?;
    Some(parse(version, resources))
}

fn parse(version: &RemoteVersion, resources: &[Value]) -> Vec<RemoteResource> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(Str::new);
    let resources = resources.iter().filter_map(|resource| {
        let plural = text(resource.get("resource"))?;
        // It becomes a part of URLs.
        if !plural
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        {
            return None;
        }
        let verbs = resource.get("verbs").and_then(Value::as_array);
        Some(RemoteResource {
            group: version.group.clone(),
            version: version.version.clone(),
            plural,
            kind: text(resource.at(&["responseKind", "kind"])).unwrap_or_default(),
            namespaced: text(resource.get("scope")).is_some_and(|scope| scope == "Namespaced"),
            verbs: verbs
                .unwrap_or(&[])
                .iter()
                .filter_map(|verb| text(Some(verb)))
                .collect(),
        })
    });
    resources.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn version(version: &str, resources: Option<Vec<Value>>) -> RemoteVersion {
        RemoteVersion {
            group: Str::new("example.com"),
            version: Str::new(version),
            group_priority: 1,
            version_priority: 1,
            resources,
            last_resources: None,
        }
    }

    fn resource(plural: &str, scope: &str, verbs: Value) -> Value {
        value!({"resource": plural, "scope": scope, "verbs": verbs})
    }

    #[test]
    fn a_version_that_cannot_delete_does_not_stand_for_one_that_can() {
        let full = || value!(["list", "delete"]);
        let (found, unavailable) = removable_of(vec![
            version("v3", None),
            version(
                "v2",
                Some(vec![
                    resource("things", "Namespaced", value!(["get", "list"])),
                    resource("others", "Namespaced", value!(["list", "deletecollection"])),
                    resource("wide", "Cluster", full()),
                ]),
            ),
            version(
                "v1",
                Some(vec![
                    resource("things", "Namespaced", full()),
                    resource("others", "Namespaced", full()),
                ]),
            ),
        ]);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|found| (found.version.as_str(), found.plural.as_str()))
            .collect();
        assert_eq!(found, [("v2", "others"), ("v1", "things")]);
        assert_eq!(unavailable, ["example.com/v3"]);
    }

    #[test]
    fn a_version_that_last_had_nothing_to_remove_is_nothing_to_wait_for() {
        let gone = |name: &str, last: Vec<Value>| RemoteVersion {
            last_resources: Some(last.into()),
            ..version(name, None)
        };
        let (found, unavailable) = removable_of(vec![
            version("v4", None),
            gone(
                "v3",
                vec![resource("things", "Namespaced", value!(["list", "delete"]))],
            ),
            gone(
                "v2",
                vec![
                    resource("pods", "Namespaced", value!(["get", "list"])),
                    resource("nodes", "Cluster", value!(["list", "delete"])),
                ],
            ),
            gone("v1", Vec::new()),
        ]);
        assert!(found.is_empty());
        assert_eq!(unavailable, ["example.com/v4", "example.com/v3"]);
    }
}
