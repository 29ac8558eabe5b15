use super::*;
use crate::testing::{lines, yaml};
use std::fmt::Write as _;

/// A definition with versions v1 and v2 (stored), and v3 where asked for, and an annotation.
fn definition(annotation: &str) -> Value {
    with_storage(annotation, "v2")
}

fn with_storage(annotation: &str, storage: &str) -> Value {
    let mut crd = yaml(
        r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com, annotations: {}}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              deploymentName: {type: string}
              replicas: {type: integer}
              hostPort: {type: string}
              size: {type: string}
              tags: {type: array, items: {type: string}}
              blob: {type: object, x-kubernetes-preserve-unknown-fields: true}
              same: {type: string}
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              workload:
                type: object
                properties:
                  name: {type: string}
                  replicas: {type: integer, default: 1}
              host: {type: string}
              port: {type: integer}
              size: {x-kubernetes-int-or-string: true}
              tags:
                type: array
                items: {type: object, properties: {key: {type: string}}}
              since: {type: string, format: date-time}
              blob: {type: object, x-kubernetes-preserve-unknown-fields: true}
              same: {type: string}
              maybe: {type: string, nullable: true}
  - name: v3
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {title: {type: string}, workload: {type: string}}}
"#,
    );
    let annotations = crd.at_mut(&["metadata", "annotations"]).unwrap();
    annotations
        .make_object()
        .insert(ANNOTATION, Value::string(annotation));
    for version in crd
        .at_mut(&["spec", "versions"])
        .unwrap()
        .as_array_mut()
        .unwrap()
    {
        let is_storage = version.get("name") == Some(&Value::string(storage));
        version
            .make_object()
            .insert("storage", Value::Bool(is_storage));
    }
    let status = yaml(&format!("{{storedVersions: [{storage}]}}"));
    crd.make_object().insert("status", status);
    crd
}

const BOTH_WAYS: &str = r#"
- from: v1
  to: v2
  move:
    spec.deploymentName: spec.workload.name
    spec.replicas: spec.workload.replicas
  set:
    spec.host: self.spec.?hostPort.optMap(it, it.split(":")[0])
    spec.port: self.spec.?hostPort.optMap(it, int(it.split(":")[1]))
    spec.tags: "self.spec.?tags.orValue([]).map(tag, {'key': tag})"
    spec.since: self.metadata.creationTimestamp
- from: v2
  to: v1
  move:
    spec.workload.name: spec.deploymentName
    spec.workload.replicas: spec.replicas
  set:
    spec.hostPort: "has(self.spec.host) ? optional.of(self.spec.host + ':' + string(self.spec.?port.orValue(80))) : optional.none()"
    spec.tags: "self.spec.?tags.orValue([]).map(tag, tag.key)"
    spec.size: "self.spec.?size.optMap(size, string(size))"
"#;

const AND_V3: &str = r#"
- {from: v2, to: v3, set: {spec.title: self.spec.workload.name, spec.workload: "'one of ' + string(self.spec.workload.replicas)"}}
- {from: v3, to: v2, set: {spec.workload.name: "self.spec.title"}, remove: [spec.workload]}
"#;

fn converted(crd: &Value, object: &str, to: &str) -> Result<Value, String> {
    let conversions = Conversions::of(crd, &SchemaCache::new()).expect("it declares some");
    let mut object = yaml(object);
    object.make_object().insert("kind", Value::string("Foo"));
    let to = format!("example.com/{to}");
    let done = conversions.convert(object, &to).map_err(|error| error.0)?;
    assert_eq!(done.get("apiVersion"), Some(&Value::string(&to)));
    Ok(done)
}

fn spec(crd: &Value, object: &str, to: &str) -> String {
    let done = converted(crd, object, to).unwrap();
    done.get("spec").map(Value::to_string).unwrap_or_default()
}

fn problems(annotation: &str) -> Vec<String> {
    let crd = definition(annotation);
    lines(&super::super::validate_create(&crd))
}

