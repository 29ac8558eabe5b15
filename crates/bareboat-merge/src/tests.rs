//! Tests that patches, configurations and managed fields of any shape do not panic.

use crate::{
    apply::{FieldManager, NoConversion, Versions, Writer},
    fields::FieldSet,
    json_patch::JsonPatch,
    managed::{Managed, keep_times, validate_managed_fields},
    merge_patch, strategic_merge,
    testing::{Node, atomic_list, keyed, map, object, open_struct, scalar, set_list, structure},
    typed,
};
use bareboat_api::{Map, Value, typing::TypeNode, value};
use proptest::prelude::*;

fn node() -> Node {
    let item = structure(&[("a", scalar()), ("b", map(scalar()))]);
    let spec = structure(&[
        (
            "a",
            keyed(&[("a", None), ("b", Some(value!("x")))], item).merging("a"),
        ),
        ("b", set_list(scalar()).merging("")),
        ("c", map(atomic_list(scalar()))),
        ("d", open_struct(&[("a", scalar())])),
    ]);
    object(&[("spec", spec)])
}

/// Returns names that occur in the types above, in directives, or in `fieldsV1`.
fn any_name() -> impl Strategy<Value = String> {
    let names = [
        "a",
        "b",
        "c",
        "d",
        "spec",
        "metadata",
        "labels",
        "finalizers",
        "managedFields",
        "$patch",
        "$retainKeys",
        "$setElementOrder/a",
        "$setElementOrder/b",
        "$deleteFromPrimitiveList/b",
        "$deleteFromPrimitiveList",
        "op",
        "path",
        "from",
        "value",
        "f:spec",
        "f:a",
        "v:1",
        ".",
        "i:0",
        "k:{\"a\":1}",
        "k:{",
        "manager",
        "operation",
        "apiVersion",
        "fieldsType",
        "fieldsV1",
        "time",
    ];
    proptest::sample::select(names.map(str::to_owned).to_vec())
}

fn any_value() -> impl Strategy<Value = Value> {
    let words = [
        "delete", "replace", "merge", "add", "test", "copy", "/a/0", "/-", "", "Apply", "v1",
        "FieldsV1",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2i64..3).prop_map(Value::Int),
        Just(Value::Float(0.5)),
        proptest::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::vec((any_name(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map>())),
        ]
    })
}

/// Returns values that resemble an object of the kind.
fn any_object() -> impl Strategy<Value = Value> {
    (any_value(), any_value()).prop_map(|(metadata, spec)| {
        value!({"apiVersion": "v1", "kind": "K", "metadata": (metadata), "spec": (spec)})
    })
}

struct One(Node);

impl Versions for One {
    fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode> {
        (api_version == "v1").then_some(&self.0 as &dyn TypeNode)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn patches_do_not_panic(target in any_object(), patch in any_value()) {
        let node = node();
        let mut object = target.clone();
        let _ = strategic_merge(&mut object, patch.clone(), &node);
        let mut object = target.clone();
        let _ = strategic_merge(&mut object, value!({"spec": (patch.clone())}), &node);
        let mut object = target.clone();
        merge_patch(&mut object, patch.clone());
        let mut object = target;
        if let Ok(patch) = JsonPatch::parse(patch) {
            let _ = patch.apply(&mut object);
        }
    }

    #[test]
    fn typed_operations_do_not_panic(old in any_object(), new in any_object(), fields in any_value()) {
        let node = node();
        let _ = typed::validate(&new, &node);
        let fields = FieldSet::parse(&fields).unwrap_or_default();
        let set = typed::to_set(&old, &node);
        prop_assert_eq!(FieldSet::parse(&set.clone().into_value()), Ok(set.clone()));
        prop_assert!(typed::changes(&old, &old, &node).is_empty());
        let mut merged = old.clone();
        typed::merge(&mut merged, &new, &node);
        for set in [set, fields] {
            let mut object = merged.clone();
            typed::remove_fields(&mut object, &set, &node);
            let mut set = typed::name_owned_structs(set, &node);
            typed::settle_with_type(&mut set, &node);
        }
    }

    #[test]
    fn writes_do_not_panic(live in any_object(), new in any_object(), list in any_value(), subresource in any::<bool>()) {
        let _ = Managed::parse(&list);
        let _ = validate_managed_fields(&new);
        let kind = One(node());
        let fields = FieldManager {
            api_version: "v1",
            kind: "K",
            versions: &kind,
            converter: &NoConversion,
            empty: &|| None,
        };
        let subresource = if subresource { "status" } else { "" };
        let writer = Writer { manager: "m", subresource, now: "2024-01-01T00:00:00Z" };
        for live in [None, Some(&live)] {
            let written = fields.update(live, new.clone(), writer);
            prop_assert!(written.is_ok());
            let mut again = new.clone();
            keep_times(live.unwrap_or(&Value::Null), &mut again);
            let _ = fields.apply(live, &new, false, writer);
            let _ = fields.apply(live, &new, true, writer);
        }
    }
}

#[test]
fn objects_of_the_maximum_depth_are_handled() {
    let deep = |leaf: i64| {
        let mut value = Value::Int(leaf);
        for _ in 0..bareboat_api::value::MAX_DEPTH - 3 {
            value = value!({"a": (value)});
        }
        value!({"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": {"d": (value)}})
    };
    let kind = One(node());
    let fields = FieldManager {
        api_version: "v1",
        kind: "K",
        versions: &kind,
        converter: &NoConversion,
        empty: &|| None,
    };
    let writer = |manager| Writer {
        manager,
        subresource: "",
        now: "2024-01-01T00:00:00Z",
    };
    let live = fields
        .apply(None, &deep(1), false, writer("one"))
        .expect("creates");
    assert!(
        fields
            .apply(Some(&live), &deep(2), false, writer("two"))
            .is_err()
    );
    let live = fields
        .apply(Some(&live), &deep(2), true, writer("two"))
        .expect("forces");
    let mut new = live.clone();
    merge_patch(&mut new, deep(3));
    strategic_merge(&mut new, deep(4), &kind.0).expect("merges");
    fields
        .update(Some(&live), new, writer("three"))
        .expect("updates");
}
