//! What a member served before this server started, by the status of its PediaCluster and by the shelf. Views show these rows until
//! the member is heard, also if it cannot be reached.

use super::session::Common;
use crate::discovery::ApiResource;
use crate::types::{Chosen, DEFINITIONS, Definitions, TypeKey};
use bareboat_api::{Object, Value};
use bareboat_shelf::MemberId;
use std::collections::BTreeSet;

/// Returns the types whose rows are complete. It reads the shelf, so it blocks for a moment.
pub(super) fn types(common: &Common, member: MemberId, object: &Object) -> Vec<Chosen> {
    let directory = common.shelf.directory();
    let Ok(progress) = common.shelf.progress(member) else {
        return Vec::new();
    };
    let saved = progress
        .iter()
        .filter(|(_, progress)| !progress.resource_version.is_empty());
    let saved: BTreeSet<TypeKey> = saved
        .filter_map(|(kind, _)| directory.kind_info(kind.0))
        .map(|info| (info.group.clone(), info.resource.clone()))
        .collect();
    let kind = directory.kind(DEFINITIONS.0, DEFINITIONS.1);
    let definitions = kind.and_then(|kind| {
        common
            .definitions
            .read(&common.shelf, object.name(), kind)
            .ok()
    });
    of_status(object, &saved, &definitions.unwrap_or_default())
}

fn of_status(object: &Object, saved: &BTreeSet<TypeKey>, definitions: &Definitions) -> Vec<Chosen> {
    let list = |value: Option<&Value>| -> Vec<Value> {
        let list = value.and_then(Value::as_array);
        list.map(<[Value]>::to_vec).unwrap_or_default()
    };
    let mut types = Vec::new();
    for group in list(object.at(&["status", "syncResources"])) {
        for resource in list(group.get("resources")) {
            types.extend(one(&group, &resource, saved, definitions));
        }
    }
    types
}

fn one(
    group: &Value,
    resource: &Value,
    saved: &BTreeSet<TypeKey>,
    definitions: &Definitions,
) -> Option<Chosen> {
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    let conditions = resource.get("syncConditions")?.as_array()?;
    let version = text(conditions.first()?, "version")?;
    let kind = text(resource, "kind")?;
    let resource = ApiResource {
        group: text(group, "group").unwrap_or_default(),
        version,
        resource: text(resource, "name")?,
        singular: kind.to_lowercase(),
        kind,
        namespaced: resource.get("namespaced") == Some(&Value::Bool(true)),
        ..ApiResource::default()
    };
    let key = resource.key();
    if !saved.contains(&key) {
        return None;
    }
    let definition = definitions.get(&key).cloned();
    let (resource, others) = match &definition {
        Some(definition) => of_definition(resource, definition),
        None => of_kind(resource),
    };
    Some(Chosen {
        resource,
        alias: None,
        others,
        definition,
        shown: true,
        // Values of Secrets are not shown before the rules were read.
        named: false,
    })
}

