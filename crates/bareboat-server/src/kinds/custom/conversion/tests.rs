//! Conversion reviews: the requests sent, and the checks on the answers.
#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::value;
use bareboat_storage::{MemoryBackend, Store, StoreOptions};

fn object(value: Value) -> Object {
    Object::try_from(value).unwrap()
}

fn original() -> Object {
    object(value!({
        "apiVersion": "g/v1", "kind": "Foo",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u", "labels": {"odd label": "x"}, "finalizers": ["f/f"]},
        "spec": {"a": 1},
    }))
}

#[test]
fn the_first_supported_review_version_is_used() {
    let first = |versions: &[&str]| {
        let versions: Vec<Str> = versions.iter().map(Str::new).collect();
        ReviewVersion::first_known(&versions)
    };
    assert_eq!(
        first(&["v2", "v1beta1", "v1"]),
        Some(ReviewVersion::V1Beta1)
    );
    assert_eq!(first(&["v1", "v1beta1"]), Some(ReviewVersion::V1));
    assert_eq!(first(&["v2"]), None);
}

#[test]
fn a_review_names_the_desired_version_and_has_the_objects_in_order() {
    let objects = [
        original(),
        object(value!({"apiVersion": "g/v1", "kind": "Foo"})),
    ];
    let bytes = question(ReviewVersion::V1, "u1", "g/v2", objects.iter());
    let asked = bareboat_wire::json::parse(&bytes).unwrap().value;
    let expected = value!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": null,
        "request": {"uid": "u1", "desiredAPIVersion": "g/v2", "objects": [(objects[0].value().clone()), (objects[1].value().clone())]},
    });
    assert_eq!(asked, expected);
}

#[test]
fn an_answer_must_match_its_review() {
    let v1 = r#""kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1""#;
    let cases = [
        (
            format!(
                "{{{v1},\"response\":{{\"uid\":\"u\",\"result\":{{\"status\":\"Success\"}},\"convertedObjects\":[1]}}}}"
            ),
            "[Int(1)]",
        ),
        (
            format!(
                "{{{v1},\"response\":{{\"uid\":\"u\",\"result\":{{\"status\":\"Success\"}}}}}}"
            ),
            "[]",
        ),
        (
            format!(
                "{{{v1},\"response\":{{\"uid\":\"u\",\"result\":{{\"status\":\"Success\"}},\"convertedObjects\":{{}}}}}}"
            ),
            "response.convertedObjects is no list",
        ),
        (format!("{{{v1}}}"), "no response provided"),
        (
            format!("{{{v1},\"response\":{{\"uid\":\"v\"}}}}"),
            "expected response.uid=\"u\", got \"v\"",
        ),
        (
            format!(
                "{{{v1},\"response\":{{\"uid\":\"u\",\"result\":{{\"status\":\"Failure\"}}}}}}"
            ),
            "response.result.status was 'Failure', not 'Success'",
        ),
        (
            format!("{{{v1},\"response\":{{\"uid\":\"u\",\"result\":{{\"message\":\"no\"}}}}}}"),
            "no",
        ),
        (
            "{}".to_owned(),
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got , Kind=",
        ),
    ];
    for (answer, expected) in cases {
        let found = match believe(ReviewVersion::V1, "u", answer.as_bytes()) {
            Ok(objects) => format!("{objects:?}"),
            Err(Unusable::Refused(why) | Unusable::Invalid(why)) => why,
        };
        assert_eq!(found, expected, "{answer}");
    }
    // The v1beta1 review is not checked for its type or its uid.
    let answer = br#"{"response":{"result":{"status":"Success"},"convertedObjects":[]}}"#;
    assert_eq!(believe(ReviewVersion::V1Beta1, "u", answer), Ok(Vec::new()));
}

#[test]
fn a_converter_must_not_change_the_identity_of_an_object() {
    let converted = value!({
        "apiVersion": "g/v2", "kind": "Foo",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u", "labels": {"new": "x"}, "finalizers": []},
        "spec": {"b": 1},
    });
    let done = checked(&original(), converted.clone(), "g/v2").unwrap();
    let expected = value!({
        "apiVersion": "g/v2", "kind": "Foo",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u", "labels": {"new": "x"}, "finalizers": ["f/f"]},
        "spec": {"b": 1},
    });
    assert_eq!(done.value(), &expected);
    type Mutation = fn(&mut Map);
    let cases: [(Mutation, &str); 7] = [
        (
            |o| drop(o.insert("kind", "Bar".into())),
            "invalid converted object at index 3: invalid kind (expected Foo, received Bar)",
        ),
        (
            |o| drop(o.insert("apiVersion", "g/v1".into())),
            "invalid converted object at index 3: invalid groupVersion (expected g/v2, received g/v1)",
        ),
        (
            |o| drop(o.object_mut("metadata").insert("namespace", "x".into())),
            "invalid converted object at index 3: must have the same namespace: ns != x",
        ),
        (
            |o| drop(o.object_mut("metadata").remove("uid")),
            "invalid converted object at index 3: must have the same UID: u != ",
        ),
        (
            |o| drop(o.remove("metadata")),
            "invalid converted object at index 3: must have the same name: a != ",
        ),
        (
            |o| drop(o.object_mut("metadata").insert("labels", 1.into())),
            "invalid metadata in object at index 3: metadata.labels: Invalid value: 1: must be an object whose values are strings",
        ),
        (
            |o| {
                drop(
                    o.object_mut("metadata")
                        .object_mut("annotations")
                        .insert("a b", "".into()),
                )
            },
            "invalid metadata in object at index 3: metadata.annotations: Invalid value: \"a b\": ",
        ),
    ];
    for (change, expected) in cases {
        let mut converted = converted.clone();
        change(converted.make_object());
        let wrong = checked(&original(), converted, "g/v2").unwrap_err().at(3);
        assert!(wrong.starts_with(expected), "{wrong}");
    }
}

#[test]
fn invalid_labels_of_the_original_are_accepted() {
    let mut converted = original();
    converted.set_type("g/v2", "Foo");
    let done = checked(&original(), converted.into(), "g/v2").unwrap();
    assert_eq!(done.label("odd label"), Some("x"));
}

#[tokio::test]
async fn only_nonempty_objects_of_other_versions_are_sent() {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap();
    let webhook = Webhook {
        target: bareboat_schema::crd::Target::Url("http://not.https".to_owned()),
        ca_bundle: String::new(),
        review_versions: vec![Str::const_new("v1")],
    };
    let resolver = Arc::new(bareboat_api::resolver::NoServices);
    let outbound = Arc::new(Outbound::new(&store, resolver, None, Arc::default()));
    let converter = Converter::new(&webhook, &outbound);
    let empty = value!({"apiVersion": "g/v2", "kind": "Foo"});
    let given = vec![original().into(), empty];
    let done = converter.convert(given, "g/v1").await.unwrap();
    let expected: [Value; 2] = [
        original().into(),
        value!({"apiVersion": "g/v1", "kind": "Foo"}),
    ];
    assert_eq!(done, expected);
    let failed = converter.convert(done, "g/v2").await.unwrap_err();
    assert_eq!(
        failed.0,
        "conversion webhook for g/v1, Kind=Foo failed: \"http://not.https?timeout=30s\" is no https URL"
    );
}