#[test]
fn objects_go_there_and_back_without_loss() {
    let crd = definition(BOTH_WAYS);
    assert_eq!(lines(&super::super::validate_create(&crd)), [""; 0]);
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
fn what_is_absent_stays_absent_and_what_is_defaulted_is_left_to_the_version() {
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
fn a_way_over_the_storage_version_is_found_and_its_defaults_hold_there() {
    let crd = definition(&format!("{BOTH_WAYS}{AND_V3}"));
    assert_eq!(lines(&super::super::validate_create(&crd)), [""; 0]);
    let v1 = "{apiVersion: example.com/v1, metadata: {creationTimestamp: '2026-01-02T03:04:05Z'}, spec: {deploymentName: web}}";
    // The replicas are a default of v2, which lies between.
    assert_eq!(
        spec(&crd, v1, "v3"),
        r#"{"title":"web","workload":"one of 1"}"#
    );
    let v3 = "{apiVersion: example.com/v3, spec: {title: web, workload: text}}";
    assert_eq!(spec(&crd, v3, "v2"), r#"{"workload":{"name":"web"}}"#);
    // Whatever is stored, the ways that were declared stay.
    let crd = with_storage(&format!("{BOTH_WAYS}{AND_V3}"), "v3");
    assert_eq!(lines(&super::super::validate_create(&crd)), [""; 0]);
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
    // A circle does no harm.
    check(&["ab", "bc", "ca"], 0, 1, 2, Some(&[Pair(2)]));
    // Nobody speaks of d and e: they are as what is stored.
    check(&["ab", "bc"], 2, 0, 3, Some(&[Pair(0), Pair(2), Same(3)]));
    check(&["ab", "bc"], 2, 3, 4, Some(&[Same(2), Same(4)]));
    check(&["ab"], 2, 0, 2, None);
}

#[test]
fn labels_and_annotations_are_converted_and_nothing_else_of_the_metadata() {
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
    assert_eq!(lines(&super::super::validate_create(&crd)), [""; 0]);
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
fn failures_name_the_expression_and_say_what_to_do() {
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
            lines(&super::super::validate_create(&crd)),
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
        "integer was wanted, not string",
    );
    check(
        "self.spec.blob.big",
        "spec.port",
        "integer was wanted, not ",
    );
    check(
        "{'name': self.spec.blob.big}",
        "spec.workload",
        "name: string was wanted",
    );
    check(
        "self.spec.tags.map(a, self.spec.tags.map(b, self.spec.tags.map(c, self.spec.tags.map(d, self.spec.tags.map(e, self.spec.tags.map(f, a)))))).size() > 0 ? 'a' : 'b'",
        "spec.host",
        "it costs more than a conversion may",
    );
    let long = format!("self.spec.hostPort.split('{}')[1]", "x".repeat(500));
    check(&long, "spec.host", "…): index out of bounds");
}

#[test]
fn results_cannot_grow_without_end() {
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

    // Each way makes it deeper, until it is too deep.
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

fn lines_of(crd: &Value) -> Vec<String> {
    lines(&super::super::validate_create(crd))
}

#[test]
fn what_is_wrong_with_a_declaration_is_said_at_its_place() {
    const AT: &str = "metadata.annotations[bareboat.dev/conversion]";
    let check = |annotation: &str, expected: &[(&str, &str)]| {
        let found = problems(annotation);
        assert_eq!(found.len(), expected.len(), "{annotation}: {found:#?}");
        for (line, (place, text)) in found.iter().zip(expected) {
            let start = format!("{AT}{place}: ");
            assert!(
                line.starts_with(&start),
                "{line}\nshould start with {start}"
            );
            assert!(line.contains(text), "{line}\nshould contain {text}");
        }
    };
    let back = ", {from: v2, to: v1}]";
    check("{", &[("", "is neither YAML nor JSON: line 1")]);
    check(
        "from: v1",
        &[(
            "",
            "must be a list of pairs of versions; write a list such as",
        )],
    );
    check("[v1]", &[("[0]", "must be a pair of versions")]);
    check(
        "[{from: v1}]",
        &[
            ("[0].to", "name a version of spec.versions"),
            ("[0]", "the way back is missing"),
        ],
    );
    check(
        "[{from: v1, to: v2, sett: {}}, {from: v2, to: v1}]",
        &[(
            "[0].sett",
            "unknown key; the keys of a pair are from, to, move, set, remove",
        )],
    );
    check(
        "[{from: v1, to: v9}, {from: v9, to: v1}]",
        &[
            (
                "[0].to",
                "Unsupported value: \"v9\": supported values: \"v1\", \"v2\", \"v3\"",
            ),
            ("[1].from", "Unsupported value"),
        ],
    );
    check(
        "[{from: v1, to: v1}]",
        &[("[0].to", "must be another version than from")],
    );
    check(
        "[{from: v1, to: v2}]",
        &[("[0]", "declare a pair from v2 to v1 as well")],
    );
    check(
        &format!("[{{from: v1, to: v2}}, {{from: v1, to: v2}}{back}"),
        &[("[1]", "Duplicate value: \"from v1 to v2\"")],
    );
    check(
        "[{from: v1, to: v3}, {from: v3, to: v1}]",
        &[
            (
                "",
                "nothing leads from v1 to v2, in which objects are stored",
            ),
            ("", "nothing leads from v3 to v2"),
        ],
    );
    let set = |place: &str, expression: &str| {
        format!(
            "[{{from: v1, to: v2, set: {{\"{place}\": {}}}}}{back}",
            Value::string(expression)
        )
    };
    for (place, expression, problem) in [
        (
            "spec.host",
            "self.spec.hostport",
            "compilation failed: ERROR: <input>:1:10: undefined field 'hostport'",
        ),
        (
            "spec.host",
            "self.spec.hostport",
            "self is the object in v1",
        ),
        ("spec.host", "1 +", "Syntax error"),
        ("spec.host", "self.spec.host", "undefined field 'host'"),
        (
            "spec.port",
            "self.spec.hostPort",
            "the expression gives string, but spec.port is of type integer in v2; convert it, as in int(self.a)",
        ),
        (
            "spec.port",
            "self.spec.?hostPort",
            "gives optional_type(string), but spec.port is of type integer in v2; convert it, as in self.?a.optMap(a, int(a))",
        ),
        ("spec.host", "null", "optional.none() leaves it out"),
        (
            "spec.host",
            "self.spec",
            "but spec.host is of type string in v2",
        ),
        (
            "spec.tags",
            "self.spec.tags",
            "the expression gives list(string), but spec.tags is of type array in v2",
        ),
        (
            "spec.tags.key",
            "'a'",
            "spec.tags is a list, and paths do not lead into lists",
        ),
        (
            "spec.nope",
            "'a'",
            "spec has no field nope; it has blob, host, maybe, port, same, since, size, tags, workload in v2",
        ),
        (
            "metadata.name",
            "'a'",
            "of the metadata only labels and annotations can be converted",
        ),
        (
            "apiVersion",
            "'a'",
            "apiVersion and kind are seen to by the conversion itself",
        ),
        (
            "metadata.labels.a",
            "1",
            "the expression gives int, but metadata.labels.a is a text in v2; convert it, as in string(self.a)",
        ),
        ("metadata.labels", "{'a': 1}", "is a map of texts"),
        (
            "spec.host",
            "oldSelf.spec.x",
            "undeclared reference to 'oldSelf'",
        ),
    ] {
        check(
            &set(place, expression),
            &[(&format!("[0].set[{place}]"), problem)],
        );
    }
    for (place, problem) in [
        (
            "spec.",
            "unexpected end of JSON path; write paths like spec.name",
        ),
        ("spec..a", "a name is missing"),
        ("spec[0]", "expected single quoted string but got 0"),
        ("", "unexpected end of JSON path"),
    ] {
        let found = problems(&set(place, "'a'"));
        assert!(found.len() == 1 && found[0].contains(problem), "{found:?}");
    }
    check(
        &format!("[{{from: v1, to: v2, move: {{spec.hostPort: spec.port}}}}{back}"),
        &[(
            "[0].move[spec.hostPort]",
            "spec.hostPort is of type string in v1, but spec.port is of type integer in v2; compute it in set instead",
        )],
    );
    check(
        &format!(
            "[{{from: v1, to: v2, move: {{spec.nope: spec.host}}, remove: [spec.nada]}}{back}"
        ),
        &[
            ("[0].move[spec.nope]", "spec has no field nope"),
            ("[0].remove[0]", "spec has no field nada"),
        ],
    );
    check(
        &format!(
            "[{{from: v1, to: v2, move: {{spec.same: spec.workload.name}}, set: {{spec.workload: \"{{'name': 'a'}}\"}}, remove: [spec.same]}}{back}"
        ),
        &[
            ("[0].remove[0]", "overlap"),
            (
                "[0].set[spec.workload]",
                "spec.workload and spec.workload.name overlap",
            ),
        ],
    );
    check(
        &format!("[{{from: v1, to: v2, set: {{spec.port: 3}}}}{back}"),
        &[("[0].set[spec.port]", "must be a CEL expression in quotes")],
    );
    check(
        &format!("[{{from: v1, to: v2, set: [], move: a, remove: b}}{back}"),
        &[
            ("[0].move", "must map paths to paths"),
            ("[0].remove", "must be a list of paths"),
            ("[0].set", "must map paths to CEL expressions"),
        ],
    );
    check(
        &format!("[{{from: v1, to: v2, to: v3}}{back}"),
        &[
            ("", "already set"),
            ("[0]", "the way back is missing"),
            ("[1]", "the way back is missing"),
        ],
    );
}

#[test]
fn hostile_declarations_are_refused_in_good_time() {
    let long = format!("'{}'", "x".repeat(150_000));
    let deep = "(".repeat(5_000) + "1" + &")".repeat(5_000);
    for expression in [long, deep] {
        let annotation = format!(
            "[{{from: v1, to: v2, set: {{spec.host: {}}}}}, {{from: v2, to: v1}}]",
            Value::string(&expression)
        );
        assert_eq!(problems(&annotation).len(), 1);
    }
    let mut many = String::new();
    for _ in 0..10_000 {
        writeln!(many, "- {{from: v1, to: v2}}").unwrap();
    }
    assert!(problems(&many)[0].contains("Too many: 10000: must have at most 256 items"));
    let mut many = String::from("[{from: v2, to: v1}, {from: v1, to: v2, set: {");
    for index in 0..10_000 {
        write!(many, "spec.blob.a{index}: '1', ").unwrap();
    }
    many.push_str("}}]");
    assert!(problems(&many)[0].contains("Too many: 10000: must have at most 1024 items"));
    let mut wide = definition("[]");
    let versions = wide.at_mut(&["spec", "versions"]).unwrap();
    let versions = versions.as_array_mut().unwrap();
    for index in 4..100 {
        let mut version = versions[0].clone();
        let name = Value::string(format!("v{index}"));
        version.make_object().insert("name", name);
        versions.push(version);
    }
    assert_eq!(
        lines_of(&wide),
        ["spec.versions: Too many: 99: must have at most 64 items"]
    );
    let aliases = "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c]\ne: [*d, *d, *d, *d, *d, *d]";
    assert_eq!(problems(aliases).len(), 1);
}

#[test]
fn a_webhook_and_expressions_exclude_each_other() {
    let mut crd = definition(BOTH_WAYS);
    let webhook = yaml(
        "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.example/c'}}}",
    );
    crd.at_mut(&["spec"])
        .unwrap()
        .make_object()
        .insert("conversion", webhook);
    let found = lines_of(&crd);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("spec.conversion.strategy is Webhook"),
        "{found:?}"
    );
}

#[test]
fn what_was_accepted_once_is_not_judged_again_until_it_changes() {
    let stale =
        definition("[{from: v1, to: v2, set: {spec.host: self.nonsense}}, {from: v2, to: v1}]");
    assert_eq!(
        lines(&super::super::validate_update(&stale, &stale)),
        [""; 0]
    );
    let mut changed = stale.clone();
    let versions = changed.at_mut(&["spec", "versions"]).unwrap();
    versions.as_array_mut().unwrap()[2]
        .make_object()
        .insert("served", Value::Bool(false));
    assert_eq!(
        lines(&super::super::validate_update(&changed, &stale)).len(),
        1
    );
    // Nothing but the conversion fails.
    let error = converted(&stale, "{apiVersion: example.com/v1}", "v2").unwrap_err();
    assert!(error.contains("undefined field 'nonsense'"), "{error}");
    let error =
        converted(&definition("rubbish"), "{apiVersion: example.com/v1}", "v2").unwrap_err();
    assert!(error.contains("must be a list of pairs"), "{error}");
    let error =
        converted(&definition(BOTH_WAYS), "{apiVersion: example.com/v0}", "v2").unwrap_err();
    assert!(error.contains("declares no way"), "{error}");
}

#[test]
fn equal_declarations_are_compiled_once() {
    let cache = SchemaCache::new();
    let first = Conversions::of(&definition(BOTH_WAYS), &cache).unwrap();
    let mut same = definition(BOTH_WAYS);
    same.make_object()
        .insert("status", yaml("{storedVersions: [v1, v2]}"));
    assert!(Arc::ptr_eq(
        &first,
        &Conversions::of(&same, &cache).unwrap()
    ));
    let other = definition(&format!("{BOTH_WAYS}{AND_V3}"));
    assert!(!Arc::ptr_eq(
        &first,
        &Conversions::of(&other, &cache).unwrap()
    ));
    let other = with_storage(BOTH_WAYS, "v1");
    assert!(!Arc::ptr_eq(
        &first,
        &Conversions::of(&other, &cache).unwrap()
    ));
    let mut none = definition(BOTH_WAYS);
    none.at_mut(&["metadata"])
        .unwrap()
        .make_object()
        .remove("annotations");
    assert!(Conversions::of(&none, &cache).is_none());
}
