//! Compares the built-in kinds with recorded discovery documents.

use crate::transcript::read;
use bareboat_api::Value;
use bareboat_builtin::kinds;
use std::collections::BTreeMap;

/// A resource in discovery: kind, scope, singular, short names, categories, verbs.
type Entry = (String, bool, String, Vec<String>, Vec<String>, Vec<String>);

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).unwrap_or(&[]);
    items
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

#[test]
fn kinds_equal_recorded_discovery() {
    let mut recorded: BTreeMap<String, Entry> = BTreeMap::new();
    for step in read("discovery.jsonl") {
        let body = &step.answer;
        if body.at(&["kind"]).and_then(Value::as_str) != Some("APIResourceList") {
            continue;
        }
        let group_version = body.at(&["groupVersion"]).and_then(Value::as_str).unwrap();
        for resource in body.at(&["resources"]).and_then(Value::as_array).unwrap() {
            let text = |key: &str| {
                resource
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned()
            };
            recorded.insert(
                format!("{group_version}/{}", text("name")),
                (
                    text("kind"),
                    resource.get("namespaced").and_then(Value::as_bool).unwrap(),
                    text("singularName"),
                    texts(resource.get("shortNames")),
                    texts(resource.get("categories")),
                    texts(resource.get("verbs")),
                ),
            );
        }
    }
    if recorded.is_empty() {
        return;
    }
    let mut found: BTreeMap<String, Entry> = BTreeMap::new();
    for kind in kinds::all() {
        let owned = |list: &[bareboat_api::Str]| list.iter().map(ToString::to_string).collect();
        let verbs = |verbs: bareboat_api::kind::Verbs| {
            verbs.iter().map(|verb| verb.name().to_owned()).collect()
        };
        for version in &kind.versions {
            let path = format!("{}/{}", kind.api_version(&version.name), kind.names.plural);
            for part in &version.subresources {
                let response = part.response.as_ref().map(|(_, _, kind)| kind.to_string());
                found.insert(
                    format!("{path}/{}", part.name),
                    (
                        response.unwrap_or_else(|| kind.names.kind.to_string()),
                        kind.namespaced(),
                        String::new(),
                        Vec::new(),
                        Vec::new(),
                        verbs(part.verbs),
                    ),
                );
            }
            found.insert(
                path,
                (
                    kind.names.kind.to_string(),
                    kind.namespaced(),
                    kind.names.singular.to_string(),
                    owned(&kind.names.short),
                    owned(&kind.names.categories),
                    verbs(kind.verbs),
                ),
            );
        }
    }
    for (path, entry) in &recorded {
        assert_eq!(Some(entry), found.get(path), "{path}");
    }
    for path in found.keys() {
        assert!(recorded.contains_key(path), "{path} is not served upstream");
    }
}
