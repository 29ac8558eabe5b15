//! Kinds from Rust structs: schema, defaults, conversion.

#![allow(clippy::unwrap_used, dead_code)]
use super::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct V1 {
    spec: V1Spec,
}
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct V1Spec {
    msg: String,
    #[serde(default = "two")]
    count: u32,
    mode: Option<Mode>,
}
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
enum Mode {
    /// Documented.
    Fast,
    /// Documented, too.
    Slow,
}
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct V2 {
    spec: V2Spec,
    status: Option<V2Status>,
}
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct V2Spec {
    text: String,
}
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct V2Status {
    ready: bool,
}
fn two() -> u32 {
    2
}
impl From<V1> for V2 {
    fn from(v1: V1) -> V2 {
        V2 {
            spec: V2Spec { text: v1.spec.msg },
            status: None,
        }
    }
}
impl From<V2> for V1 {
    fn from(v2: V2) -> V1 {
        V1 {
            spec: V1Spec {
                msg: v2.spec.text,
                count: two(),
                mode: None,
            },
        }
    }
}

#[test]
fn a_struct_becomes_a_structural_schema() {
    let schema = structural::schema_of::<V1>();
    assert_eq!(
        schema
            .at(&["properties", "spec", "type"])
            .and_then(Value::as_str),
        Some("object")
    );
    assert_eq!(
        schema.at(&["properties", "spec", "properties", "count", "default"]),
        Some(&Value::Int(2))
    );
    assert_eq!(
        schema.at(&["properties", "spec", "properties", "count", "format"]),
        None
    );
    let mode = schema
        .at(&["properties", "spec", "properties", "mode"])
        .unwrap();
    assert_eq!(
        mode.get("enum"),
        Some(&bareboat_api::value!(["Fast", "Slow"]))
    );
    assert_eq!(mode.get("nullable"), Some(&Value::Bool(true)));
}

#[test]
fn versions_convert_both_ways_and_keep_metadata() {
    let kind = TypedKind::new("g.example.com", "things", "Thing")
        .version::<V2>("v2")
        .version::<V1>("v1")
        .convert::<V1, V2>("v1", "v2")
        .build()
        .unwrap();
    assert_eq!(kind.storage_api_version, "g.example.com/v2");
    assert!(kind.version("v2").unwrap().has_status());
    let Conversion::Pure(convert) = &kind.conversion else {
        panic!("a pure conversion")
    };
    let v1 = bareboat_api::value!({
        "apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"msg": "hello", "count": 3},
    });
    let v2 = convert(v1, "g.example.com/v2", None).unwrap();
    assert_eq!(
        v2.at(&["spec", "text"]).and_then(Value::as_str),
        Some("hello")
    );
    assert_eq!(
        v2.at(&["metadata", "name"]).and_then(Value::as_str),
        Some("a")
    );
    assert_eq!(v2.get("status"), None);
}

#[test]
fn a_write_in_one_version_keeps_fields_of_the_other() {
    let kind = TypedKind::new("g.example.com", "things", "Thing")
        .version::<V1>("v1")
        .version::<V2>("v2")
        .convert::<V1, V2>("v1", "v2")
        .build()
        .unwrap();
    let Conversion::Pure(convert) = &kind.conversion else {
        panic!("a pure conversion")
    };
    let stored = bareboat_api::value!({
        "apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"msg": "hello", "count": 7, "mode": "Fast"},
    });
    let written = bareboat_api::value!({
        "apiVersion": "g.example.com/v2", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"text": "goodbye"},
    });
    let merged = convert(written, "g.example.com/v1", Some(&stored)).unwrap();
    let expected = bareboat_api::value!({"msg": "goodbye", "count": 7, "mode": "Fast"});
    assert_eq!(merged.get("spec"), Some(&expected));
}

#[test]
fn carrying_adds_replaces_and_removes_members() {
    use bareboat_api::value;
    let live = value!({"a": 1, "only": true, "deep": {"x": 1, "kept": 2}, "gone": 1});
    let before = value!({"a": 1, "deep": {"x": 1}, "gone": 1, "filled": 0});
    let after = value!({"a": 2, "deep": {"x": 3}, "filled": 0, "new": 4});
    let expected = value!({"a": 2, "only": true, "deep": {"x": 3, "kept": 2}, "new": 4});
    assert_eq!(carry(&live, &before, after), expected);
}

#[test]
fn an_inconsistent_kind_is_rejected() {
    let things = || TypedKind::new("g.example.com", "things", "Thing");
    let fault = |kind: TypedKind| kind.build().err();
    assert_eq!(fault(things()), Some(TypedKindError::NoVersion));
    let twice = things().version::<V1>("v1").version::<V2>("v1");
    assert_eq!(fault(twice), Some(TypedKindError::TwoVersions("v1".into())));
    let elsewhere = things().version::<V1>("v1").stored_in("v2");
    assert_eq!(
        fault(elsewhere),
        Some(TypedKindError::UnknownVersion("v2".into()))
    );
    let converted = things().version::<V1>("v1").convert::<V1, V2>("v1", "v3");
    assert_eq!(
        fault(converted),
        Some(TypedKindError::UnknownVersion("v3".into()))
    );
    let early = things().selectable("spec.msg").version::<V1>("v1");
    assert!(matches!(
        fault(early),
        Some(TypedKindError::BeforeVersions(_))
    ));
    let odd = things().version::<V1>("v1").column("Odd", ".spec[");
    assert!(matches!(fault(odd), Some(TypedKindError::Column { .. })));
}
