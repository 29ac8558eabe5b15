//! Limits for definitions with expensive patterns, defaults, rules and columns.

use crate::support::*;
use bareboat_testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "crates.dock.example.com";
const V1: &str = "/apis/dock.example.com/v1/namespaces/default/crates";
const V2: &str = "/apis/dock.example.com/v2/namespaces/default/crates";

fn version(name: &str, storage: bool, spec: Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    })
}

fn definition(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "dock.example.com", "scope": "Namespaced",
            "names": {"plural": "crates", "kind": "Crate"}, "versions": versions,
        },
    })
}

fn object(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("dock.example.com/{version}"), "kind": "Crate",
        "metadata": {"name": name}, "spec": spec,
    })
}

async fn start(spec: Value) -> TestServer {
    let server = TestServer::start().await;
    let definition = definition(json!([version("v1", true, spec)]));
    server.post(DEFINITIONS, &definition).await.expect(201);
    server
}

/// Replaces the versions of the definition.
async fn change(server: &TestServer, versions: Value) {
    let path = format!("{DEFINITIONS}/{NAME}");
    let patch = json!({"spec": {"versions": versions}});
    server.patch(&path, MERGE, &patch).await.expect(200);
}

#[tokio::test]
async fn reads_apply_the_defaults_of_the_stored_version_only() {
    let spec = |a: Value, b: Value| json!({"type": "object", "properties": {"a": a, "b": b}});
    let text = || json!({"type": "string"});
    let with = |default: &str| json!({"type": "string", "default": default});
    let server = TestServer::start().await;
    let versions = |a: &str| {
        json!([
            version("v1", true, spec(with(a), text())),
            version("v2", false, spec(text(), with("two"))),
        ])
    };
    server
        .post(DEFINITIONS, &definition(versions("one")))
        .await
        .expect(201);
    server
        .post(V1, &object("v1", "first", json!({})))
        .await
        .expect(201);
    let made = server
        .post(V2, &object("v2", "second", json!({})))
        .await
        .expect(201)
        .json();
    assert_eq!(
        made["spec"],
        json!({"a": "one", "b": "two"}),
        "its own defaults, and those of the stored version"
    );
    let shown = async |path: &str, name: &str| {
        server
            .get(&format!("{path}/{name}"))
            .await
            .expect(200)
            .json()["spec"]
            .clone()
    };
    assert_eq!(shown(V1, "first").await, json!({"a": "one"}));
    assert_eq!(
        shown(V2, "first").await,
        json!({"a": "one"}),
        "not the default of the requested version"
    );
    assert_eq!(shown(V1, "second").await, json!({"a": "one", "b": "two"}));
    assert_eq!(
        server.get(V2).await.json()["items"][0]["spec"],
        json!({"a": "one"})
    );
    change(&server, versions("uno")).await;
    assert_eq!(
        shown(V2, "first").await,
        json!({"a": "one"}),
        "a default of the version it was written in is stored"
    );
    assert_eq!(
        shown(V1, "second").await,
        json!({"a": "uno", "b": "two"}),
        "one of another version is not"
    );
    assert_eq!(shown(V2, "second").await, json!({"a": "uno", "b": "two"}));
}

/// Returns a schema with nested lists of empty objects, whose defaults multiply.
fn multiplying(levels: usize) -> Value {
    let leaf = json!({"type": "object", "properties": {"text": {"type": "string", "default": "x".repeat(64)}}});
    (0..levels).fold(leaf, |inner, _| {
        let list = json!(vec![json!({}); 30]);
        json!({"type": "object", "properties": {"l": {"type": "array", "default": list, "items": inner}}})
    })
}

#[tokio::test]
async fn definitions_with_multiplying_defaults_are_rejected() {
    let server = TestServer::start().await;
    let mut spec = multiplying(6);
    spec["default"] = json!({});
    let refused = definition(json!([version("v1", true, spec)]));
    let refused = server.post(DEFINITIONS, &refused).await.expect(422).text();
    assert!(
        refused.contains("the defaults of its schema add more than 8388608 bytes to the object"),
        "{refused}"
    );
}

#[tokio::test]
async fn objects_with_multiplying_defaults_are_neither_written_nor_returned() {
    let server = start(
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {
            "type": "object", "properties": {"l": {"type": "array", "items": {"type": "object"}}},
        }}}}),
    )
    .await;
    let many = object("v1", "many", json!({"l": vec![json!({}); 2000]}));
    server.post(V1, &many).await.expect(201);
    server
        .post(V1, &object("v1", "few", json!({})))
        .await
        .expect(201);
    // Without a list no defaults apply, so the definition is accepted.
    let mut deep = multiplying(3);
    deep["properties"]["l"]
        .as_object_mut()
        .unwrap()
        .remove("default");
    change(&server, json!([version("v1", true, deep)])).await;
    let refused = server.get(&format!("{V1}/many")).await.expect(500).text();
    assert!(
        refused.contains("the defaults of its schema add more than"),
        "{refused}"
    );
    server.get(&format!("{V1}/few")).await.expect(200);
    let again = object("v1", "again", json!({"l": vec![json!({}); 2000]}));
    let refused = server.post(V1, &again).await.expect(413).json();
    assert_eq!(refused["reason"], "RequestEntityTooLarge", "{refused}");
    let patch = json!({"spec": {"l": vec![json!({}); 2000]}});
    server
        .patch(&format!("{V1}/few"), MERGE, &patch)
        .await
        .expect(413);
    server.delete(&format!("{V1}/many")).await.expect(200);
    server.get(V1).await.expect(200);
}

