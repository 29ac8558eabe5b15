//! One test per rule of ownership.

use super::*;

#[test]
fn an_applied_object_is_created_with_its_owner() {
    let mut server = Server::new();
    server
        .apply(
            "one",
            false,
            value!({"a": 1, "items": [{"k": "x", "v": 1}]}),
        )
        .unwrap();
    assert_eq!(
        server.spec(),
        value!({"a": 1, "items": [{"k": "x", "v": 1}]})
    );
    assert_eq!(
        server.managed(),
        [
            r#"one Apply 01 {"f:spec":{"f:a":{},"f:items":{"k:{\"k\":\"x\"}":{".":{},"f:k":{},"f:v":{}}}}}"#
        ]
    );
}

#[test]
fn applying_the_same_configuration_changes_nothing_not_even_the_time() {
    let mut server = Server::new();
    server.apply("one", false, value!({"a": 1})).unwrap();
    let before = server.live.clone();
    server.apply("one", false, value!({"a": 1})).unwrap();
    assert_eq!(server.live, before);
}

#[test]
fn managers_share_fields_with_equal_values() {
    let mut server = Server::new();
    server.apply("one", false, value!({"a": 1})).unwrap();
    server.apply("two", false, value!({"a": 1})).unwrap();
    // A manager that changed nothing has no time.
    assert_eq!(
        server.managed(),
        [
            r#"two Apply  {"f:spec":{"f:a":{}}}"#,
            r#"one Apply 01 {"f:spec":{"f:a":{}}}"#
        ]
    );
    // The other manager still owns the dropped field.
    server.apply("one", false, value!({"b": 1})).unwrap();
    assert_eq!(server.spec(), value!({"a": 1, "b": 1}));
    server.apply("two", false, value!({"b": 1})).unwrap();
    assert_eq!(server.spec(), value!({"b": 1}));
}

#[test]
fn an_emptied_container_keeps_its_owner() {
    let mut server = Server::new();
    server
        .apply("one", false, value!({"labels": {"x": "1"}}))
        .unwrap();
    server.apply("two", false, value!({"labels": {}})).unwrap();
    server.apply("one", false, value!({"a": 1})).unwrap();
    assert_eq!(server.spec(), value!({"a": 1}));
    assert_eq!(
        server.managed(),
        [
            r#"two Apply  {"f:spec":{"f:labels":{}}}"#,
            r#"one Apply 03 {"f:spec":{"f:a":{}}}"#
        ]
    );
}

#[test]
fn conflicts_name_managers_and_fields() {
    let mut server = Server::new();
    server
        .apply(
            "one",
            false,
            value!({"a": 1, "items": [{"k": "x", "v": 1}], "list": [1]}),
        )
        .unwrap();
    assert_eq!(
        server.apply("two", false, value!({"a": 2})).unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.a"
    );
    server.update(
        "upd",
        "",
        "spec",
        value!({"a": 5, "items": [{"k": "x", "v": 2}], "list": [1]}),
    );
    assert_eq!(
        server
            .apply(
                "two",
                false,
                value!({"a": 2, "items": [{"k": "x", "v": 3}], "list": [2]})
            )
            .unwrap_err(),
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.list\nconflicts with \"upd\" using v1:\n- .spec.a\n- .spec.items[k=\"x\"].v"
    );
    server.update("st", "status", "status", value!({"n": 1}));
    let config = value!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "status": {"n": 2}});
    let error = server.with("status", |fields, live, now| {
        let writer = Writer {
            manager: "two",
            subresource: "status",
            now,
        };
        fields.apply(live, &config, false, writer).unwrap_err()
    });
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"st\" with subresource \"status\" using v1: .status.n"
    );
    let ApplyError::Conflicts(conflicts) = error else {
        panic!("not a conflict");
    };
    assert_eq!(
        conflicts.causes(),
        [(
            "conflict with \"st\" with subresource \"status\" using v1".to_owned(),
            ".status.n".to_owned()
        )]
    );
}