/// Adds the names of a custom kind, and returns its other versions.
fn of_definition(mut resource: ApiResource, definition: &Value) -> (ApiResource, Vec<String>) {
    let names = |key: &str| -> Vec<String> {
        let list = definition.at(&["spec", "names", key]);
        let list = list.and_then(Value::as_array).unwrap_or_default().iter();
        list.filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    resource.short_names = names("shortNames");
    resource.categories = names("categories");
    let singular = definition.at(&["spec", "names", "singular"]);
    if let Some(singular) = singular.and_then(Value::as_str) {
        resource.singular = singular.to_owned();
    }
    let versions = definition.at(&["spec", "versions"]);
    let versions = versions.and_then(Value::as_array).unwrap_or_default();
    let served = versions
        .iter()
        .filter(|one| one.get("served") != Some(&Value::Bool(false)));
    let names = served.filter_map(|one| Some(one.get("name")?.as_str()?.to_owned()));
    let others = names.filter(|name| *name != resource.version).collect();
    (resource, others)
}

/// Adds the names of a kind of Kubernetes, and returns its other versions. They are those that this program knows; the member tells
/// its own when it is heard.
fn of_kind(mut resource: ApiResource) -> (ApiResource, Vec<String>) {
    let Some(kind) = bareboat_views::built_in(&resource.group, &resource.resource) else {
        return (resource, Vec::new());
    };
    resource.singular = kind.names.singular.to_string();
    resource.short_names = kind.names.short.iter().map(ToString::to_string).collect();
    resource.categories = kind
        .names
        .categories
        .iter()
        .map(ToString::to_string)
        .collect();
    let names = kind.versions.iter().map(|one| one.name.to_string());
    let others = names.filter(|name| *name != resource.version).collect();
    (resource, others)
}

#[cfg(test)]
mod tests {
    use super::of_status;
    use crate::types::Definitions;
    use bareboat_api::{Object, value};
    use std::sync::Arc;

    #[test]
    fn types_that_were_complete_are_known_again() {
        let condition = value!([{"version": "v1", "status": "Stop"}]);
        let object = value!({"metadata": {"name": "c1"}, "status": {"syncResources": [
            {"group": "apps", "resources": [
                {"name": "deployments", "kind": "Deployment", "namespaced": true, "syncConditions": (condition.clone())},
                {"name": "daemonsets", "kind": "DaemonSet", "namespaced": true, "syncConditions": (condition.clone())},
                {"name": "broken", "kind": "Broken"},
            ]},
            {"resources": [{"name": "nodes", "kind": "Node", "namespaced": false, "syncConditions": condition}]},
        ]}});
        let object = Object::try_from(object).expect("an object");
        let key = |group: &str, resource: &str| (group.to_owned(), resource.to_owned());
        // The list of daemon sets was not complete.
        let saved = [
            key("apps", "deployments"),
            key("apps", "broken"),
            key("", "nodes"),
        ];
        let types = of_status(&object, &saved.into(), &Definitions::new());
        let shown: Vec<String> = types
            .iter()
            .map(|one| {
                format!(
                    "{} {} {}",
                    one.resource.path(None),
                    one.resource.kind,
                    one.resource.namespaced
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "/apis/apps/v1/deployments Deployment true",
                "/api/v1/nodes Node false"
            ]
        );
        assert_eq!(types[0].resource.short_names, ["deploy"]);
        assert_eq!(types[0].resource.categories, ["all"]);
        assert_eq!(types[1].resource.short_names, ["no"]);
    }

    #[test]
    fn other_names_and_versions_are_known_again() {
        let condition = value!([{"version": "v2", "status": "Stop"}]);
        let object = value!({"metadata": {"name": "c1"}, "status": {"syncResources": [
            {"group": "autoscaling", "resources": [
                {"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": true, "syncConditions": (condition.clone())},
            ]},
            {"group": "sea.example.com", "resources": [
                {"name": "boats", "kind": "Boat", "namespaced": true, "syncConditions": condition},
            ]},
        ]}});
        let object = Object::try_from(object).expect("an object");
        let key = |group: &str, resource: &str| (group.to_owned(), resource.to_owned());
        let boats = key("sea.example.com", "boats");
        let definition = value!({"spec": {
            "names": {"singular": "vessel", "shortNames": ["bt"], "categories": ["sea"]},
            "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": true}, {"name": "v0", "served": false}],
        }});
        let definitions = Definitions::from([(boats.clone(), Arc::new(definition))]);
        let saved = [key("autoscaling", "horizontalpodautoscalers"), boats];
        let types = of_status(&object, &saved.into(), &definitions);
        assert_eq!(types[0].resource.short_names, ["hpa"]);
        assert_eq!(types[0].others, ["v1"]);
        let boats = &types[1].resource;
        assert_eq!(
            (
                &*boats.singular,
                &*boats.short_names[0],
                &*boats.categories[0]
            ),
            ("vessel", "bt", "sea")
        );
        assert_eq!(types[1].others, ["v1"]);
    }
}
