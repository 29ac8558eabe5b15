//! The collections there are: fixed ones, and those that users store.

use super::is_served;
use crate::members::Fleet;
use crate::types::{built_in, union};
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::kinds::computed::Question;
use bareboat_server::request::query::Query;
use bareboat_server::tables;

/// Where stored collections are.
const STORE: &str = "clusterpedia.io/collectionresources";

/// A type in a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) resource: String,
}

impl TypeName {
    /// Returns the type as clients see it.
    pub(super) fn document(&self) -> Value {
        value!({
            "group": (self.group.as_str()), "version": (self.version.as_str()),
            "kind": (self.kind.as_str()), "resource": (self.resource.as_str()),
        })
    }
}

/// A collection.
#[derive(Clone, Debug)]
pub(crate) enum Set {
    /// Types that the query names.
    Any,
    /// All built-in types.
    Built,
    /// Listed types.
    Listed {
        /// The name of the collection.
        name: String,
        /// Groups, versions and resources. An empty version is the preferred one.
        types: Vec<TypeName>,
    },
}

/// Returns the definition of collections, for those that users store.
pub(crate) fn definition() -> Value {
    value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "collectionresources.clusterpedia.io"},
        "spec": {
            "group": "clusterpedia.io", "scope": "Cluster",
            "names": {
                "plural": "collectionresources", "singular": "collectionresource",
                "kind": "CollectionResource", "listKind": "CollectionResourceList",
            },
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "description": "Several types of objects that are searched together.",
                    "required": ["resourceTypes"],
                    "properties": {
                        "resourceTypes": {
                            "type": "array", "maxItems": 500,
                            "description": "The types.",
                            "items": {
                                "type": "object", "required": ["resource"],
                                "properties": {
                                    "group": {"type": "string", "description": "The API group; empty for core."},
                                    "version": {"type": "string", "description": "The version; empty for the preferred one."},
                                    "kind": {"type": "string", "description": "The kind."},
                                    "resource": {"type": "string", "description": "The plural in URLs."},
                                },
                            },
                        },
                    },
                },
            }}],
        },
    })
}

fn workloads() -> Set {
    let one = |resource: &str, kind: &str| TypeName {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        resource: resource.to_owned(),
    };
    Set::Listed {
        name: "workloads".to_owned(),
        types: vec![
            one("deployments", "Deployment"),
            one("daemonsets", "DaemonSet"),
            one("statefulsets", "StatefulSet"),
        ],
    }
}

/// Returns all collections.
pub(super) fn all(question: &Question) -> Vec<Set> {
    let stored = question.access.objects().list(STORE, "");
    let fixed = [Set::Any, workloads(), Set::Built];
    let stored = stored.iter().map(of_object);
    let stored = stored.filter(|set| fixed.iter().all(|one| one.name() != set.name()));
    let stored: Vec<Set> = stored.collect();
    fixed.into_iter().chain(stored).collect()
}

/// Finds a collection by its name.
pub(super) fn find(question: &Question, name: &str) -> Result<Set, Status> {
    match name {
        "any" => return Ok(Set::Any),
        "workloads" => return Ok(workloads()),
        "kuberesources" => return Ok(Set::Built),
        _ => {}
    }
    let stored = question.access.objects().get(STORE, "", name);
    stored.as_ref().map(of_object).ok_or_else(|| {
        let what = GroupResource {
            group: crate::GROUP,
            resource: crate::COLLECTIONS,
        };
        Status::not_found(what, name)
    })
}