#[tokio::test]
async fn patterns_are_accepted_as_in_go() {
    let accepted = [
        r"^\ \-\_\/$",
        r"^(\p{L}){0,500}$",
        r"^[a-z]+(?i)z$",
        r"(?P<n>a)(?P<n>b)",
        r"\Qa.b\E",
        r"^a{,3}$",
    ];
    let properties: Value = (accepted.iter().enumerate())
        .map(|(n, pattern)| {
            (
                format!("p{n}"),
                json!({"type": "string", "pattern": pattern}),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let server = start(json!({"type": "object", "properties": properties})).await;
    let fits = json!({"p0": " -_/", "p1": "é".repeat(500), "p2": "abZ"});
    server
        .post(V1, &object("v1", "fits", fits))
        .await
        .expect(201);
    let fails = json!({"p1": "é".repeat(501)});
    let refused = server
        .post(V1, &object("v1", "fails", fails))
        .await
        .expect(422)
        .text();
    assert!(
        refused.contains(r"should match '^(\\p{L}){0,500}$'"),
        "{refused}"
    );
    for (pattern, why) in [
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?u)a", "invalid or unsupported Perl syntax: `(?u`"),
        ("(?R)", "invalid or unsupported Perl syntax: `(?R`"),
        (r"\p{Emoji}", r"invalid character class range: `\\p{Emoji}`"),
    ] {
        let spec =
            json!({"type": "object", "properties": {"p": {"type": "string", "pattern": pattern}}});
        let refused = definition(json!([version("v1", true, spec)]));
        let refused = server.post(DEFINITIONS, &refused).await.expect(422).text();
        assert!(refused.contains(why), "{pattern}: {refused}");
    }
}

#[tokio::test]
async fn many_large_patterns_are_accepted_or_rejected_without_compiling() {
    let spec = |count: usize, pattern: &str| {
        let properties: serde_json::Map<_, _> = (0..count)
            .map(|n| {
                (
                    format!("p{n}"),
                    json!({"type": "string", "pattern": format!("^{n}{pattern}$")}),
                )
            })
            .collect();
        json!({"type": "object", "properties": properties})
    };
    let server = start(spec(300, r"\pL{200}")).await;
    let fits = json!({"p7": format!("7{}", "é".repeat(200))});
    server
        .post(V1, &object("v1", "fits", fits))
        .await
        .expect(201);
    let huge = definition(json!([version("v1", true, spec(2000, "a{1000}"))]));
    let refused = server.post(DEFINITIONS, &huge).await.expect(422).text();
    assert!(
        refused.contains("the patterns of this definition are too large"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_rule_that_exceeds_the_cost_budget_fails() {
    let rule = "self.replace('a', self).replace('a', self) == ''";
    let server = start(json!({"type": "object", "properties": {"a": {
        "type": "string", "maxLength": 1024, "x-kubernetes-validations": [{"rule": rule}],
    }}}))
    .await;
    let refused = object("v1", "a", json!({"a": "a".repeat(1024)}));
    let refused = server.post(V1, &refused).await.expect(422).text();
    assert!(
        refused.contains("operation cancelled: actual cost limit exceeded"),
        "{refused}"
    );
    assert!(
        refused.contains(
            "no further validation rules will be run due to call cost exceeds limit for rule"
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn rules_below_a_value_of_another_type_cannot_be_compiled() {
    let backend = |kind: &str| {
        json!({"type": "object", "properties": {"backend": {"type": kind, "maxItems": 100, "items": {
            "type": "object", "properties": {"replicas": {"type": "integer"}}, "required": ["replicas"],
            "x-kubernetes-validations": [{"rule": "0 <= self.replicas && self.replicas <= 10"}],
        }}}})
    };
    let server = start(backend("array")).await;
    let good = json!({"backend": [{"replicas": 8}]});
    server
        .post(V1, &object("v1", "a", good.clone()))
        .await
        .expect(201);
    change(&server, json!([version("v1", true, backend("object"))])).await;
    let labels = json!({"metadata": {"labels": {"key": "value"}}});
    let refused = server
        .patch(&format!("{V1}/a"), MERGE, &labels)
        .await
        .expect(422)
        .text();
    assert!(refused.contains("spec.backend[0]: Invalid value: \\\"object\\\": rule compiler initialization error: failed to convert to declType for CEL validation rules"), "{refused}");
    let refused = server
        .post(V1, &object("v1", "b", good))
        .await
        .expect(422)
        .text();
    assert!(
        refused.contains("spec.backend in body must be of type object"),
        "{refused}"
    );
}

#[tokio::test]
async fn strict_findings_have_the_known_order() {
    let server = start(json!({"type": "object", "properties": {"a": {"type": "string"}, "embedded": {
        "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}},
    }}})).await;
    let strict = format!("{V1}?fieldValidation=Strict&dryRun=All");
    let yaml = "apiVersion: dock.example.com/v1\nkind: Crate\nmetadata:\n  name: yam\nspec:\n  a: x\n  a: y\n  zz: 1\n  zz: 2\n";
    let headers = [("content-type", "application/yaml")];
    let refused = server
        .send("POST", &strict, &headers, yaml)
        .await
        .expect(400)
        .json();
    assert_eq!(
        text(&refused["message"]),
        "Crate in version \"v1\" cannot be handled as a Crate: strict decoding error: yaml: unmarshal errors:\n  \
         line 7: key \"a\" already set in map\n  line 9: key \"zz\" already set in map, unknown field \"spec.zz\""
    );
    let embedded = json!({
        "zz": 1, "aa": 1,
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n", "bogus": 1}, "status": {}},
    });
    let mut body = object("v1", "e", embedded);
    body["metadata"]["odd"] = json!(1);
    let refused = server.post(&strict, &body).await.expect(400).json();
    let message = text(&refused["message"]);
    assert!(
        message.ends_with(
            "strict decoding error: unknown field \"metadata.odd\", unknown field \"spec.aa\", \
             unknown field \"spec.embedded.status\", unknown field \"spec.zz\", \
             unknown field \"spec.embedded.metadata.bogus\""
        ),
        "{message}"
    );
    server
        .post(V1, &object("v1", "p", json!({"a": "x"})))
        .await
        .expect(201);
    let patch = r#"{"spec": {"a": "y", "a": "z", "unknown": 1}}"#;
    let headers = [("content-type", MERGE)];
    let path = format!("{V1}/p?fieldValidation=Strict");
    let refused = server
        .send("PATCH", &path, &headers, patch)
        .await
        .expect(422)
        .text();
    // What is wrong in the patch itself comes before what is wrong in its result.
    let order =
        r#"strict decoding error: duplicate field \"spec.a\", unknown field \"spec.unknown\""#;
    assert!(refused.contains(order), "{refused}");
}

#[tokio::test]
async fn invalid_metadata_of_embedded_resources_is_rejected() {
    let server = start(json!({"type": "object", "properties": {"embedded": {
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    }}})).await;
    let refused = async |resource: Value| {
        let body = object("v1", "e", json!({"embedded": resource}));
        let refused = server.post(V1, &body).await.expect(400).json();
        text(&refused["message"]).to_owned()
    };
    let message = refused(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n", "namespace": 1}}),
    )
    .await;
    assert!(
        message.ends_with(
            "spec.embedded.metadata: Invalid value: {\"name\":\"n\",\"namespace\":1}: \
             json: cannot unmarshal number into Go struct field ObjectMeta.namespace of type string"
        ),
        "{message}"
    );
    let message = refused(json!({"apiVersion": "v1", "kind": 1})).await;
    assert!(
        message.ends_with("spec.embedded.kind: Invalid value: 1: must be a string"),
        "{message}"
    );
}

#[tokio::test]
async fn unknown_keywords_below_items_are_dropped_silently() {
    let server = TestServer::start().await;
    let strict = format!("{DEFINITIONS}?fieldValidation=Strict");
    let spec = |list: Value| json!({"type": "object", "properties": {"l": list}});
    let odd = json!({"type": "string", "bogus": 1});
    for list in [
        json!({"type": "array", "items": odd}),
        json!({"type": "object", "additionalProperties": odd}),
    ] {
        let body = definition(json!([version("v1", true, spec(list))]));
        let made = server
            .post(&format!("{strict}&dryRun=All"), &body)
            .await
            .expect(201)
            .text();
        assert!(!made.contains("bogus"), "{made}");
    }
    let body = definition(json!([version("v1", true, spec(odd))]));
    let refused = server.post(&strict, &body).await.expect(400).text();
    assert!(refused.contains("properties.l.bogus"), "{refused}");
}

#[tokio::test]
async fn the_cells_of_a_row_are_bounded() {
    let server = TestServer::start().await;
    let mut body = definition(json!([version(
        "v1",
        true,
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    )]));
    let columns: Vec<Value> = (0..200)
        .map(|n| json!({"name": format!("c{n}"), "type": "string", "jsonPath": ".spec"}))
        .collect();
    body["spec"]["versions"][0]["additionalPrinterColumns"] = json!(columns);
    server.post(DEFINITIONS, &body).await.expect(201);
    server
        .post(V1, &object("v1", "a", json!({"text": "x".repeat(100_000)})))
        .await
        .expect(201);
    let headers = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = server.send("GET", V1, &headers, "").await.expect(200);
    assert!(table.bytes.len() < 6 << 20, "{}", table.bytes.len());
    let table = table.json();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 201);
    assert!(cells[1].as_str().unwrap().len() > 100_000);
    assert!(cells[200].is_null());
}