#[test]
fn force_moves_ownership() {
    let mut server = Server::new();
    server
        .apply("one", false, value!({"a": 1, "b": 1}))
        .unwrap();
    server.apply("two", true, value!({"a": 2})).unwrap();
    assert_eq!(server.spec(), value!({"a": 2, "b": 1}));
    assert_eq!(
        server.managed(),
        [
            r#"one Apply 01 {"f:spec":{"f:b":{}}}"#,
            r#"two Apply 02 {"f:spec":{"f:a":{}}}"#
        ]
    );
}

#[test]
fn updates_own_the_fields_they_change_and_no_others() {
    let mut server = Server::new();
    server
        .apply(
            "one",
            false,
            value!({"a": 1, "b": 1, "list": [1], "labels": {"x": "y"}}),
        )
        .unwrap();
    server.update(
        "upd",
        "",
        "spec",
        value!({"a": 2, "b": 1, "labels": {"x": "y", "z": "w"}}),
    );
    assert_eq!(
        server.managed(),
        [
            r#"one Apply 01 {"f:spec":{"f:b":{},"f:labels":{"f:x":{}}}}"#,
            r#"upd Update 02 {"f:spec":{"f:a":{},"f:labels":{"f:z":{}}}}"#
        ]
    );
    // A write without changes keeps the times; a removal only removes.
    server.update("upd", "", "spec", server.spec());
    server.update(
        "other",
        "",
        "spec",
        value!({"a": 2, "b": 1, "labels": {"x": "y"}}),
    );
    assert_eq!(
        server.managed(),
        [
            r#"one Apply 01 {"f:spec":{"f:b":{},"f:labels":{"f:x":{}}}}"#,
            r#"upd Update 02 {"f:spec":{"f:a":{}}}"#
        ]
    );
}

#[test]
fn an_update_adds_to_the_fields_of_its_manager() {
    let mut server = Server::new();
    server.update("u", "", "spec", value!({"a": 1}));
    server.update("u", "", "spec", value!({"a": 2, "b": 1}));
    server.update("", "", "spec", value!({"a": 2, "b": 2}));
    assert_eq!(
        server.managed(),
        [
            r#"u Update 02 {"f:spec":{".":{},"f:a":{}}}"#,
            r#"unknown Update 03 {"f:spec":{"f:b":{}}}"#
        ]
    );
}