fn of_object(object: &Object) -> Set {
    let listed = object.get("resourceTypes").and_then(Value::as_array);
    let types = listed.unwrap_or_default().iter().map(|one| {
        let text = |key: &str| {
            one.get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        TypeName {
            group: text("group"),
            version: text("version"),
            kind: text("kind"),
            resource: text("resource"),
        }
    });
    Set::Listed {
        name: object.name().to_owned(),
        types: types.collect(),
    }
}

impl Set {
    fn name(&self) -> &str {
        match self {
            Set::Any => "any",
            Set::Built => "kuberesources",
            Set::Listed { name, .. } => name,
        }
    }

    fn listed(&self) -> &[TypeName] {
        match self {
            Set::Listed { types, .. } => types,
            _ => &[],
        }
    }

    /// Returns the collection as the list of collections shows it.
    pub(super) fn document(&self) -> Value {
        let types: Vec<Value> = self.listed().iter().map(TypeName::document).collect();
        value!({
            "kind": "CollectionResource", "apiVersion": "clusterpedia.io/v1beta1",
            "metadata": {"name": (self.name())}, "resourceTypes": (types),
        })
    }

    /// Returns the row of the collection.
    pub(super) fn row(&self, beta: bool) -> Value {
        let names: Vec<String> = self
            .listed()
            .iter()
            .map(|one| match one.group.as_str() {
                "" => one.resource.clone(),
                group => format!("{}.{group}", one.resource),
            })
            .collect();
        let shown = match self {
            Set::Any | Set::Built => "*".to_owned(),
            Set::Listed { .. } => names.join(","),
        };
        let object = Object::try_from(self.document()).unwrap_or_default();
        value!({
            "cells": [(self.name()), (shown)], "object": (tables::partial(&object, beta)),
        })
    }

    /// Returns the types of the collection that members have.
    pub(super) fn types(&self, fleet: &Fleet, query: &Query) -> Result<Vec<TypeName>, Status> {
        let groups = union(fleet.members.values());
        let all = groups.values().flat_map(|types| types.values());
        let all: Vec<TypeName> = all
            .flat_map(|one| {
                let versions = one.versions.first().into_iter();
                versions.map(|version| TypeName {
                    group: one.synced.group.clone(),
                    version: version.clone(),
                    kind: one.synced.kind.clone(),
                    resource: one.synced.resource.clone(),
                })
            })
            .collect();
        Ok(match self {
            Set::Built => {
                let built = |one: &TypeName| built_in(&one.group, &one.resource).is_some();
                all.into_iter().filter(built).collect()
            }
            Set::Listed { types, .. } => {
                let known = |wanted: &TypeName| {
                    let mut found = all
                        .iter()
                        .find(|one| one.group == wanted.group && one.resource == wanted.resource)?
                        .clone();
                    if !wanted.version.is_empty() {
                        found.version.clone_from(&wanted.version);
                    }
                    is_served(fleet, &found).then_some(found)
                };
                types.iter().filter_map(known).collect()
            }
            Set::Any => any(&all, fleet, query)?,
        })
    }
}

/// Returns the types that the query names.
fn any(all: &[TypeName], fleet: &Fleet, query: &Query) -> Result<Vec<TypeName>, Status> {
    let (groups, resources) = (query.get("groups"), query.given("resources"));
    if groups.is_none() && resources.is_none() {
        return Err(Status::bad_request(
            "url query - `groups` or `resources` is required",
        ));
    }
    let mut found: Vec<TypeName> = Vec::new();
    let mut add = |one: TypeName| {
        if is_served(fleet, &one) && !found.contains(&one) {
            found.push(one);
        }
    };
    for group in groups.into_iter().flat_map(|text| text.split(',')) {
        let (name, version) = match group.trim().split_once('/') {
            Some((name, version)) => (name, Some(version)),
            None => (group.trim(), None),
        };
        for one in all.iter().filter(|one| name == "*" || one.group == name) {
            add(in_version(one, version));
        }
    }
    for resource in resources.into_iter().flat_map(|text| text.split(',')) {
        let parts: Vec<&str> = resource.trim().split('/').collect();
        let (group, version, name) = match parts.as_slice() {
            [name] => ("", None, *name),
            [group, name] => (*group, None, *name),
            [group, version, name] => (*group, Some(*version), *name),
            _ => {
                return Err(Status::bad_request(format!(
                    "resources: {resource:?} is not group/version/resource"
                )));
            }
        };
        let all = all.iter();
        for one in all.filter(|one| one.group == group && (name == "*" || one.resource == name)) {
            add(in_version(one, version));
        }
    }
    Ok(found)
}

fn in_version(one: &TypeName, version: Option<&str>) -> TypeName {
    let mut one = one.clone();
    if let Some(version) = version.filter(|version| !version.is_empty()) {
        version.clone_into(&mut one.version);
    }
    one
}

/// Returns the columns of the list of collections.
pub(super) fn columns() -> Value {
    value!([
        {"name": "Name", "type": "string", "format": "name", "description": "The name of the collection.", "priority": 0},
        {"name": "Resources", "type": "string", "format": "", "description": "The types of the collection.", "priority": 0},
    ])
}
