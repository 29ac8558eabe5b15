//! Tests of managers that used other versions than the request.

use super::*;

/// `v1` has `spec.a`, `v2` calls the same field `spec.z`.
struct TwoVersions {
    v1: Node,
    v2: Node,
}

impl TwoVersions {
    fn new() -> TwoVersions {
        let with = |name| object(&[("spec", structure(&[(name, scalar()), ("b", scalar())]))]);
        TwoVersions {
            v1: with("a"),
            v2: with("z"),
        }
    }
}

impl Versions for TwoVersions {
    fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode> {
        match api_version {
            "g/v1" => Some(&self.v1),
            "g/v2" => Some(&self.v2),
            _ => None,
        }
    }
}

struct Rename;

impl Converter for Rename {
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
        let mut object = object.clone();
        object.make_object().insert("apiVersion", Value::string(to));
        let (from, into) = match to {
            "g/v1" => ("z", "a"),
            "g/v2" => ("a", "z"),
            _ => return Err(ConvertError::UnknownVersion),
        };
        if let Some(Value::Object(spec)) = object.at_mut(&["spec"])
            && let Some(value) = spec.remove(from)
        {
            spec.insert(into, value);
        }
        Ok(object)
    }
}

fn manager<'a>(
    api_version: &'a str,
    versions: &'a TwoVersions,
    converter: &'a dyn Converter,
) -> FieldManager<'a> {
    FieldManager {
        api_version,
        kind: "Thing",
        versions,
        converter,
        empty: &|| None,
    }
}

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        subresource: "",
        now: "2024-01-01T00:00:00Z",
    }
}

fn config(api_version: &str, spec: Value) -> Value {
    value!({"apiVersion": (api_version), "kind": "Thing", "metadata": {"name": "t"}, "spec": (spec)})
}

fn fields_of(object: &Value) -> Vec<String> {
    let entries = managed::of(object)
        .and_then(Value::as_array)
        .unwrap_or_default();
    let shown = entries.iter().map(|entry| {
        let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        format!(
            "{} {} {}",
            text("manager"),
            text("apiVersion"),
            entry.get("fieldsV1").unwrap()
        )
    });
    shown.collect()
}

#[test]
fn ownership_follows_a_field_through_conversion() {
    let versions = TwoVersions::new();
    let one = manager("g/v1", &versions, &Rename);
    let two = manager("g/v2", &versions, &Rename);
    let live = one
        .apply(
            None,
            &config("g/v1", value!({"a": 1, "b": 1})),
            false,
            writer("one"),
        )
        .unwrap();

    // The v2 request sees the object in v2.
    let live = Rename.convert(&live, "g/v2").unwrap();
    let error = two
        .apply(
            Some(&live),
            &config("g/v2", value!({"z": 2})),
            false,
            writer("two"),
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.a"
    );

    let mut new = live.clone();
    new.at_mut(&["spec"])
        .unwrap()
        .make_object()
        .insert("z", value!(5));
    let live = two.update(Some(&live), new, writer("upd")).unwrap();
    assert_eq!(
        fields_of(&live),
        [
            r#"one g/v1 {"f:spec":{"f:b":{}}}"#,
            r#"upd g/v2 {"f:spec":{"f:z":{}}}"#
        ]
    );
}

