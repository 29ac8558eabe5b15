//! Compares discovery with a recorded kube-apiserver, entry by entry for the kinds defined here.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::openapi::sample;
use bareboat_api::kind::{Origin, Verbs};
use bareboat_api::value;

fn kinds() -> Vec<Arc<Kind>> {
    [
        sample::config_maps(),
        sample::services(),
        sample::namespaces(),
        sample::service_accounts(),
        sample::events("", 18000),
        sample::events("events.k8s.io", 17750),
        sample::leases(),
        sample::deployments(),
        sample::custom_resource_definitions(),
        sample::self_subject_reviews(),
        sample::widgets(),
    ]
    .into_iter()
    .map(Arc::new)
    .collect()
}

fn discovery() -> Discovery {
    Discovery::new(&kinds(), &[], &Priorities::new())
}

/// Returns the recorded answers of a transcript file, by name; `None` without the vectors.
fn recorded(file: &str) -> Option<Vec<(String, Value)>> {
    let folder = bareboat_vectors::folder("transcript")?;
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let steps = text.lines().map(|line| {
        let step = bareboat_wire::json::parse(line.as_bytes()).unwrap().value;
        let name = step.get("name").unwrap().as_str().unwrap().to_owned();
        (name, step.at(&["answer", "body"]).unwrap().clone())
    });
    Some(steps.collect())
}

fn step<'a>(steps: &'a [(String, Value)], name: &str) -> &'a Value {
    &steps.iter().find(|(known, _)| known == name).unwrap().1
}

/// Checks that each of our entries equals the recorded one of that name.
fn check_entries(ours: &Value, recorded: &Value, list: &str, key: &str) {
    let ours = ours.get(list).unwrap().as_array().unwrap();
    let recorded = recorded.get(list).unwrap().as_array().unwrap();
    assert!(!ours.is_empty());
    let mut last = None;
    for entry in ours {
        let name = entry.get(key).unwrap();
        let index = recorded
            .iter()
            .position(|other| other.get(key) == Some(name))
            .unwrap_or_else(|| panic!("{name} was not recorded"));
        assert!(last < Some(index), "{name} comes too early");
        last = Some(index);
        assert_eq!(anonymous(entry.clone()), recorded[index], "{name}");
    }
}

/// Hides hashes as the transcript does.
fn anonymous(mut entry: Value) -> Value {
    if let Some(hash) = entry.make_object().get_mut("storageVersionHash") {
        *hash = value!("<hash>");
    }
    entry
}

/// Returns a value without the given list.
fn frame(mut value: Value, list: &str) -> Value {
    value.make_object().remove(list);
    value
}

#[test]
fn lists_resources_as_recorded() {
    let Some(steps) = recorded("discovery.jsonl") else {
        return;
    };
    let discovery = discovery();
    for (group, version) in [
        ("", "v1"),
        ("events.k8s.io", "v1"),
        ("coordination.k8s.io", "v1"),
        ("apps", "v1"),
        ("apiextensions.k8s.io", "v1"),
        ("authentication.k8s.io", "v1"),
    ] {
        let ours = discovery.resources(group, version).unwrap();
        let name = if group.is_empty() {
            "get /api/v1".to_owned()
        } else {
            format!("resources {group}/{version}")
        };
        let theirs = step(&steps, &name);
        assert_eq!(
            frame(ours.clone(), "resources"),
            frame(theirs.clone(), "resources")
        );
        check_entries(&ours, theirs, "resources", "name");
    }
}

#[test]
fn lists_groups_as_recorded() {
    let Some(steps) = recorded("discovery.jsonl") else {
        return;
    };
    let mut kinds = kinds();
    kinds.retain(|kind| kind.origin == Origin::BuiltIn);
    let discovery = Discovery::new(&kinds, &[], &Priorities::new());
    let theirs = step(&steps, "get /apis");
    let ours = discovery.group_list();
    assert_eq!(
        frame(ours.clone(), "groups"),
        frame(theirs.clone(), "groups")
    );
    check_entries(&ours, theirs, "groups", "name");
    for group in ["apps", "events.k8s.io", "apiextensions.k8s.io"] {
        let theirs = step(&steps, &format!("group {group}"));
        assert_eq!(&discovery.group(group).unwrap(), theirs);
    }
    assert_eq!(
        &discovery.api_versions("127.0.0.1:16451"),
        step(&steps, "get /api")
    );
}

