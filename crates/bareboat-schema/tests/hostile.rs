//! Tests that definitions with odd values in any place are validated, compiled and used without
//! panic.

#![allow(clippy::unwrap_used)]

use bareboat_api::{Map, Value, value};
use bareboat_schema::{SchemaCache, Source, crd};
use proptest::prelude::*;
use proptest::sample::Index;

/// Returns a definition that uses many features.
fn seed() -> Value {
    let text = include_str!("../../../fuzz/seeds/definition/crontab");
    bareboat_wire::yaml::parse(text.as_bytes()).unwrap().value
}

/// Returns the number of places in a value, including itself.
fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(places).sum(),
        Value::Object(map) => map.iter().map(|(_, member)| places(member)).sum(),
        _ => 0,
    }
}

/// Replaces the value at a place, numbered as in [`places`]; returns whether it exists.
fn put(value: &mut Value, number: &mut usize, with: &Value) -> bool {
    if *number == 0 {
        *value = with.clone();
        return true;
    }
    *number -= 1;
    match value {
        Value::Array(list) => list.iter_mut().any(|item| put(item, number, with)),
        Value::Object(map) => map.iter_mut().any(|(_, member)| put(member, number, with)),
        _ => false,
    }
}

/// Returns the value at a place.
fn at(value: &Value, number: &mut usize) -> Option<Value> {
    if *number == 0 {
        return Some(value.clone());
    }
    *number -= 1;
    match value {
        Value::Array(list) => list.iter().find_map(|item| at(item, number)),
        Value::Object(map) => map.iter().find_map(|(_, member)| at(member, number)),
        _ => None,
    }
}

/// Returns a schema of that depth.
fn abyss(depth: usize) -> Value {
    (0..depth).fold(value!({"type": "string"}), |below, _| {
        let mut map = Map::new();
        map.insert("type", Value::string("array"));
        map.insert("items", below);
        Value::Object(map)
    })
}

fn oddity() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(Value::Bool(true)),
        Just(Value::Int(i64::MIN)),
        Just(Value::Float(1e308)),
        Just(value!([])),
        Just(value!({})),
        Just(value!([null, {}, [[]]])),
        Just(value!({"type": "object", "default": {"a": [1]}, "enum": [{"a": 1}]})),
        Just(value!([{"rule": "self.all(x, x.all(y, y == self))", "messageExpression": "1"}])),
        Just(value!([{"rule": "oldSelf.orValue(self) == self", "optionalOldSelf": true}])),
        Just(Value::string("a".repeat(5000))),
        Just(Value::string("[[:nope:]]{1000}{1000}")),
        Just(Value::string(".spec['replicas'][*]..a")),
        (1..300_usize).prop_map(abyss),
        "\\PC{0,12}".prop_map(Value::string),
    ]
}

/// Processes a definition as far as a server would.
fn exercise(mut definition: Value) {
    if definition.as_object().is_none() {
        return;
    }
    crd::default(&mut definition);
    crd::prepare(&mut definition, None);
    let errors = crd::validate_create(&definition);
    let _ = crd::validate_update(&definition, &seed());
    let _ = crd::validate_update(&seed(), &definition);
    let _ = crd::warnings(&definition, None);
    let known = crd::Definition::parse(&definition);
    let taken = crd::Taken::default();
    if let Some(status) = crd::reconcile(&definition, &taken, "now") {
        definition.make_object().insert("status", status);
    }
    assert_eq!(crd::reconcile(&definition, &taken, "later"), None);
    if !errors.is_empty() {
        return;
    }
    let cache = SchemaCache::new();
    for version in known.served_versions() {
        let schema = crd::compile(&definition, &version.name, &cache);
        let mut object =
            value!({"spec": {"cronSpec": "*", "replicas": 12}, "status": {"replicas": "x"}});
        let _ = schema.validate(&object, None, Vec::new());
        let _ = schema.coerce(&mut object, Source::Request, None);
        schema.default(&mut object).unwrap();
        let once = object.clone();
        schema.default(&mut object).unwrap();
        assert_eq!(object, once);
        let _ = schema.validate(&object, Some(&once), Vec::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn odd_values_in_any_place_do_not_panic(changes in prop::collection::vec((any::<Index>(), oddity()), 1..4)) {
        let mut definition = seed();
        for (index, odd) in changes {
            let mut number = index.index(places(&definition));
            prop_assert!(put(&mut definition, &mut number, &odd));
        }
        exercise(definition);
    }

    #[test]
    fn parts_in_the_wrong_place_do_not_panic(moves in prop::collection::vec((any::<Index>(), any::<Index>()), 1..4)) {
        let mut definition = seed();
        for (from, to) in moves {
            let count = places(&definition);
            let part = at(&definition, &mut from.index(count)).unwrap();
            prop_assert!(put(&mut definition, &mut to.index(count), &part));
        }
        exercise(definition);
    }

    #[test]
    fn damaged_text_does_not_panic(cut in any::<Index>(), length in 0..40_usize, with in "\\PC{0,8}") {
        let text = include_str!("../../../fuzz/seeds/definition/crontab");
        let from = cut.index(text.len());
        let to = (from + length).min(text.len());
        let damaged = [&text.as_bytes()[..from], with.as_bytes(), &text.as_bytes()[to..]].concat();
        if let Ok(parsed) = bareboat_wire::yaml::parse(&damaged) {
            exercise(parsed.value);
        }
    }
}

#[test]
fn the_seed_is_accepted() {
    let mut definition = seed();
    crd::default(&mut definition);
    crd::prepare(&mut definition, None);
    let errors = crd::validate_create(&definition);
    assert!(errors.is_empty(), "{errors:?}");
}
