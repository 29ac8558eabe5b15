//! Properties that hold for any configuration and any object.

use super::*;
use bareboat_api::Map;
use proptest::prelude::*;

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0i64..3).prop_map(Value::Int),
        "[xyz]".prop_map(Value::from),
        any::<bool>().prop_map(Value::Bool)
    ]
}

fn any_labels() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[abc]", any_scalar(), 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn any_spec() -> impl Strategy<Value = Value> {
    let items = proptest::collection::btree_map(
        0i64..4,
        (
            proptest::option::of(any_scalar()),
            proptest::option::of(any_labels()),
        ),
        1..4,
    )
    .prop_map(|items| {
        items
            .into_iter()
            .map(|(key, (value, labels))| {
                let mut item = value!({"k": (key)});
                let members = item.make_object();
                value
                    .into_iter()
                    .for_each(|value| drop(members.insert("v", value)));
                labels
                    .into_iter()
                    .for_each(|labels| drop(members.insert("labels", labels)));
                item
            })
            .collect::<Value>()
    });
    let set = proptest::collection::btree_set(0i64..6, 1..4)
        .prop_shuffle_values()
        .prop_map(|set| set.into_iter().map(Value::Int).collect::<Value>());
    let member = |value: BoxedStrategy<Value>| proptest::option::of(value);
    (
        member(any_scalar().boxed()),
        member(items.boxed()),
        member(set.boxed()),
        member(any_labels().boxed()),
        member(any_labels().boxed()),
        member(any_labels().boxed()),
    )
        .prop_map(|(a, items, set, labels, free, deep)| {
            let mut spec = Map::new();
            // There always is a field: an empty configuration would have no entry.
            spec.insert("b", Value::Int(1));
            let mut add = |name: &str, value: Option<Value>| {
                value
                    .into_iter()
                    .for_each(|value| drop(spec.insert(name, value)));
            };
            add("a", a);
            add("items", items);
            add("set", set);
            add("labels", labels);
            add("free", free);
            if let Some(Value::Object(deep)) = deep {
                let deep: Map = deep
                    .into_iter()
                    .filter(|(key, _)| key != "c")
                    .map(|(key, value)| (if key == "a" { "x" } else { "y" }, value))
                    .collect();
                add("deep", Some(Value::Object(deep)));
            }
            Value::Object(spec)
        })
}

/// Shuffles the values of a set.
trait Shuffle: Strategy + Sized {
    fn prop_shuffle_values(self) -> BoxedStrategy<Vec<i64>>;
}

impl<S: Strategy<Value = std::collections::BTreeSet<i64>> + 'static> Shuffle for S {
    fn prop_shuffle_values(self) -> BoxedStrategy<Vec<i64>> {
        self.prop_map(|set| set.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
            .boxed()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn applying_twice_is_applying_once(specs in proptest::collection::vec((0usize..3, any_spec(), any::<bool>()), 1..6)) {
        let mut server = Server::new();
        for (who, spec, update) in specs {
            let manager = ["one", "two", "three"][who];
            if update {
                server.update(manager, "", "spec", spec);
                continue;
            }
            server.apply(manager, true, spec.clone()).unwrap();
            let once = server.live.clone();
            // Force and time have no effect now.
            server.apply(manager, false, spec.clone()).unwrap();
            prop_assert_eq!(&server.live, &once, "{} applying {}", manager, spec);
        }
    }

    #[test]
    fn the_result_contains_the_configuration_and_the_manager_owns_it(first in any_spec(), second in any_spec()) {
        let mut server = Server::new();
        server.apply("one", false, first).unwrap();
        server.apply("one", false, second.clone()).unwrap();
        let live = server.live.clone().unwrap();
        let kind = node();
        let mut wanted = crate::typed::to_set(&thing(second.clone()), &kind);
        managed::strip(&mut wanted);
        prop_assert!(wanted.is_subset(&crate::typed::to_set(&live, &kind)));
        let entry = managed::of(&live).unwrap().as_array().unwrap()[0].clone();
        prop_assert_eq!(FieldSet::parse(entry.get("fieldsV1").unwrap()).unwrap(), wanted);
        // No other manager owns a field, so nothing else remains.
        prop_assert_eq!(server.spec(), second);
    }

    #[test]
    fn every_field_of_an_object_written_by_updates_has_one_owner(specs in proptest::collection::vec(any_spec(), 1..5)) {
        let mut server = Server::new();
        for (index, spec) in specs.into_iter().enumerate() {
            server.update(&format!("u{index}"), "", "spec", spec);
        }
        let live = server.live.clone().unwrap();
        let managed = Managed::trusted(managed::of(&live).cloned().unwrap_or_default());
        let mut all = FieldSet::new();
        for entry in &managed.0 {
            prop_assert!(all.intersection(&entry.fields).is_empty());
            all.unite(&entry.fields);
        }
        let mut fields = crate::typed::to_set(&live, &node());
        managed::strip(&mut fields);
        prop_assert!(fields.is_subset(&all), "{:?}", fields.paths());
    }
}