#[test]
fn aggregates_as_recorded() {
    let Some(steps) = recorded("discovery.jsonl") else {
        return;
    };
    let mut kinds = kinds();
    kinds.retain(|kind| kind.origin == Origin::BuiltIn);
    let discovery = Discovery::new(&kinds, &[], &Priorities::new());
    for (name, ours) in [
        ("aggregated core", discovery.aggregated_core()),
        ("aggregated groups", discovery.aggregated_groups()),
    ] {
        let theirs = step(&steps, name);
        assert_eq!(
            frame(ours.value.clone(), "items"),
            frame(theirs.clone(), "items")
        );
        assert!(
            print(&ours.value, false) == ours.json,
            "{name}: other bytes"
        );
        let parsed = bareboat_wire::json::parse(&ours.json).expect("JSON").value;
        assert_eq!(parsed, ours.value);
        for item in ours.value.get("items").unwrap().as_array().unwrap() {
            let metadata = item.get("metadata");
            let other = theirs.get("items").unwrap().as_array().unwrap();
            let other = other
                .iter()
                .find(|other| other.get("metadata") == metadata)
                .unwrap();
            let version =
                |item: &Value| item.get("versions").unwrap().as_array().unwrap()[0].clone();
            let (ours, theirs) = (version(item), version(other));
            assert_eq!(
                frame(ours.clone(), "resources"),
                frame(theirs.clone(), "resources")
            );
            check_entries(&ours, &theirs, "resources", "resource");
        }
    }
}

#[test]
fn lists_custom_resources_as_recorded() {
    let Some(steps) = recorded("custom.jsonl") else {
        return;
    };
    let ours = discovery().resources("rec.example.com", "v1").unwrap();
    let theirs = step(&steps, "resources");
    check_entries(&ours, theirs, "resources", "name");
    assert_eq!(frame(ours, "resources"), frame(theirs.clone(), "resources"));
}

#[test]
fn hashes_storage_versions_as_upstream_does() {
    let discovery = discovery();
    let hash = |group: &str, plural: &str| {
        let list = discovery.resources(group, "v1").unwrap();
        let resources = list.get("resources").unwrap().as_array().unwrap();
        let resource = resources
            .iter()
            .find(|resource| resource.get("name").unwrap().as_str() == Some(plural))
            .unwrap();
        resource.get("storageVersionHash").cloned()
    };
    assert_eq!(hash("", "configmaps"), Some(value!("qFsyl6wFWjQ=")));
    assert_eq!(hash("", "namespaces"), Some(value!("Q3oi5N2YM8M=")));
    assert_eq!(hash("apps", "deployments"), Some(value!("8aSe+NMegvE=")));
    // Events of both groups are stored as core events.
    assert_eq!(hash("events.k8s.io", "events"), hash("", "events"));
    assert_eq!(hash("authentication.k8s.io", "selfsubjectreviews"), None);
}

