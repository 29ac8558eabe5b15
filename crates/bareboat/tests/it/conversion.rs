//! Kinds with several versions and a conversion webhook, correct or faulty.

mod broken;
mod converter;
mod declared;
mod migration;

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;
use converter::{Manners, TestConverter};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "peers.net.example.com";
const V1: &str = "/apis/net.example.com/v1/namespaces/default/peers";
const V2: &str = "/apis/net.example.com/v2/namespaces/default/peers";

/// Returns a definition: a peer has `hostPort` in v1, which is stored, and `host` and `port` in v2.
fn definition(client_config: Value) -> Value {
    let version = |name: &str, storage: bool, spec: Value| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}},
        })
    };
    let text = json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "net.example.com", "scope": "Namespaced",
            "names": {"plural": "peers", "kind": "Peer"},
            "versions": [
                version("v1", true, json!({"hostPort": text, "note": text})),
                version("v2", false, json!({"host": text, "port": text, "note": text})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": client_config, "conversionReviewVersions": ["v9", "v1", "v1beta1"],
            }},
        },
    })
}

fn v1(name: &str) -> Value {
    json!({
        "apiVersion": "net.example.com/v1", "kind": "Peer",
        "metadata": {"name": name, "labels": {"kept": "yes"}}, "spec": {"hostPort": "localhost:1"},
    })
}

fn v2(name: &str) -> Value {
    json!({
        "apiVersion": "net.example.com/v2", "kind": "Peer",
        "metadata": {"name": name}, "spec": {"host": "localhost", "port": "2"},
    })
}

async fn start(manners: Manners) -> (TestServer, TestConverter) {
    let server = TestServer::start().await;
    let converter = TestConverter::start(manners).await;
    let definition = definition(converter.by_url());
    server.post(DEFINITIONS, &definition).await.expect(201);
    (server, converter)
}

#[tokio::test]
async fn objects_are_written_and_read_in_either_version() {
    let (server, converter) = start(Manners::Honest).await;
    server.post(V1, &v1("a")).await.expect(201);
    assert_eq!(server.get(V1).await.expect(200).names(), ["a"]);
    assert_eq!(converter.calls().len(), 0, "nothing had to be converted");

    let made = server.post(V2, &v2("b")).await.expect(201).json();
    assert_eq!(made["apiVersion"], "net.example.com/v2");
    assert_eq!(made["spec"], json!({"host": "localhost", "port": "2"}));
    let stored = server.get(&format!("{V1}/b")).await.expect(200).json();
    assert_eq!(stored["spec"], json!({"hostPort": "localhost:2"}));
    assert_eq!(stored["metadata"]["uid"], made["metadata"]["uid"]);

    let at = format!("{V2}/a");
    let mut shown = server.get(&at).await.expect(200).json();
    assert_eq!(shown["spec"], json!({"host": "localhost", "port": "1"}));
    shown["spec"]["port"] = json!("3");
    let changed = server.put(&at, &shown).await.expect(200).json();
    assert_eq!(changed["spec"]["port"], "3");
    assert_eq!(changed["metadata"]["generation"], 2);
    let patch = json!({"spec": {"host": "there"}});
    let patched = server.patch(&at, MERGE, &patch).await.expect(200).json();
    assert_eq!(patched["spec"], json!({"host": "there", "port": "3"}));
    let stored = server.get(&format!("{V1}/a")).await.json();
    assert_eq!(stored["spec"]["hostPort"], "there:3");
    server.delete(&at).await.expect(200);
    server.get(&at).await.expect(404);

    for call in converter.calls() {
        assert_eq!(call["apiVersion"], "apiextensions.k8s.io/v1", "{call}");
        assert_eq!(call["kind"], "ConversionReview");
        let wanted = &call["request"]["desiredAPIVersion"];
        for object in call["request"]["objects"].as_array().unwrap() {
            assert_ne!(object["apiVersion"], *wanted);
        }
    }
    assert!(
        converter
            .paths()
            .iter()
            .all(|path| path == "/convert?timeout=30s")
    );
}

