//! Large requests: other clients get responses meanwhile, and work stops when its client disconnects.

mod ended;

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::storage::{StoreOptions, Write};
use bareboat_testing::TestServer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of listed objects; the size of each follows.
const OBJECTS: usize = 200;
const SIZE: usize = 16 * 1024;
/// How many pulses must be answered during one large request. A blocked worker answers none, or one or two.
const PULSES: usize = 8;
/// How often the large request is sent at most. On a busy machine it may be over before the worker gets a processor.
const TRIES: usize = 50;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a server with many objects.
async fn filled() -> Arc<TestServer> {
    filled_with(SIZE).await
}

/// Returns a server with many objects of a size.
async fn filled_with(size: usize) -> Arc<TestServer> {
    // Without the cache of encodings, which would make the second list cheap.
    let options = StoreOptions {
        variant_bytes: 0,
        ..StoreOptions::default()
    };
    let server = TestServer::builder().without_controllers();
    let server = server.store_options(options).start().await;
    let store = server.server().store();
    let maps = store.resource("core/configmaps");
    for number in 0..OBJECTS {
        let name = format!("large-{number:05}");
        let lines: Vec<String> = (0..size / 32).map(|line| format!("{line:031}")).collect();
        // In stored order: type first, then metadata.
        let object = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata},"data":{data}}}"#,
            metadata = json!({"name": name, "namespace": "default", "uid": name}),
            data = json!({"lines": lines.join("\n")}),
        );
        let write = Write::create(&maps, format!("default/{name}"), object.into());
        store.commit(write).await.unwrap();
    }
    let listed = server.get(&format!("{MAPS}?limit=1")).await.expect(200);
    assert_eq!(listed.json()["metadata"]["remainingItemCount"], OBJECTS - 1);
    Arc::new(server)
}

