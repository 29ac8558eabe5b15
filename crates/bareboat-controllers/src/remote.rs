//! Objects of other API servers, which are reached through this one: listed, read and deleted with limits, because
//! another server may answer anything.

use crate::Client;
use bareboat_api::{Status, Str, Value, value};
use bareboat_server::Server;
use bareboat_server::discovery::RemoteVersion;
use http::Method;
use std::collections::HashSet;

/// How many objects one page of a list has.
const PAGE: usize = 500;
/// How many pages of a list are read.
const MOST_PAGES: usize = 200;

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
/// list and delete, and the versions that are not available (`GROUP/VERSION`).
pub(crate) fn removable(server: &Server) -> (Vec<RemoteResource>, Vec<String>) {
    removable_of(server.remote_versions())
}

/// Returns the resources of other servers whose objects can be collected, each in one version.
// Upstream: garbagecollector/garbagecollector.go, GetDeletableResources.
pub(crate) fn collectable(server: &Server) -> Vec<RemoteResource> {
    let verbs = ["list", "watch", "delete"];
    let versions = server.remote_versions();
    choose(versions, |resource| {
        verbs.iter().all(|verb| resource.has(verb))
    })
    .0
}

fn removable_of(versions: Vec<RemoteVersion>) -> (Vec<RemoteResource>, Vec<String>) {
    choose(versions, RemoteResource::can_be_removed)
}

/// Returns the resources that meet a condition, each in one version, and the versions that are not available.
fn choose(
    versions: Vec<RemoteVersion>,
    is_wanted: impl Fn(&RemoteResource) -> bool,
) -> (Vec<RemoteResource>, Vec<String>) {
    let mut seen: HashSet<(Str, Str)> = HashSet::new();
    let (mut found, mut unavailable) = (Vec::new(), Vec::new());
    for version in versions {
        match resources_of(&version) {
            None => unavailable.push(group_version(&version)),
            Some(resources) => {
                let new = |resource: &RemoteResource| {
                    is_wanted(resource)
                        && seen.insert((resource.group.clone(), resource.plural.clone()))
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
    let resources = version.resources.as_ref()?.iter();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(Str::new);
    let resources = resources.filter_map(|resource| {
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
    Some(resources.collect())
}

/// Returns the metadata of all objects in a collection.
pub(crate) async fn list(client: &Client, collection: &str) -> Result<Vec<Value>, Status> {
    let mut found = Vec::new();
    let mut after = String::new();
    for _ in 0..MOST_PAGES {
        let mut path = format!("{collection}?limit={PAGE}");
        if !after.is_empty() {
            path.push_str("&continue=");
            path.push_str(&escape(&after));
        }
        let page = client.remote(Method::GET, &path, None).await?;
        let items = page.get("items").and_then(Value::as_array);
        for item in items.unwrap_or(&[]) {
            let metadata = item.get("metadata").cloned().unwrap_or_default();
            found.push(value!({"metadata": metadata}));
        }
        let next = page.at(&["metadata", "continue"]).and_then(Value::as_str);
        match next.filter(|next| !next.is_empty() && *next != after) {
            Some(next) => after = next.to_owned(),
            None => return Ok(found),
        }
    }
    Err(Status::internal(format!(
        "{collection} has too many objects"
    )))
}

fn escape(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() {
            true => out.push(char::from(byte)),
            false => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: &str, resources: Option<Vec<Value>>) -> RemoteVersion {
        RemoteVersion {
            group: Str::new("example.com"),
            version: Str::new(version),
            group_priority: 1,
            version_priority: 1,
            resources,
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
}
