//! The default levels and schemas, compared with those of a fresh kube-apiserver.

use bareboat_api::{Value, value};
use bareboat_flow::defaults::{AUTO_UPDATE, Repair, levels, repair, schemas};
use std::collections::BTreeMap;

fn key(object: &Value) -> String {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or("");
    format!("{} {}", text(&["kind"]), text(&["metadata", "name"]))
}

#[test]
fn the_defaults_are_those_of_kubernetes() {
    let Some(folder) = bareboat_vectors::folder("flowcontrol") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("bootstrap.yaml")).expect("a vector");
    let ours: BTreeMap<String, Value> = levels()
        .into_iter()
        .chain(schemas())
        .map(|object| (key(&object), object))
        .collect();
    let mut theirs = 0;
    for document in text.split("\n---\n") {
        let document = document.trim_start_matches("---\n");
        let object = bareboat_wire::yaml::parse(document.as_bytes())
            .expect("vectors parse")
            .value;
        let name = key(&object);
        assert_eq!(ours.get(&name), Some(&object), "{name}");
        theirs += 1;
    }
    assert_eq!(theirs, 19);
    assert_eq!(ours.len(), theirs);
}

fn named(objects: Vec<Value>, name: &str) -> Value {
    let mut found = objects
        .into_iter()
        .filter(|object| object.at(&["metadata", "name"]).and_then(Value::as_str) == Some(name));
    found.next().expect("there is such an object")
}

/// A default object as it is stored, with an annotation and a generation, and with other shares.
fn changed(default: &Value, annotation: Option<&str>, generation: i64) -> Value {
    let mut stored = default.clone();
    let metadata = stored.make_object().object_mut("metadata");
    metadata.insert("generation", Value::Int(generation));
    metadata.remove("annotations");
    if let Some(annotation) = annotation {
        let annotations = metadata.object_mut("annotations");
        annotations.insert(AUTO_UPDATE, Value::from(annotation));
    }
    let limited = stored
        .make_object()
        .object_mut("spec")
        .object_mut("limited");
    limited.insert("nominalConcurrencyShares", Value::Int(7));
    stored
}

fn shares(repair: &Repair) -> Option<(i64, String)> {
    let Repair::Update(object) = repair else {
        return None;
    };
    let shares = object.at(&["spec", "limited", "nominalConcurrencyShares"])?;
    let says = object.at(&["metadata", "annotations", AUTO_UPDATE])?;
    Some((shares.as_i64()?, says.as_str()?.to_owned()))
}

#[test]
fn suggested_objects_are_repaired_unless_their_owner_changed_them() {
    let default = named(levels(), "system");
    let after = |annotation, generation| {
        let stored = changed(&default, annotation, generation);
        shares(&repair(&stored, &default))
    };
    let updated = Some((30, "true".to_owned()));
    assert_eq!(after(Some("true"), 5), updated);
    assert_eq!(after(None, 1), updated);
    assert_eq!(after(Some("false"), 1), None);
    assert_eq!(after(None, 2), Some((7, "false".to_owned())));
    assert_eq!(repair(&default, &default), Repair::Nothing);
}

#[test]
fn mandatory_objects_always_get_their_spec_back() {
    let default = named(levels(), "catch-all");
    let stored = changed(&default, Some("false"), 9);
    let repaired = repair(&stored, &default);
    assert_eq!(shares(&repaired), Some((5, "true".to_owned())));
}

#[test]
fn the_seats_of_the_exempt_level_are_its_owners_choice() {
    let default = named(levels(), "exempt");
    let mut stored = default.clone();
    let own = value!({"lendablePercent": 10, "nominalConcurrencyShares": 20});
    let spec = stored.make_object().object_mut("spec");
    spec.insert("exempt", own);
    assert_eq!(repair(&stored, &default), Repair::Nothing);
}
