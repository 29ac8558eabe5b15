//! Tests of converted objects: nothing is lost, failures are reported, results are bounded.

use super::*;

#[test]
fn objects_convert_both_ways_without_loss() {
    let crd = definition(BOTH_WAYS);
    assert_eq!(lines(&super::super::super::validate_create(&crd)), [""; 0]);
    let v1 = "{apiVersion: example.com/v1, metadata: {name: a, creationTimestamp: '2026-01-02T03:04:05Z'}, spec: {deploymentName: web, replicas: 3, hostPort: 'localhost:8080', size: L, tags: [a, b], same: x, blob: {any: [1]}}}";
    let v2 = converted(&crd, v1, "v2").unwrap();
    assert_eq!(
        v2.get("spec").unwrap().to_string(),
        r#"{"blob":{"any":[1]},"host":"localhost","port":8080,"same":"x","since":"2026-01-02T03:04:05Z","size":"L","tags":[{"key":"a"},{"key":"b"}],"workload":{"name":"web","replicas":3}}"#
    );
    let back = converted(&crd, &v2.to_string(), "v1").unwrap();
    let mut original = yaml(v1);
    original.make_object().insert("kind", Value::string("Foo"));
    assert_eq!(back, original);
}

#[test]
fn absent_fields_stay_absent_and_defaults_are_left_to_the_version() {
    let crd = definition(BOTH_WAYS);
    let bare = "{apiVersion: example.com/v1, metadata: {creationTimestamp: '2026-01-02T03:04:05Z'}, spec: {}}";
    assert_eq!(
        spec(&crd, bare, "v2"),
        r#"{"since":"2026-01-02T03:04:05Z","tags":[]}"#
    );
    let v2 = "{apiVersion: example.com/v2, spec: {host: here, size: 3, unknown: 1}}";
    assert_eq!(
        spec(&crd, v2, "v1"),
        r#"{"hostPort":"here:80","size":"3","tags":[]}"#
    );
}

