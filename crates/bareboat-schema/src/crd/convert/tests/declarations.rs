//! Tests of declarations: errors, and when expressions are compiled.

use super::*;

#[test]
fn errors_in_a_declaration_name_their_field() {
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
            ("[0]", "the reverse pair is missing"),
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
            ("", "no pair leads from v1 to the storage version v2"),
            ("", "no pair leads from v3 to the storage version v2"),
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
            "only labels and annotations of the metadata can be converted",
        ),
        (
            "apiVersion",
            "'a'",
            "the conversion sets apiVersion and kind itself",
        ),
        (
            "metadata.labels.a",
            "1",
            "the expression gives int, but metadata.labels.a is a string in v2; convert it, as in string(self.a)",
        ),
        ("metadata.labels", "{'a': 1}", "is a map of strings"),
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
            ("[0]", "the reverse pair is missing"),
            ("[1]", "the reverse pair is missing"),
        ],
    );
}

#[test]
fn hostile_declarations_are_refused_quickly() {
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
fn an_accepted_declaration_is_not_checked_again_until_it_changes() {
    let stale =
        definition("[{from: v1, to: v2, set: {spec.host: self.nonsense}}, {from: v2, to: v1}]");
    assert_eq!(
        lines(&super::super::super::validate_update(&stale, &stale)),
        [""; 0]
    );
    let mut changed = stale.clone();
    let versions = changed.at_mut(&["spec", "versions"]).unwrap();
    versions.as_array_mut().unwrap()[2]
        .make_object()
        .insert("served", Value::Bool(false));
    assert_eq!(
        lines(&super::super::super::validate_update(&changed, &stale)).len(),
        1
    );
    // Only the conversion fails.
    let error = converted(&stale, "{apiVersion: example.com/v1}", "v2").unwrap_err();
    assert!(error.contains("undefined field 'nonsense'"), "{error}");
    let error =
        converted(&definition("rubbish"), "{apiVersion: example.com/v1}", "v2").unwrap_err();
    assert!(error.contains("must be a list of pairs"), "{error}");
    let error =
        converted(&definition(BOTH_WAYS), "{apiVersion: example.com/v0}", "v2").unwrap_err();
    assert!(error.contains("declares no conversion"), "{error}");
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