#[tokio::test]
async fn a_list_is_converted_in_one_call_and_only_once() {
    let (server, converter) = start(Manners::Honest).await;
    for name in ["a", "b", "c"] {
        server.post(V1, &v1(name)).await.expect(201);
    }
    for _ in 0..2 {
        let list = server.get(V2).await.expect(200).json();
        assert_eq!(list["apiVersion"], "net.example.com/v2");
        let items = list["items"].as_array().unwrap();
        let specs: Vec<&str> = items
            .iter()
            .map(|item| text(&item["spec"]["port"]))
            .collect();
        assert_eq!(specs, ["1", "1", "1"]);
    }
    let sizes: Vec<usize> = converter.sizes();
    assert_eq!(sizes, [3]);
    let selected = server.get(&format!("{V2}?labelSelector=converted")).await;
    assert_eq!(selected.expect(200).names(), ["a", "b", "c"]);
    let selected = server.get(&format!("{V1}?labelSelector=converted")).await;
    assert!(selected.expect(200).names().is_empty());
}

#[tokio::test]
async fn a_watch_shows_the_requested_version() {
    let (server, converter) = start(Manners::Honest).await;
    server.post(V1, &v1("a")).await.expect(201);
    let mut watch = server.watch(&format!("{V2}?watch=1")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(
        event["object"]["spec"],
        json!({"host": "localhost", "port": "1"})
    );
    server.post(V1, &v1("b")).await.expect(201);
    server.post(V2, &v2("c")).await.expect(201);
    assert_eq!(watch.brief().await, "ADDED b");
    let event = watch.next().await.unwrap();
    assert_eq!(event["object"]["apiVersion"], "net.example.com/v2");
    assert_eq!(event["object"]["spec"]["port"], "2");
    server.delete(&format!("{V1}/c")).await.expect(200);
    let event = watch.next().await.unwrap();
    assert_eq!(
        (text(&event["type"]), &event["object"]["spec"]["port"]),
        ("DELETED", &json!("2"))
    );

    converter.become_(Manners::Refusing("the moon is full"));
    server.post(V1, &v1("d")).await.expect(201);
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR", "{event}");
    assert!(
        text(&event["object"]["message"]).contains("the moon is full"),
        "{event}"
    );
    assert_eq!(watch.brief().await, "END");
}

#[tokio::test]
async fn appliers_of_different_versions_keep_their_fields() {
    let (server, _converter) = start(Manners::Honest).await;
    let apply = async |path: &str, manager: &str, object: &Value| {
        let url = format!("{path}/a?fieldManager={manager}");
        server.patch(&url, APPLY, object).await
    };
    let mut first = v1("a");
    first["metadata"] = json!({"name": "a"});
    apply(V1, "one", &first).await.expect(201);
    let second = json!({
        "apiVersion": "net.example.com/v2", "kind": "Peer", "metadata": {"name": "a"},
        "spec": {"note": "hello"},
    });
    let both = apply(V2, "two", &second).await.expect(200).json();
    assert_eq!(
        both["spec"],
        json!({"host": "localhost", "port": "1", "note": "hello"})
    );
    let mut contested = second.clone();
    contested["spec"]["host"] = json!("elsewhere");
    let refused = apply(V2, "two", &contested).await.expect(409);
    assert!(refused.status().2.contains("\"one\""), "{}", refused.text());
}

#[tokio::test]
async fn invalid_responses_of_a_converter_are_rejected() {
    let cases: [(Manners, &str); 9] = [
        (
            Manners::Renaming,
            "returned invalid converted object at index 0: must have the same name: a != other",
        ),
        (Manners::Dropping, "returned 0 objects, expected 1"),
        (
            Manners::OtherVersion,
            "returned invalid converted object at index 0: invalid groupVersion (expected net.example.com/v2, received net.example.com/v3)",
        ),
        (Manners::OtherUid, "failed: expected response.uid="),
        (
            Manners::BadLabel,
            "returned invalid metadata in object at index 0: metadata.labels: Invalid value: \"not a label\": ",
        ),
        (Manners::Refusing("no such thing"), "failed: no such thing"),
        (
            Manners::Answering(302),
            "the server responded with the status code 302 but did not return more information",
        ),
        (
            Manners::Answering(422),
            "failed: the server rejected our request due to an error in our request",
        ),
        (Manners::Babbling, "failed: the answer is no JSON"),
    ];
    let (server, converter) = start(Manners::Honest).await;
    server.post(V1, &v1("a")).await.expect(201);
    let at = format!("{V2}/a");
    for (manners, expected) in cases {
        converter.become_(manners.clone());
        for path in [at.as_str(), V2] {
            let (_, reason, message) = server.get(path).await.expect(500).status();
            assert_eq!(reason, "");
            let prefix = "conversion webhook for net.example.com/v1, Kind=Peer ";
            assert!(message.starts_with(prefix), "{message}");
            assert!(message.contains(expected), "{manners:?}: {message}");
        }
        server.get(&format!("{V1}/a")).await.expect(200);
    }
    converter.become_(Manners::Honest);
    let shown = server.get(&at).await.expect(200).json();
    // Fields that a converter must not change come from the stored object.
    assert_eq!(
        shown["metadata"]["labels"],
        json!({"kept": "yes", "converted": "yes"})
    );
    let (stored, shown) = (server.get(&format!("{V1}/a")).await.json(), shown);
    for member in [
        "uid",
        "resourceVersion",
        "finalizers",
        "creationTimestamp",
        "managedFields",
    ] {
        assert_eq!(
            stored["metadata"].get(member),
            shown["metadata"].get(member),
            "{member}"
        );
    }
}

#[tokio::test]
async fn a_hanging_converter_affects_only_requests_that_need_it() {
    let (server, _converter) = start(Manners::Hanging).await;
    server.post(V1, &v1("a")).await.expect(201);
    let path = format!("{V2}/a?timeout=500ms");
    let waiting = server.get(&path);
    let others = async {
        server.get(&format!("{V1}/a")).await.expect(200);
        server.get(V1).await.expect(200);
        server.post(MAPS, &config_map("a")).await.expect(201);
        server.delete(&format!("{V1}/a")).await.expect(200);
    };
    let (answer, ()) = tokio::join!(waiting, others);
    answer.expect(504);
}

#[tokio::test]
async fn the_certificate_of_a_converter_is_verified_against_the_bundle() {
    let server = TestServer::start().await;
    let (converter, stranger) = (
        TestConverter::start(Manners::Honest).await,
        TestConverter::start(Manners::Honest).await,
    );
    let mut config = converter.by_url();
    config["caBundle"] = stranger.by_url()["caBundle"].clone();
    server
        .post(DEFINITIONS, &definition(config))
        .await
        .expect(201);
    server.post(V1, &v1("a")).await.expect(201);
    let at = format!("{V2}/a");
    let (_, _, message) = server.get(&at).await.expect(500).status();
    assert!(
        message.starts_with(
            "conversion webhook for net.example.com/v1, Kind=Peer failed: Post \"https://localhost:"
        ),
        "{message}"
    );
    assert!(
        message.ends_with("/convert?timeout=30s\": x509: certificate signed by unknown authority (the bundle has another key of that name)"),
        "{message}"
    );
    assert!(converter.calls().is_empty());

    // The new bundle is used immediately.
    let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": converter.by_url()}}}});
    server
        .patch(&format!("{DEFINITIONS}/{NAME}"), MERGE, &patch)
        .await
        .expect(200);
    server.get(&at).await.expect(200);
}

#[tokio::test]
async fn a_converter_may_be_behind_a_service() {
    let services = "/api/v1/namespaces/default/services";
    let server = TestServer::start().await;
    let converter = TestConverter::start(Manners::Honest).await;
    let config = converter.by_service("default", "converter", 443);
    server
        .post(DEFINITIONS, &definition(config))
        .await
        .expect(201);
    server.post(V1, &v1("a")).await.expect(201);
    let at = format!("{V2}/a");
    let (_, _, message) = server.get(&at).await.expect(500).status();
    assert!(
        message.ends_with("service \"converter\" not found"),
        "{message}"
    );

    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "converter"},
        "spec": {"ports": [{"name": "https", "port": 443}], "clusterIP": "None"},
    });
    server.post(services, &service).await.expect(201);
    let (_, _, message) = server.get(&at).await.expect(500).status();
    assert!(
        message.ends_with("no endpoints available for service \"converter\""),
        "{message}"
    );

    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "converter-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "converter"}},
        "ports": [{"name": "https", "port": converter.port()}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    });
    // Validation rejects loopback endpoints, but this test can only listen there.
    let slice = serde_json::to_vec(&slice).unwrap();
    let slice = bareboat_wire::json::parse(&slice).unwrap().value;
    let store = server.server().store();
    let write = bareboat_storage::Write::create(
        &store.resource("discovery.k8s.io/endpointslices"),
        "default/converter-1",
        bareboat_wire::encode::persisted(&slice),
    );
    store.commit(write).await.unwrap();
    let shown = server.get(&at).await.expect(200).json();
    assert_eq!(shown["spec"]["port"], "1");
}