#[test]
fn a_route_through_the_storage_version_applies_its_defaults() {
    let crd = definition(&format!("{BOTH_WAYS}{AND_V3}"));
    assert_eq!(lines(&super::super::super::validate_create(&crd)), [""; 0]);
    let v1 = "{apiVersion: example.com/v1, metadata: {creationTimestamp: '2026-01-02T03:04:05Z'}, spec: {deploymentName: web}}";
    // The replicas are a default of v2, the version between.
    assert_eq!(
        spec(&crd, v1, "v3"),
        r#"{"title":"web","workload":"one of 1"}"#
    );
    let v3 = "{apiVersion: example.com/v3, spec: {title: web, workload: text}}";
    assert_eq!(spec(&crd, v3, "v2"), r#"{"workload":{"name":"web"}}"#);
    // The declared conversions do not depend on the storage version.
    let crd = with_storage(&format!("{BOTH_WAYS}{AND_V3}"), "v3");
    assert_eq!(lines(&super::super::super::validate_create(&crd)), [""; 0]);
    assert_eq!(
        spec(&crd, v1, "v3"),
        r#"{"title":"web","workload":"one of 1"}"#
    );
}

#[test]
fn routes_are_short_and_prefer_the_storage_version() {
    let names = ["a", "b", "c", "d", "e"].map(Str::new);
    let known: Vec<&Str> = names.iter().collect();
    let check =
        |pairs: &[&str], storage: usize, from: usize, to: usize, expected: Option<&[Leg]>| {
            let pairs: Vec<(Str, Str)> = pairs
                .iter()
                .flat_map(|pair| {
                    let (a, b) = pair.split_at(1);
                    [(Str::new(a), Str::new(b)), (Str::new(b), Str::new(a))]
                })
                .collect();
            let pairs: Vec<(&Str, &Str)> = pairs.iter().map(|(a, b)| (a, b)).collect();
            let found = routes::route(&known, &pairs, Some(storage), from, to);
            assert_eq!(found.as_deref(), expected, "{pairs:?} {from} {to}");
        };
    use Leg::{Pair, Same};
    check(&["ab"], 0, 0, 1, Some(&[Pair(0)]));
    check(&["ab"], 0, 1, 1, Some(&[]));
    // b and c both lead from a to d; c is stored.
    check(
        &["ab", "bd", "ac", "cd"],
        2,
        0,
        3,
        Some(&[Pair(4), Pair(6)]),
    );
    check(
        &["ab", "bd", "ac", "cd"],
        1,
        0,
        3,
        Some(&[Pair(0), Pair(2)]),
    );
    // A cycle is harmless.
    check(&["ab", "bc", "ca"], 0, 1, 2, Some(&[Pair(2)]));
    // No pair mentions d and e: they have the schema of the stored version.
    check(&["ab", "bc"], 2, 0, 3, Some(&[Pair(0), Pair(2), Same(3)]));
    check(&["ab", "bc"], 2, 3, 4, Some(&[Same(2), Same(4)]));
    check(&["ab"], 2, 0, 2, None);
}

#[test]
fn labels_and_annotations_are_the_only_metadata_that_is_converted() {
    let crd = definition(
        r#"
- from: v1
  to: v2
  move: {spec.size: "metadata.annotations['example.com/size']"}
  set:
    metadata.labels['example.com/tier']: "self.spec.?size.orValue('bad label!')"
- from: v2
  to: v1
  move: {"metadata.annotations['example.com/size']": spec.size}
  remove: ["metadata.labels['example.com/tier']"]
"#,
    );
    assert_eq!(lines(&super::super::super::validate_create(&crd)), [""; 0]);
    let v1 = "{apiVersion: example.com/v1, metadata: {name: a, uid: u, labels: {x: z}}, spec: {size: L}}";
    let v2 = converted(&crd, v1, "v2").unwrap();
    let expected = "{name: a, uid: u, labels: {x: z, example.com/tier: L}, annotations: {example.com/size: L}}";
    assert_eq!(v2.get("metadata"), Some(&yaml(expected)));
    let back = converted(&crd, &v2.to_string(), "v1").unwrap();
    assert_eq!(back.get("metadata"), yaml(v1).get("metadata"));
    let error = converted(&crd, "{apiVersion: example.com/v1, spec: {}}", "v2").unwrap_err();
    assert!(
        error.contains("metadata.labels: Invalid value: \"bad label!\""),
        "{error}"
    );
}

#[test]
fn failures_name_the_expression_and_the_remedy() {
    let annotation = |expression: &str, place: &str| {
        format!(
            "[{{from: v1, to: v2, set: {{{place}: {}}}}}, {{from: v2, to: v1}}]",
            Value::string(expression)
        )
    };
    let object = "{apiVersion: example.com/v1, spec: {hostPort: nowhere, tags: [a, b, c, d, e, f, g, h, i, j], blob: {x: text, big: 1.5}}}";
    let check = |expression: &str, place: &str, expected: &str| {
        let crd = definition(&annotation(expression, place));
        assert_eq!(
            lines(&super::super::super::validate_create(&crd)),
            [""; 0],
            "{expression}"
        );
        let error = converted(&crd, object, "v2").unwrap_err();
        let prefix = format!(
            "conversion of example.com/v1, Kind=Foo to example.com/v2 failed: metadata.annotations[bareboat.dev/conversion][0].set[{place}] ("
        );
        assert!(error.starts_with(&prefix), "{error}");
        assert!(error.contains(expected), "{expected} in {error}");
    };
    check(
        "self.spec.hostPort.split(':')[1]",
        "spec.host",
        "(self.spec.hostPort.split(':')[1]): index out of bounds: 1",
    );
    check(
        "self.spec.deploymentName",
        "spec.host",
        "no such key: deploymentName; where a field can be absent, read it as in self.spec.?field",
    );
    check(
        "self.spec.blob.x",
        "spec.port",
        "expected integer, got string",
    );
    check("self.spec.blob.big", "spec.port", "expected integer, got ");
    check(
        "{'name': self.spec.blob.big}",
        "spec.workload",
        "name: expected string",
    );
    check(
        "self.spec.tags.map(a, self.spec.tags.map(b, self.spec.tags.map(c, self.spec.tags.map(d, self.spec.tags.map(e, self.spec.tags.map(f, a)))))).size() > 0 ? 'a' : 'b'",
        "spec.host",
        "it exceeds the cost limit of a conversion",
    );
    let long = format!("self.spec.hostPort.split('{}')[1]", "x".repeat(500));
    check(&long, "spec.host", "…): index out of bounds");
}

#[test]
fn the_growth_of_results_is_limited() {
    let mut lists = String::from("[self, self, self, self, self, self, self, self]");
    for _ in 0..3 {
        lists = format!("[{}]", vec![lists; 8].join(","));
    }
    let annotation = format!(
        "[{{from: v1, to: v2, set: {{spec.blob.deep: {}}}}}, {{from: v2, to: v1}}]",
        Value::string(&lists)
    );
    let crd = definition(&annotation);
    assert_eq!(lines_of(&crd), [""; 0]);
    let object = format!(
        "{{apiVersion: example.com/v1, spec: {{same: {}}}}}",
        "x".repeat(10_000)
    );
    let error = converted(&crd, &object, "v2").unwrap_err();
    assert!(
        error.contains("would grow by more than 4194304 bytes"),
        "{error}"
    );

    // Each conversion nests the value deeper, until it is too deep.
    let crd = definition(
        "[{from: v1, to: v2, set: {spec.blob.a.b.c.d.e.f.g.h.i.j: self.spec.blob}}, {from: v2, to: v1}]",
    );
    let mut object = yaml("{apiVersion: example.com/v1, kind: Foo, spec: {blob: {}}}");
    let conversions = Conversions::of(&crd, &SchemaCache::new()).unwrap();
    let error = loop {
        match conversions.convert(object, "example.com/v2") {
            Ok(done) => object = conversions.convert(done, "example.com/v1").unwrap(),
            Err(error) => break error.0,
        }
    };
    assert!(error.contains("nested deeper than 200 levels"), "{error}");
}
