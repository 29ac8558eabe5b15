//! Two servers on one log: what one of them acknowledged, the other knows.

use bareboat::api::{Value, value};
use bareboat::controllers::Client;
use bareboat::storage::faults::{Fault, Faulty};
use bareboat::storage::{Backend, MemoryBackend, Store, StoreOptions};
use bareboat::{ControlPlane as _, Server};
use std::sync::Arc;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn server(backend: Arc<dyn Backend>) -> Client {
    let store = Store::open(backend, StoreOptions::default()).unwrap();
    let server = Server::builder().storage(store).control_plane().build();
    Client::new(server.unwrap())
}

async fn two() -> [Client; 2] {
    let log = MemoryBackend::new().shared();
    let clients = [0, 1].map(|_| server(Arc::new(log.clone())));
    namespace(&clients[0], "default").await;
    clients
}

async fn namespace(client: &Client, name: &str) {
    let namespace = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": (name)}});
    client
        .create("/api/v1/namespaces", &namespace)
        .await
        .unwrap();
}

fn map(name: &str) -> Value {
    value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": (name)}})
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_see_what_another_server_acknowledged() {
    let servers = two().await;
    for n in 0..100 {
        let (here, there) = (&servers[n % 2], &servers[(n + 1) % 2]);
        let name = format!("m{n}");
        let path = format!("{MAPS}/{name}");
        here.create(MAPS, &map(&name)).await.unwrap();
        there.get(&path).await.unwrap();
        let list = there.get(MAPS).await.unwrap();
        let len = list
            .get("items")
            .and_then(|items| items.as_array().map(|all| all.len()));
        assert_eq!(len, Some(1), "round {n}");
        // And a deletion: a negative answer that is right.
        there.delete(&path, &value!({})).await.unwrap();
        assert_eq!(here.get(&path).await.unwrap_err().code, 404);
        here.create(MAPS, &map(&name)).await.unwrap();
        here.delete(&path, &value!({})).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_namespace_or_kind_of_another_server_is_missing() {
    let servers = two().await;
    for n in 0..10 {
        let (here, there) = (&servers[n % 2], &servers[(n + 1) % 2]);
        let name = format!("n{n}");
        namespace(here, &name).await;
        let path = format!("/api/v1/namespaces/{name}/configmaps");
        there.create(&path, &map("a")).await.unwrap();
        let group = format!("g{n}.example.com");
        let definition = value!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": (format!("boats.{group}"))},
            "spec": {
                "group": (group.clone()),
                "names": {"plural": "boats", "kind": "Boat"},
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        here.create(DEFINITIONS, &definition).await.unwrap();
        let boat = value!({
            "apiVersion": (format!("{group}/v1")), "kind": "Boat", "metadata": {"name": "b"},
        });
        let boats = format!("/apis/{group}/v1/namespaces/{name}/boats");
        there.create(&boats, &boat).await.unwrap();
        here.get(&format!("{boats}/b")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_continue_on_another_server() {
    let servers = two().await;
    for n in 0..20 {
        servers[n % 2]
            .create(MAPS, &map(&format!("m{n:02}")))
            .await
            .unwrap();
    }
    let mut names = Vec::new();
    let mut next = String::new();
    for page in 0.. {
        let path = format!("{MAPS}?limit=3{next}");
        let list = servers[page % 2].get(&path).await.unwrap();
        let items = list
            .get("items")
            .and_then(|items| items.as_array())
            .unwrap();
        for item in items {
            let name = item.get("metadata").and_then(|meta| meta.get("name"));
            names.push(name.and_then(|name| name.as_str()).unwrap().to_owned());
        }
        // What changes meanwhile is not part of the list.
        let gone = format!("{MAPS}/m{:02}", 19 - page);
        servers[(page + 1) % 2]
            .delete(&gone, &value!({}))
            .await
            .unwrap();
        let token = list.get("metadata").and_then(|meta| meta.get("continue"));
        match token
            .and_then(|token| token.as_str())
            .filter(|token| !token.is_empty())
        {
            Some(token) => next = format!("&continue={token}"),
            None => break,
        }
    }
    let expected: Vec<String> = (0..20).map(|n| format!("m{n:02}")).collect();
    assert_eq!(names, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_log_that_is_away_is_refused() {
    let faulty = Arc::new(Faulty::new(Arc::new(MemoryBackend::new().shared())));
    let client = server(faulty.clone());
    namespace(&client, "default").await;
    faulty.set(Some(Fault::Unreachable));
    let refused = client.create(MAPS, &map("a")).await.unwrap_err();
    assert_eq!(refused.code, 503);
    assert!(
        refused.message.contains("nothing was written"),
        "{}",
        refused.message
    );
    client.get("/api/v1/namespaces/default").await.unwrap();
    faulty.set(None);
    client.create(MAPS, &map("a")).await.unwrap();
}