#[test]
fn untracked_fields_and_reset_fields_are_left_out() {
    let mut server = Server::new();
    server.write(
        "u",
        "",
        value!({
            "apiVersion": "v1", "kind": "Thing", "status": {"n": 1},
            "metadata": {
                "name": "t", "namespace": "n", "uid": "u", "generation": 1, "resourceVersion": "1",
                "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"a": "b"}
            }
        }),
    );
    assert_eq!(
        server.managed(),
        [r#"u Update 01 {"f:metadata":{"f:labels":{".":{},"f:a":{}}}}"#]
    );
    server.update("s", "status", "status", value!({"n": 2}));
    assert_eq!(
        server.managed()[1],
        r#"s/status Update 02 {"f:status":{"f:n":{}}}"#
    );
}

#[test]
fn dropped_fields_are_removed_unless_another_manager_owns_them() {
    let mut server = Server::new();
    let first = value!({
        "a": 1, "set": ["x", "y"], "labels": {"l": "m", "n": "o"}, "deep": {"x": 1, "y": 1},
        "items": [{"k": "p", "v": 1}, {"k": "q", "v": 1}], "free": {"any": {"thing": 1}}
    });
    server.apply("one", false, first).unwrap();
    server
        .apply(
            "two",
            false,
            value!({"set": ["x"], "deep": {"x": 1}, "items": [{"k": "p"}]}),
        )
        .unwrap();
    server
        .apply("one", false, value!({"labels": {"n": "o"}}))
        .unwrap();
    assert_eq!(
        server.spec(),
        value!({"set": ["x"], "labels": {"n": "o"}, "deep": {"x": 1}, "items": [{"k": "p"}]})
    );
}

#[test]
fn fields_of_other_managers_are_not_removed() {
    let mut server = Server::new();
    server
        .apply("one", false, value!({"items": [{"k": "p", "v": 1}]}))
        .unwrap();
    server.update(
        "upd",
        "",
        "spec",
        value!({"items": [{"k": "p", "v": 1, "labels": {"a": "b"}}], "b": 2}),
    );
    server
        .apply("one", false, value!({"items": [{"k": "p"}]}))
        .unwrap();
    assert_eq!(
        server.spec(),
        value!({"b": 2, "items": [{"k": "p", "labels": {"a": "b"}}]})
    );
}

#[test]
fn fields_from_before_tracking_get_an_owner() {
    let mut server = Server::holding(value!({
        "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "uid": "u"}, "spec": {"a": 1}, "status": {"n": 1}
    }));
    // Updates alone do not begin tracking.
    server.update("upd", "", "spec", value!({"a": 1, "b": 1}));
    assert!(server.managed().is_empty());
    server.apply("one", false, value!({"a": 1})).unwrap();
    assert_eq!(
        server.managed(),
        [
            r#"one Apply  {"f:spec":{"f:a":{}}}"#,
            r#"before-first-apply Update 02 {"f:spec":{".":{},"f:a":{},"f:b":{}}}"#
        ]
    );
    assert_eq!(
        server.apply("one", false, value!({"b": 2})).unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .spec.b"
    );
}

#[test]
fn the_list_can_be_reset_and_set_but_not_lost() {
    let applied = || {
        let mut server = Server::new();
        server.apply("one", false, value!({"a": 1})).unwrap();
        server
    };
    let write = |list: Value| {
        let mut server = applied();
        let mut new = server.live.clone().unwrap();
        let metadata = new.at_mut(&["metadata"]).unwrap().make_object();
        match list {
            Value::Null => metadata.remove("managedFields"),
            list => metadata.insert("managedFields", list),
        };
        server.write("w", "", new);
        server.managed()
    };
    assert!(write(value!([])).is_empty());
    assert!(write(value!([{}])).is_empty());
    let kept = applied().managed();
    assert_eq!(write(Value::Null), kept);
    assert_eq!(write(value!([{"manager": "x"}])), kept);
    assert_eq!(write(value!("no list")), kept);
    assert_eq!(
        write(value!([{
            "manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2024-01-01T02:00:09.5+02:00", "fieldsV1": {"f:spec": {"f:b": {".": {}}}}
        }])),
        [r#"x Apply 09 {"f:spec":{"f:b":{}}}"#]
    );
    // A subresource cannot change it.
    let mut server = applied();
    let mut new = server.live.clone().unwrap();
    new.at_mut(&["metadata"])
        .unwrap()
        .make_object()
        .insert("managedFields", value!([]));
    server.write("w", "status", new);
    assert_eq!(server.managed(), kept);
}

#[test]
fn configurations_of_another_type_or_with_managed_fields_are_refused() {
    let mut server = Server::new();
    let mut refused = |config: Value| {
        server
            .apply_object("one", false, config)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(value!({"apiVersion": "v2", "kind": "Thing"})),
        "invalid object type: /v2, Kind=Thing"
    );
    assert_eq!(
        refused(value!({"apiVersion": "g/v1"})),
        "invalid object type: g/v1, Kind="
    );
    let with_list =
        value!({"apiVersion": "v1", "kind": "Thing", "metadata": {"managedFields": []}});
    assert_eq!(refused(with_list), "metadata.managedFields must be nil");
    assert_eq!(
        refused(
            value!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "n"}, "spec": {"foo": 1}})
        ),
        "failed to create typed patch object (n/t; /v1, Kind=Thing): .spec.foo: field not declared in schema"
    );
    assert_eq!(
        refused(thing(value!({"items": [{"k": "x"}, {"k": "x"}]}))),
        "failed to create typed patch object (/t; /v1, Kind=Thing): .spec.items: duplicate entries for key [k=\"x\"]"
    );
}