/// Repeats a large request until enough pulses of a second client were answered during one of them.
async fn others_go_on<F: Future<Output = ()> + Send + 'static>(
    server: &Arc<TestServer>,
    what: &str,
    large: impl Fn(Arc<TestServer>) -> F,
) {
    let (under_way, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let pulse = tokio::spawn({
        let (server, under_way, answered) = (server.clone(), under_way.clone(), answered.clone());
        async move {
            loop {
                let before = under_way.load(Ordering::SeqCst);
                server.get("/api/v1/namespaces/default").await.expect(200);
                if before && under_way.load(Ordering::SeqCst) {
                    answered.fetch_add(1, Ordering::SeqCst);
                }
                tokio::task::yield_now().await;
            }
        }
    });
    let mut most = 0;
    for _ in 0..TRIES {
        answered.store(0, Ordering::SeqCst);
        let (work, flag) = (large(server.clone()), under_way.clone());
        // Both are tasks of the only worker.
        let working = tokio::spawn(async move {
            flag.store(true, Ordering::SeqCst);
            work.await;
            flag.store(false, Ordering::SeqCst);
        });
        soon(working).await.unwrap();
        most = most.max(answered.load(Ordering::SeqCst));
        if most >= PULSES {
            break;
        }
    }
    pulse.abort();
    assert!(
        most >= PULSES,
        "{what}: at most {most} pulses were answered during one request"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_a_large_list_is_built() {
    let server = filled().await;
    let metadata =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let forms = [
        ("a table", "", TABLE),
        ("a table with objects", "includeObject=Object", TABLE),
        ("metadata in protobuf", "", metadata),
        ("YAML", "", "application/yaml"),
        ("indented JSON", "pretty=true", "application/json"),
        ("protobuf", "", PROTOBUF),
    ];
    for (what, query, accept) in forms {
        others_go_on(&server, what, |server| async move {
            let list = server
                .get_as(&format!("{MAPS}?{query}"), accept)
                .await
                .expect(200);
            assert!(list.bytes.len() > OBJECTS * 32);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_a_large_response_is_compressed() {
    let server = filled().await;
    others_go_on(&server, "gzip", |server| async move {
        let headers = [("accept-encoding", "gzip")];
        let list = server.send("GET", MAPS, &headers, "").await.expect(200);
        assert_eq!(list.header("content-encoding"), "gzip");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_a_watch_sends_the_initial_state() {
    // The rows of one frame are made at once, and are large work only if that takes more than a moment.
    let server = filled_with(8 * SIZE).await;
    let watch =
        "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    others_go_on(&server, "tables", |server| async move {
        let mut watch = server.watch_as(&format!("{MAPS}?{watch}"), TABLE).await;
        while let Some(event) = watch.next().await {
            if event["type"] == "BOOKMARK" {
                return;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_a_collection_is_deleted() {
    let server = filled().await;
    others_go_on(&server, "deletecollection", |server| async move {
        server
            .delete(&format!("{MAPS}?dryRun=All"))
            .await
            .expect(200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_a_large_object_is_written() {
    let server = filled().await;
    let data: serde_json::Map<String, Value> = (0..6_000)
        .map(|number| (format!("key-{number}"), json!("value")))
        .collect();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let yaml = serde_json::to_string_pretty(&object).unwrap();
    for (what, media) in [("JSON", "application/json"), ("YAML", "application/yaml")] {
        others_go_on(&server, what, |server| {
            let body = yaml.clone();
            async move {
                let headers = [("content-type", media)];
                let path = format!("{MAPS}?dryRun=All");
                server.send("POST", &path, &headers, body).await.expect(201);
            }
        })
        .await;
    }
}

/// Returns the definition of a kind with small objects that are expensive to validate.
fn costly(plural: &str) -> Value {
    let rule = "self.all(x, self.all(y, x == y || x < y || x > y))";
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.stalls.example.com")},
        "spec": {
            "group": "stalls.example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Costly"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"numbers": {
                    "type": "array", "maxItems": 300, "items": {"type": "integer"},
                    "x-kubernetes-validations": [{"rule": rule}],
                }},
            }}}],
        },
    })
}

/// Returns an object of that kind.
fn costly_object(name: &str) -> Value {
    let numbers: Vec<usize> = (0..250).collect();
    json!({
        "apiVersion": "stalls.example.com/v1", "kind": "Costly",
        "metadata": {"name": name}, "numbers": numbers,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_rules_are_evaluated() {
    let server = TestServer::builder().without_controllers().start().await;
    server
        .post(DEFINITIONS, &costly("things"))
        .await
        .expect(201);
    let server = Arc::new(server);
    others_go_on(&server, "rules", |server| async move {
        let path = "/apis/stalls.example.com/v1/namespaces/default/things?dryRun=All";
        server.post(path, &costly_object("a")).await.expect(201);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_a_definition_is_validated() {
    let server = TestServer::builder().without_controllers().start().await;
    let mut definition = costly("things");
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let members = definition
        .pointer_mut(schema)
        .unwrap()
        .as_object_mut()
        .unwrap();
    for number in 0..100 {
        let rules = json!([{"rule": "self.size() < 10 && self.startsWith('a') || self == 'b'"}]);
        let member = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": rules});
        members.insert(format!("m{number}"), member);
    }
    let definition = Arc::new(definition);
    others_go_on(&Arc::new(server), "a definition", |server| {
        let definition = definition.clone();
        async move {
            let path = format!("{DEFINITIONS}?dryRun=All");
            server.post(&path, &definition).await.expect(201);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_clients_are_served_while_documents_are_built() {
    let server = Arc::new(TestServer::builder().without_controllers().start().await);
    // Documents are cached, so only the first build takes long.
    others_go_on(&server, "OpenAPI", |server| async move {
        server.get("/openapi/v2").await.expect(200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_streams_of_a_connection_continue() {
    let server = TestServer::builder()
        .without_controllers()
        .listening()
        .start()
        .await;
    server
        .post(DEFINITIONS, &costly("things"))
        .await
        .expect(201);
    let mut pulse = Connection::http2(&server, As::Admin).await;
    let Connection::Two(sender) = &pulse else {
        unreachable!("it was just made");
    };
    let mut large = Connection::Two(sender.clone());
    let mut answered = 0;
    for _ in 0..TRIES {
        let body = costly_object("a").to_string();
        let path = "/apis/stalls.example.com/v1/namespaces/default/things?dryRun=All";
        let mut posting = std::pin::pin!(large.send("POST", path, &[], body));
        loop {
            let get = std::pin::pin!(pulse.send("GET", "/api/v1/namespaces/default", &[], ""));
            match futures_util::future::select(posting.as_mut(), get).await {
                futures_util::future::Either::Left((posted, get)) => {
                    posted.expect(201);
                    get.await.expect(200);
                    break;
                }
                futures_util::future::Either::Right((got, _)) => {
                    got.expect(200);
                    answered += 1;
                }
            }
        }
        if answered >= PULSES {
            return;
        }
    }
    panic!("only {answered} pulses were answered");
}