#[test]
fn names_the_answering_kind_of_custom_resources_in_full() {
    let discovery = discovery();
    let list = discovery.aggregated_groups().value;
    let widgets = list
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(
        widgets,
        &value!({
            "metadata": {"name": "rec.example.com"},
            "versions": [{
                "version": "v1",
                "freshness": "Current",
                "resources": [{
                    "resource": "widgets",
                    "responseKind":
                        {"group": "rec.example.com", "version": "v1", "kind": "Widget"},
                    "scope": "Namespaced",
                    "singularResource": "widget",
                    "verbs": ["delete", "deletecollection", "get", "list", "patch", "create",
                              "update", "watch"],
                    "shortNames": ["wi"],
                    "subresources": [
                        {
                            "subresource": "status",
                            "responseKind":
                                {"group": "rec.example.com", "version": "v1", "kind": "Widget"},
                            "verbs": ["get", "patch", "update"],
                        },
                        {
                            "subresource": "scale",
                            "responseKind":
                                {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                            "verbs": ["get", "patch", "update"],
                        },
                    ],
                }],
            }],
        })
    );
}

#[test]
fn changes_the_entity_tag_with_the_content() {
    let before = discovery().aggregated_groups();
    assert_eq!(before.etag, discovery().aggregated_groups().etag);
    assert_eq!(before.etag.len(), 130);
    let mut kinds = kinds();
    let mut terminating = sample::widgets();
    terminating.verbs = Verbs::ALL.without(&[Verb::Create, Verb::Patch, Verb::Update]);
    *kinds.last_mut().unwrap() = Arc::new(terminating);
    let after = Discovery::new(&kinds, &[], &Priorities::new()).aggregated_groups();
    assert_ne!(before.etag, after.etag);
}

#[test]
fn puts_the_version_clients_should_prefer_first() {
    let mut versions = vec![
        "foo1",
        "v10",
        "v2beta1",
        "v1alpha1",
        "v3",
        "v1beta10",
        "v12alpha1",
        "v1beta2",
        "bar",
        "v01",
        "v1beta",
        "v2",
    ];
    versions.sort_by(|a, b| compare_versions(a, b));
    assert_eq!(
        versions,
        [
            "v10",
            "v3",
            "v2",
            "v2beta1",
            "v1beta10",
            "v1beta2",
            "v12alpha1",
            "v1alpha1",
            "bar",
            "foo1",
            "v01",
            "v1beta",
        ]
    );
}

#[test]
fn leaves_out_versions_that_are_not_served() {
    let mut kind = sample::widgets();
    let mut old = sample::version(
        "v1alpha1",
        bareboat_api::kind::PublishedSchema::Untyped,
        Vec::new(),
    );
    old.served = false;
    kind = kind.with_version(old);
    let discovery = Discovery::new(&[Arc::new(kind)], &[], &Priorities::new());
    let group = discovery.group("rec.example.com").unwrap();
    assert_eq!(
        group.get("versions").unwrap(),
        &value!([{"groupVersion": "rec.example.com/v1", "version": "v1"}])
    );
    assert!(discovery.resources("rec.example.com", "v1alpha1").is_none());
    assert!(discovery.group("").is_none());
}

#[test]
fn lists_resources_of_other_servers() {
    let remote = |version: &str, resources| RemoteVersion {
        group: "metrics.example.com".into(),
        version: version.into(),
        group_priority: 30_000,
        version_priority: 10,
        resources,
        last_resources: None,
    };
    let resources = vec![value!({"resource": "nodes"})];
    let remotes = [remote("v2", None), remote("v1beta1", Some(resources))];
    let discovery = Discovery::new(&kinds(), &remotes, &Priorities::new());
    let groups = discovery.group_list();
    let first = &groups.get("groups").unwrap().as_array().unwrap()[0];
    assert_eq!(
        first,
        &value!({
            "name": "metrics.example.com",
            "versions": [
                {"groupVersion": "metrics.example.com/v2", "version": "v2"},
                {"groupVersion": "metrics.example.com/v1beta1", "version": "v1beta1"},
            ],
            // A version whose server is unreachable is not preferred.
            "preferredVersion":
                {"groupVersion": "metrics.example.com/v1beta1", "version": "v1beta1"},
        })
    );
    let list = discovery.aggregated_groups().value;
    assert_eq!(
        list.get("items").unwrap().as_array().unwrap()[0],
        value!({
            "metadata": {"name": "metrics.example.com"},
            "versions": [
                {"version": "v2", "freshness": "Stale"},
                {"version": "v1beta1", "freshness": "Current",
                 "resources": [{"resource": "nodes"}]},
            ],
        })
    );
    assert!(
        discovery
            .resources("metrics.example.com", "v1beta1")
            .is_none()
    );
}

#[test]
fn lists_all_paths_sorted() {
    let paths = discovery().paths(["/version", "/healthz", "/apis"]);
    let paths: Vec<&str> = paths
        .get("paths")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    assert!(paths.is_sorted());
    assert_eq!(
        &paths[..6],
        [
            "/api",
            "/api/v1",
            "/apis",
            "/apis/",
            "/apis/apiextensions.k8s.io",
            "/apis/apiextensions.k8s.io/v1"
        ]
    );
    assert_eq!(paths.last(), Some(&"/version"));
}

#[test]
fn converts_legacy_lists_of_other_servers_to_aggregated_ones() {
    let kinds: Vec<_> = kinds()
        .into_iter()
        .filter(|kind| kind.origin == Origin::BuiltIn)
        .collect();
    let discovery = Discovery::new(&kinds, &[], &Priorities::new());
    let aggregated = discovery.aggregated_core().value;
    let (_, mut expected) = aggregated_resources(&aggregated).remove(0);
    let list = discovery.resources("", "v1").unwrap();
    let mut read = listed_resources(&list).unwrap();
    let by_name = |a: &Value, b: &Value| {
        a.get("resource")
            .unwrap()
            .as_str()
            .cmp(&b.get("resource").unwrap().as_str())
    };
    expected.sort_by(by_name);
    read.sort_by(by_name);
    assert_eq!(read, expected);
}

#[test]
fn lists_a_subresource_without_its_resource() {
    let list = value!({
        "resources": [
            {"name": "pods/custom", "namespaced": true, "kind": "Custom", "verbs": ["get"]},
            {"name": "/x"},
            {"nonsense": true},
        ],
    });
    assert_eq!(
        listed_resources(&list),
        Some(vec![value!({
            "resource": "pods",
            "responseKind": {},
            "scope": "Namespaced",
            "singularResource": "",
            "verbs": [],
            "subresources": [{
                "subresource": "custom",
                "responseKind": {"group": "", "version": "", "kind": "Custom"},
                "verbs": ["get"],
            }],
        })])
    );
    assert_eq!(listed_resources(&value!({})), None);
}

#[test]
fn ignores_a_stale_version() {
    let list = |freshness: &str| {
        value!({"items": [{
            "metadata": {"name": "g"},
            "versions": [{
                "version": "v1",
                "freshness": freshness,
                "resources": [{"resource": "things", "responseKind": null}],
            }],
        }]})
    };
    let things = vec![value!({"resource": "things", "responseKind": {}})];
    let place = (Str::new("g"), Str::new("v1"));
    assert_eq!(aggregated_resources(&list("Current")), [(place, things)]);
    assert_eq!(aggregated_resources(&list("Stale")), []);
}
