//! Objects and lists as the bytes clients get.

use super::*;
use bareboat_api::value;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("JSON is UTF-8")
}

fn object() -> Value {
    value!({
        "spec": {"b": 1, "a": [true, null]},
        "kind": "Foo",
        "aaa": "x\n",
        "apiVersion": "example.com/v1",
        "metadata": {"name": "n", "annotations": {"z": ""}, "resourceVersion": "7"},
    })
}

#[test]
fn the_stored_form_starts_with_type_meta_and_has_no_version() {
    assert_eq!(
        text(&persisted(&object())),
        r#"{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"annotations":{"z":""},"name":"n"},"aaa":"x\n","spec":{"a":[true,null],"b":1}}"#
    );
}

#[test]
fn splicing_the_version_into_the_stored_form_gives_the_wire_form() {
    let stored = persisted(&object());
    let spliced = text(&stored).replacen(
        r#""metadata":{"#,
        r#""metadata":{"resourceVersion":"7","#,
        1,
    );
    assert_eq!(spliced, text(&wire(&object())));
}

#[test]
fn objects_without_type_meta_or_metadata_are_encoded() {
    assert_eq!(text(&wire(&value!({"x": 1}))), r#"{"x":1}"#);
    assert_eq!(text(&wire(&Value::object())), "{}");
    assert_eq!(text(&wire(&Value::Int(4))), "4");
    assert_eq!(
        text(&persisted(&value!({"metadata": 3}))),
        r#"{"metadata":3}"#
    );
}

#[test]
fn a_list_is_its_head_its_items_and_its_tail() {
    let mut out = Vec::new();
    let meta = ListMeta {
        resource_version: "12",
        continue_token: "tok",
        remaining_item_count: Some(3),
    };
    write_list_head("v1", "FooList", &meta, &mut out);
    out.extend_from_slice(b"{},{}");
    out.extend_from_slice(LIST_TAIL);
    assert_eq!(
        text(&out),
        r#"{"apiVersion":"v1","kind":"FooList","metadata":{"resourceVersion":"12","continue":"tok","remainingItemCount":3},"items":[{},{}]}"#
    );
    let mut out = Vec::new();
    write_list_head("v1", "FooList", &ListMeta::default(), &mut out);
    out.extend_from_slice(LIST_TAIL);
    assert_eq!(
        text(&out),
        r#"{"apiVersion":"v1","kind":"FooList","metadata":{},"items":[]}"#
    );
}
