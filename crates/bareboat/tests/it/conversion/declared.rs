//! Conversion rules in definitions; the examples are those of the documentation.

use crate::support::*;
use bareboat_testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/foos";
const V2: &str = "/apis/example.com/v2/namespaces/default/foos";
const ANNOTATION: &str = "bareboat.dev/conversion";

/// Returns the examples of the documentation: the definition, an object in v1, and the same object in v2.
fn examples() -> [Value; 3] {
    let text = include_str!("../../../../../docs/conversion.md");
    let mut blocks = text
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let mut next = || {
        let parsed = bareboat_wire::yaml::parse(blocks.next().unwrap().as_bytes()).unwrap();
        assert!(parsed.duplicates.is_empty(), "{:?}", parsed.duplicates);
        serde_json::from_slice(&parsed.value.to_json()).unwrap()
    };
    [next(), next(), next()]
}

fn definition() -> Value {
    let [definition, _, _] = examples();
    definition
}

async fn start() -> TestServer {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    server
}

fn v1(name: &str) -> Value {
    let [_, mut object, _] = examples();
    object["metadata"]["name"] = json!(name);
    object
}

fn v2(name: &str) -> Value {
    let [_, _, mut object] = examples();
    object["metadata"]["name"] = json!(name);
    object
}

#[tokio::test]
async fn the_examples_of_the_documentation_work() {
    let server = start().await;
    let made = server.post(V1, &v1("web")).await.expect(201).json();
    assert_eq!(made["apiVersion"], "example.com/v1");
    assert_eq!(made["spec"]["endpoint"], "localhost:8080");
    assert_eq!(made["spec"]["deploymentName"], "web");
    let shown = server.get(&format!("{V2}/web")).await.expect(200).json();
    assert_eq!(shown["apiVersion"], "example.com/v2");
    assert_eq!(shown["spec"], v2("web")["spec"]);
    assert_eq!(shown["metadata"]["uid"], made["metadata"]["uid"]);
    // It is stored as v2, whatever version the request used.
    let store = server.server().store().resource("example.com/foos");
    let entry = store.get("default/web").unwrap();
    assert!(
        entry
            .json()
            .starts_with(br#"{"apiVersion":"example.com/v2""#)
    );
}

#[tokio::test]
async fn every_verb_works_in_both_versions() {
    let server = start().await;
    server.post(V2, &v2("web")).await.expect(201);
    let at = format!("{V1}/web");
    let mut old = server.get(&at).await.expect(200).json();
    assert_eq!(
        old["spec"],
        json!({"deploymentName": "web", "replicas": 3, "endpoint": "localhost:8080", "tier": "standard"})
    );
    old["spec"]["endpoint"] = json!("there");
    let put = server.put(&at, &old).await.expect(200).json();
    assert_eq!(put["metadata"]["generation"], 2);
    let new = server.get(&format!("{V2}/web")).await.json();
    assert_eq!(
        (&new["spec"]["host"], &new["spec"]["port"]),
        (&json!("there"), &json!(80))
    );
    let same = server.put(&at, &put).await.expect(200).json();
    assert_eq!(
        version(&same),
        version(&put),
        "nothing changed, nothing is written"
    );

    let patch = json!({"spec": {"endpoint": null, "replicas": 5}});
    let patched = server.patch(&at, MERGE, &patch).await.expect(200).json();
    assert_eq!(
        patched["spec"],
        json!({"deploymentName": "web", "replicas": 5, "tier": "standard"})
    );
    let patch = json!([{"op": "replace", "path": "/spec/replicas", "value": 6}]);
    server.patch(&at, JSON_PATCH, &patch).await.expect(200);
    let new = server.get(&format!("{V2}/web")).await.json();
    // The whole version is written, so the default of v2 does not return as another value.
    assert_eq!(
        new["spec"],
        json!({"workload": {"name": "web", "replicas": 6}, "tier": "standard"})
    );

    // Schema and selectable fields are those of the requested version.
    let bad = json!({"spec": {"endpoint": "a:b:c"}});
    let (_, _, message) = server.patch(&at, MERGE, &bad).await.expect(422).status();
    assert!(
        message.contains("spec.endpoint in body should match"),
        "{message}"
    );
    let strict = server
        .post(&format!("{V1}?fieldValidation=Strict"), &{
            let mut object = v1("other");
            object["spec"]["host"] = json!("x");
            object
        })
        .await
        .expect(400);
    assert!(
        strict.text().contains("unknown field \\\"spec.host\\\""),
        "{}",
        strict.text()
    );

    let scale = server
        .get(&format!("{V1}/web/scale"))
        .await
        .expect(200)
        .json();
    assert_eq!(scale["spec"]["replicas"], 6);
    let patch = json!({"spec": {"replicas": 7}});
    server
        .patch(&format!("{V1}/web/scale"), MERGE, &patch)
        .await
        .expect(200);
    let scale = server
        .get(&format!("{V2}/web/scale"))
        .await
        .expect(200)
        .json();
    assert_eq!(scale["spec"]["replicas"], 7);
    let status = json!({"status": {"replicas": 2}});
    server
        .patch(&format!("{V1}/web/status"), MERGE, &status)
        .await
        .expect(200);
    let new = server.get(&format!("{V2}/web")).await.json();
    assert_eq!(new["status"]["replicas"], 2);
    server.delete(&at).await.expect(200);
    server.get(&format!("{V2}/web")).await.expect(404);
}

#[tokio::test]
async fn lists_and_selectors_use_the_requested_version() {
    let server = start().await;
    for (name, host) in [("a", "one"), ("b", "two"), ("c", "one")] {
        let mut object = v2(name);
        object["spec"]["host"] = json!(host);
        object["spec"]["workload"]["name"] = json!(name);
        server.post(V2, &object).await.expect(201);
    }
    let list = server.get(V1).await.expect(200).json();
    assert_eq!(list["apiVersion"], "example.com/v1");
    let endpoints: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(&item["spec"]["endpoint"]))
        .collect();
    assert_eq!(endpoints, ["one:8080", "two:8080", "one:8080"]);
    let names = async |path: &str| server.get(path).await.expect(200).names();
    assert_eq!(
        names(&format!("{V2}?fieldSelector=spec.host=one")).await,
        ["a", "c"]
    );
    assert_eq!(
        names(&format!("{V1}?fieldSelector=spec.deploymentName=b")).await,
        ["b"]
    );
    assert_eq!(
        names(&format!(
            "{V1}?fieldSelector=spec.deploymentName!=b&limit=1"
        ))
        .await,
        ["a"]
    );
    server
        .get(&format!("{V1}?fieldSelector=spec.host=one"))
        .await
        .expect(400);
    let deleted = server
        .delete(&format!("{V1}?fieldSelector=spec.deploymentName=a"))
        .await;
    assert_eq!(deleted.expect(200).names(), ["a"]);
    assert_eq!(names(V2).await, ["b", "c"]);
}