#[test]
fn kubectl_takes_over_fields_applied_on_the_client_side() {
    let last = r#"{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},"spec":{"a":1,"b":1}}"#;
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let live = || {
        let mut server = Server::new();
        server.write(
            "kubectl-client-side-apply",
            "",
            value!({
                "apiVersion": "v1", "kind": "Thing",
                "metadata": {"name": "t", "annotations": {(annotation): (last)}},
                "spec": {"a": 1, "b": 2}
            }),
        );
        server
    };
    // `a` still equals the applied value, `b` was changed since.
    let mut server = live();
    server.apply("kubectl", false, value!({"a": 3})).unwrap();
    assert_eq!(
        server
            .live
            .as_ref()
            .unwrap()
            .at(&["metadata", "annotations", annotation]),
        Some(&value!(
            "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"},\"spec\":{\"a\":3}}\n"
        ))
    );
    assert_eq!(
        live()
            .apply("kubectl", false, value!({"a": 3, "b": 3}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .spec.b"
    );
    assert!(live().apply("other", false, value!({"a": 3})).is_err());
}

#[test]
fn empty_lists_and_maps_of_a_configuration_are_kept() {
    let mut server = Server::new();
    server
        .apply("one", false, value!({"deep": {"x": 1}, "set": ["a"]}))
        .unwrap();
    server
        .apply("one", false, value!({"deep": {}, "set": []}))
        .unwrap();
    assert_eq!(server.spec(), value!({"deep": {}, "set": []}));
    let before = server.live.clone();
    server
        .apply("one", false, value!({"deep": {}, "set": []}))
        .unwrap();
    assert_eq!(server.live, before);
}

#[test]
fn a_list_that_became_atomic_is_owned_as_a_whole() {
    let mut server = Server::new();
    server.apply("one", false, value!({"set": ["x"]})).unwrap();
    let spec = structure(&[("set", atomic_list(scalar()))]);
    server.node = object(&[("spec", spec)]);
    assert_eq!(
        server
            .apply("two", false, value!({"set": ["y"]}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.set"
    );
    server.update("upd", "", "spec", value!({"set": ["z"]}));
    assert_eq!(
        server.managed(),
        [r#"upd Update 03 {"f:spec":{"f:set":{}}}"#]
    );
}

#[test]
fn structs_of_every_object_have_no_owner() {
    let versions = OneVersion {
        api_version: "v1",
        node: &node(),
        reset: FieldSet::new(),
    };
    let empty = value!({"spec": {"deep": {}, "items": null}});
    let fields = FieldManager {
        api_version: "v1",
        kind: "Thing",
        versions: &versions,
        converter: &NoConversion,
        empty: &|| Some(empty.clone()),
    };
    let writer = Writer {
        manager: "u",
        subresource: "",
        now: "2024-01-01T00:00:00Z",
    };
    let new = thing(value!({"deep": {"x": 1}, "items": [{"k": 1}], "labels": {"a": "b"}}));
    let created = fields.update(None, new, writer).unwrap();
    assert_eq!(
        managed::of(&created).unwrap().as_array().unwrap()[0]
            .get("fieldsV1")
            .unwrap(),
        &value!({"f:spec": {
            "f:deep": {"f:x": {}},
            "f:items": {"k:{\"k\":1}": {".": {}, "f:k": {}}},
            "f:labels": {".": {}, "f:a": {}}
        }})
    );
}

#[test]
fn the_annotation_of_kubectl_has_the_applied_configuration_without_itself() {
    use crate::apply::last_applied::refresh;
    let name = "kubectl.kubernetes.io/last-applied-configuration";
    for (annotations, wanted) in [
        (value!({}), r#"{"metadata":{"annotations":{}}}"#),
        (value!(null), r#"{"metadata":{}}"#),
        (value!({name: "old"}), r#"{"metadata":{"annotations":{}}}"#),
        (
            value!({"a": null, "b": "c"}),
            r#"{"metadata":{"annotations":{"a":"","b":"c"}}}"#,
        ),
    ] {
        let mut object = value!({"metadata": {"annotations": {name: "{}"}}});
        refresh(
            &mut object,
            &value!({"metadata": {"annotations": annotations}}),
        );
        let value = object.at(&["metadata", "annotations", name]);
        let wanted = format!("{wanted}\n");
        assert_eq!(value.and_then(Value::as_str), Some(wanted.as_str()));
    }
}