#[tokio::test]
async fn an_external_name_resolves_to_its_host() {
    let server = TestServer::start().await;
    let converter = TestConverter::start(Manners::Honest).await;
    let config = converter.by_service("default", "outside", converter.port());
    server
        .post(DEFINITIONS, &definition(config))
        .await
        .expect(201);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "outside"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    server
        .post("/api/v1/namespaces/default/services", &service)
        .await
        .expect(201);
    server.post(V1, &v1("a")).await.expect(201);
    server.get(&format!("{V2}/a")).await.expect(200);
}

#[tokio::test]
async fn everything_can_be_deleted_without_the_converter() {
    let (server, converter) = start(Manners::Honest).await;
    let owner = server.post(MAPS, &config_map("owner")).await;
    let owner = owner.expect(201).json();
    // Created in the other version, which its managed fields name.
    let mut owned = v2("owned");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    server.post(V2, &owned).await.expect(201);
    server.post(V2, &v2("leaving")).await.expect(201);
    server.post(V1, &v1("left")).await.expect(201);
    converter.become_(Manners::Answering(503));

    let mut watch = server.watch(&format!("{V1}?watch=1")).await;
    for name in ["leaving", "left", "owned"] {
        assert_eq!(watch.brief().await, format!("ADDED {name}"));
    }
    server.delete(&format!("{MAPS}/owner")).await.expect(200);
    assert_eq!(watch.brief().await, "DELETED owned");
    let foreground = json!({"propagationPolicy": "Foreground"});
    let leaving = format!("{V1}/leaving");
    server.delete_with(&leaving, &foreground).await.expect(200);
    assert_eq!(watch.brief().await, "MODIFIED leaving");
    assert_eq!(watch.brief().await, "DELETED leaving");

    // Objects stored in a former storage version are deleted as well.
    let at = format!("{DEFINITIONS}/{NAME}");
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    server.patch(&at, JSON_PATCH, &patch).await.expect(200);
    let path = format!("{DEFINITIONS}?watch=1&fieldSelector=metadata.name={NAME}");
    let mut watch = server.watch(&path).await;
    server.delete(&at).await.expect(200);
    while !watch.brief().await.starts_with("DELETED") {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_a_converter_hold_no_seats() {
    const SEATS: usize = 2;
    let server = TestServer::builder()
        .with(|builder| builder.max_in_flight(SEATS, SEATS).without_flow_control())
        .listening()
        .start()
        .await;
    let converter = TestConverter::start(Manners::Hanging).await;
    let definition = definition(converter.by_url());
    server.post(DEFINITIONS, &definition).await.expect(201);
    server.post(V1, &v1("a")).await.expect(201);
    let mut waiting = Vec::new();
    for number in 0..SEATS * 5 {
        let mut connection = Connection::http1(&server, As::Admin).await;
        waiting.push(tokio::spawn(async move {
            let path = format!("{V2}/a");
            match number % 3 {
                0 => connection.send("GET", &path, &[], "").await,
                1 => connection.send("GET", V2, &[], "").await,
                _ => {
                    let body = v2(&format!("b{number}")).to_string();
                    connection.send("POST", V2, &[], body).await
                }
            }
        }));
        while converter.calls().len() <= number {
            tokio::task::yield_now().await;
        }
    }
    // All seats are free for other requests.
    let mut connection = Connection::http1(&server, As::Admin).await;
    for number in 0..5 {
        connection.send("GET", V1, &[], "").await.expect(200);
        let body = v1(&format!("c{number}")).to_string();
        connection.send("POST", V1, &[], body).await.expect(201);
    }
    for one in waiting {
        assert!(!one.is_finished(), "the converter has not answered");
        one.abort();
    }
}
