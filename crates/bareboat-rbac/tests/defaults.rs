//! Compares the default roles and bindings with those of a fresh kube-apiserver.

use bareboat_api::{Value, value};
use bareboat_rbac::defaults::{Repair, Set, objects, repair};
use std::collections::BTreeMap;

fn key(object: &Value) -> String {
    let text = |path: &[&str]| {
        object
            .at(path)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    format!(
        "{} {}/{}",
        text(&["kind"]),
        text(&["metadata", "namespace"]),
        text(&["metadata", "name"])
    )
}

#[test]
fn the_full_set_equals_that_of_kubernetes() {
    let Some(folder) = bareboat_vectors::folder("rbac") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("bootstrap.yaml")).expect("there is a set");
    let ours: BTreeMap<String, Value> = objects(Set::Full, &|_, _| true)
        .map(|object| (key(&object), object))
        .collect();
    let mut theirs = 0;
    for document in text.split("\n---\n") {
        let document = document.trim_start_matches("---\n");
        let mut object = bareboat_wire::yaml::parse(document.as_bytes())
            .expect("vectors parse")
            .value;
        if object.get("rules") == Some(&Value::Null) {
            object.make_object().remove("rules");
        }
        let name = key(&object);
        assert_eq!(ours.get(&name), Some(&object), "{name}");
        theirs += 1;
    }
    assert_eq!(theirs, 133);
    assert_eq!(ours.len(), theirs);
}

#[test]
fn the_bare_set_names_only_served_resources() {
    let serves = |group: &str, resource: &str| {
        (group.is_empty() && matches!(resource, "configmaps" | "secrets" | "serviceaccounts"))
            || group == "rbac.authorization.k8s.io"
    };
    let bare: Vec<Value> = objects(Set::Bare, &serves).collect();
    assert_eq!(bare.len(), 24);
    let view = bare
        .iter()
        .find(|object| key(object) == "ClusterRole /system:aggregate-to-view")
        .expect("it is there");
    assert_eq!(
        view.get("rules"),
        Some(&value!([{
            "verbs": ["get", "list", "watch"],
            "apiGroups": [""],
            "resources": ["configmaps", "serviceaccounts"],
        }]))
    );
}

#[test]
fn repair_adds_missing_parts_and_keeps_additions() {
    let default = value!({
        "kind": "ClusterRole",
        "metadata": {"name": "a", "labels": {"x": "1"}, "annotations": {"y": "1"}},
        "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}],
    });
    assert_eq!(repair(&default, &default), Repair::Nothing);
    let stored = value!({
        "kind": "ClusterRole",
        "metadata": {"name": "a", "labels": {"x": "2", "own": "1"}},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes"]}],
    });
    let Repair::Update(mended) = repair(&stored, &default) else {
        panic!("it needs repair");
    };
    assert_eq!(
        mended.at(&["metadata", "labels"]),
        Some(&value!({"own": "1", "x": "2"}))
    );
    assert_eq!(
        mended.get("rules"),
        Some(&value!([
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes"]},
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
        ]))
    );
    assert_eq!(repair(&mended, &default), Repair::Nothing);
    let mut alone = stored;
    alone.make_object().insert(
        "metadata",
        value!({"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}),
    );
    assert_eq!(repair(&alone, &default), Repair::Nothing);
}

#[test]
fn a_binding_to_another_role_is_recreated() {
    let default = value!({"roleRef": {"name": "a"}, "subjects": [{"name": "x"}], "metadata": {}});
    let stored = value!({"roleRef": {"name": "b"}, "metadata": {}});
    assert_eq!(repair(&stored, &default), Repair::Recreate);
    let stored = value!({"roleRef": {"name": "a"}, "metadata": {}});
    assert_eq!(repair(&stored, &default), Repair::Update(default.clone()));
}