#[test]
fn fields_applied_in_another_version_are_removed_there() {
    let versions = TwoVersions::new();
    let one = manager("g/v1", &versions, &Rename);
    let two = manager("g/v2", &versions, &Rename);
    let live = one
        .apply(
            None,
            &config("g/v1", value!({"a": 1, "b": 1})),
            false,
            writer("one"),
        )
        .unwrap();
    let live = Rename.convert(&live, "g/v2").unwrap();
    let new = two
        .apply(
            Some(&live),
            &config("g/v2", value!({"b": 1})),
            false,
            writer("one"),
        )
        .unwrap();
    assert_eq!(new.get("spec"), Some(&value!({"b": 1})));
    assert_eq!(fields_of(&new), [r#"one g/v2 {"f:spec":{"f:b":{}}}"#]);
}

#[test]
fn managers_of_removed_versions_are_dropped() {
    let versions = TwoVersions::new();
    let one = manager("g/v1", &versions, &Rename);
    let entry = |name: &str, version: &str| value!({"manager": (name), "operation": "Update", "apiVersion": (version), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:b": {}}}});
    let mut live = config("g/v1", value!({"a": 1, "b": 1}));
    let list = Value::Array(vec![entry("old", "g/v0"), entry("new", "g/v1")]);
    live.at_mut(&["metadata"])
        .unwrap()
        .make_object()
        .insert("managedFields", list);
    let mut new = live.clone();
    new.at_mut(&["spec"])
        .unwrap()
        .make_object()
        .insert("a", value!(2));
    let new = one.update(Some(&live), new, writer("upd")).unwrap();
    assert_eq!(
        fields_of(&new),
        [
            r#"new g/v1 {"f:spec":{"f:b":{}}}"#,
            r#"upd g/v1 {"f:spec":{"f:a":{}}}"#
        ]
    );
    let applied = one
        .apply(
            Some(&live),
            &config("g/v1", value!({"a": 2})),
            false,
            writer("one"),
        )
        .unwrap();
    assert_eq!(
        fields_of(&applied),
        [
            r#"one g/v1 {"f:spec":{"f:a":{}}}"#,
            r#"new g/v1 {"f:spec":{"f:b":{}}}"#
        ]
    );
}

#[test]
fn a_failed_conversion_does_not_fail_an_update() {
    struct Broken;
    impl Converter for Broken {
        fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
            Err(ConvertError::Failed("webhook is down".into()))
        }
    }
    let versions = TwoVersions::new();
    let live = manager("g/v1", &versions, &Rename)
        .apply(
            None,
            &config("g/v1", value!({"a": 1})),
            false,
            writer("one"),
        )
        .unwrap();
    let live = Rename.convert(&live, "g/v2").unwrap();
    let two = manager("g/v2", &versions, &Broken);
    let mut new = live.clone();
    new.at_mut(&["spec"])
        .unwrap()
        .make_object()
        .insert("z", value!(2));
    let new = two.update(Some(&live), new, writer("upd")).unwrap();
    assert_eq!(
        fields_of(&new),
        [
            r#"one g/v1 {"f:spec":{"f:a":{}}}"#,
            r#"upd g/v2 {"f:spec":{"f:z":{}}}"#
        ]
    );
    let error = two
        .apply(
            Some(&live),
            &config("g/v2", value!({"b": 2})),
            false,
            writer("two"),
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to convert object to g/v1: webhook is down"
    );
}

#[test]
fn conversions_can_be_added_between_attempts() {
    let versions = TwoVersions::new();
    let live = manager("g/v1", &versions, &Rename)
        .apply(
            None,
            &config("g/v1", value!({"a": 1, "b": 1})),
            false,
            writer("one"),
        )
        .unwrap();
    let live = Rename.convert(&live, "g/v2").unwrap();
    let wanted = config("g/v2", value!({"b": 1}));
    let mut conversions = Conversions::default();
    let mut attempts = 0;
    let result = loop {
        attempts += 1;
        let result = manager("g/v2", &versions, &conversions).apply(
            Some(&live),
            &wanted,
            false,
            writer("one"),
        );
        match result {
            Err(ApplyError::NeedsConversion) => {
                let (object, version) = conversions.wanted().unwrap();
                let converted = Rename.convert(&object, &version);
                conversions.add(object, version, converted);
            }
            other => break other.unwrap(),
        }
    };
    assert!((2..10).contains(&attempts), "{attempts}");
    assert_eq!(result.get("spec"), Some(&value!({"b": 1})));
}