#[tokio::test]
async fn watches_show_the_requested_version_and_end_if_conversion_fails() {
    let server = start().await;
    server.post(V1, &v1("a")).await.expect(201);
    let mut old = server
        .watch(&format!(
            "{V1}?watch=1&fieldSelector=spec.deploymentName=web"
        ))
        .await;
    let mut new = server.watch(&format!("{V2}?watch=1")).await;
    let event = old.next().await.unwrap();
    assert_eq!(event["object"]["spec"]["endpoint"], "localhost:8080");
    let event = new.next().await.unwrap();
    assert_eq!(event["object"]["spec"]["host"], "localhost");
    let patch = json!({"spec": {"workload": {"name": "other"}}});
    server
        .patch(&format!("{V2}/a"), MERGE, &patch)
        .await
        .expect(200);
    // It no longer matches the selector of v1.
    assert_eq!(old.brief().await, "DELETED a");
    assert_eq!(new.brief().await, "MODIFIED a");
    server.delete(&format!("{V1}/a")).await.expect(200);
    assert_eq!(new.brief().await, "DELETED a");
}

#[tokio::test]
async fn appliers_of_different_versions_keep_their_fields() {
    let server = start().await;
    let apply = async |path: &str, manager: &str, object: &Value| {
        let url = format!("{path}/web?fieldManager={manager}");
        server.patch(&url, APPLY, object).await
    };
    apply(V1, "one", &v1("web")).await.expect(201);
    let tier = json!({
        "apiVersion": "example.com/v2", "kind": "Foo", "metadata": {"name": "web"},
        "spec": {"tier": "gold"},
    });
    let refused = apply(
        V2,
        "two",
        &json!({
            "apiVersion": "example.com/v2", "kind": "Foo", "metadata": {"name": "web"},
            "spec": {"workload": {"replicas": 9}},
        }),
    )
    .await
    .expect(409);
    assert!(
        refused
            .status()
            .2
            .contains("conflict with \"one\": .spec.replicas"),
        "{}",
        refused.text()
    );
    let both = apply(V2, "two", &tier).await.expect(200).json();
    assert_eq!(both["spec"]["tier"], "gold");
    assert_eq!(both["spec"]["host"], "localhost");
    let managers: Vec<(&str, &str)> = both["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (text(&entry["manager"]), text(&entry["apiVersion"])))
        .collect();
    assert_eq!(
        managers,
        [("one", "example.com/v1"), ("two", "example.com/v2")]
    );

    // Fields that the first manager no longer applies are removed; those of the other stay.
    let mut less = v1("web");
    less["spec"] = json!({"deploymentName": "web"});
    let left = apply(V1, "one", &less).await.expect(200).json();
    assert_eq!(
        left["spec"],
        json!({"deploymentName": "web", "replicas": 1, "tier": "gold"})
    );
}

#[tokio::test]
async fn a_failing_expression_affects_only_requests_that_need_it() {
    let server = TestServer::start().await;
    let mut definition = definition();
    let annotation = json!(
        r#"
- {from: v1, to: v2, set: {spec.host: "self.spec.endpoint.split(':')[7]"}}
- {from: v2, to: v1}
"#
    );
    definition["metadata"]["annotations"][ANNOTATION] = annotation;
    server.post(DEFINITIONS, &definition).await.expect(201);
    server.post(V2, &v2("fine")).await.expect(201);
    let failure = "conversion of example.com/v1, Kind=Foo default/web to example.com/v2 failed: metadata.annotations[bareboat.dev/conversion][0].set[spec.host] (self.spec.endpoint.split(':')[7]): ";
    let (_, reason, message) = server.post(V1, &v1("web")).await.expect(500).status();
    assert_eq!(reason, "");
    assert!(message.starts_with(failure), "{message}");
    assert_eq!(server.get(V1).await.expect(200).names(), ["fine"]);
    let (_, _, message) = server
        .patch(
            &format!("{V1}/fine"),
            MERGE,
            &json!({"spec": {"tier": "x"}}),
        )
        .await
        .expect(500)
        .status();
    assert!(
        message.contains(
            "no such key: endpoint; where a field can be absent, read it as in self.spec.?field"
        ),
        "{message}"
    );
    server
        .patch(
            &format!("{V2}/fine"),
            MERGE,
            &json!({"spec": {"tier": "x"}}),
        )
        .await
        .expect(200);
    server.get(MAPS).await.expect(200);

    // A watch that cannot convert an object reports an error and ends.
    let mut backwards = definition.clone();
    let ways = json!(
        "[{from: v1, to: v2}, {from: v2, to: v1, set: {spec.tier: \"self.spec.tier == 'bad' ? [0][1] : 'x'\"}}]"
    );
    backwards["metadata"]["annotations"][ANNOTATION] = ways;
    let at = format!("{DEFINITIONS}/foos.example.com");
    let refused = server.patch(&at, MERGE, &backwards).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    let ways = json!(
        "[{from: v1, to: v2}, {from: v2, to: v1, set: {spec.tier: \"self.spec.tier == 'bad' ? ['a'][1] : 'x'\"}}]"
    );
    backwards["metadata"]["annotations"][ANNOTATION] = ways;
    server.patch(&at, MERGE, &backwards).await.expect(200);
    let mut watch = server.watch(&format!("{V1}?watch=1")).await;
    assert_eq!(watch.brief().await, "ADDED fine");
    server
        .patch(
            &format!("{V2}/fine"),
            MERGE,
            &json!({"spec": {"tier": "bad"}}),
        )
        .await
        .expect(200);
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR", "{event}");
    assert!(
        text(&event["object"]["message"]).contains("set[spec.tier]"),
        "{event}"
    );
    assert_eq!(watch.brief().await, "END");
    server.get(V1).await.expect(500);
    server.get(&format!("{V1}/fine")).await.expect(500);
    server.delete(&format!("{V2}/fine")).await.expect(200);
    server.get(V1).await.expect(200);
}

#[tokio::test]
async fn a_changed_rule_applies_at_once_and_an_invalid_one_changes_nothing() {
    let server = start().await;
    server.post(V1, &v1("web")).await.expect(201);
    let shown = async || {
        server.get(&format!("{V1}/web")).await.expect(200).json()["spec"]["endpoint"].clone()
    };
    assert_eq!(shown().await, "localhost:8080");
    let at = format!("{DEFINITIONS}/foos.example.com");
    let change = |text: &str| json!({"metadata": {"annotations": {ANNOTATION: text}}});
    let text = "[{from: v1, to: v2}, {from: v2, to: v1, set: {spec.endpoint: self.spec.host}}]";
    server.patch(&at, MERGE, &change(text)).await.expect(200);
    assert_eq!(shown().await, "localhost");
    let bad =
        change("[{from: v1, to: v2}, {from: v2, to: v1, set: {spec.endpoint: self.spec.port}}]");
    let refused = server.patch(&at, MERGE, &bad).await.expect(422).json();
    assert_eq!(
        refused["details"]["causes"][0]["field"],
        "metadata.annotations[bareboat.dev/conversion][1].set[spec.endpoint]"
    );
    assert!(text_of(&refused).contains("the expression gives int, but spec.endpoint is of type string in v1; convert it, as in string(self.a)"));
    assert_eq!(shown().await, "localhost");
    server
        .patch(
            &at,
            MERGE,
            &json!({"metadata": {"annotations": {ANNOTATION: null}}}),
        )
        .await
        .expect(200);
    assert_eq!(
        shown().await,
        Value::Null,
        "without it only the apiVersion changes"
    );
}

fn text_of(status: &Value) -> String {
    text(&status["message"]).to_owned()
}
