//! Two servers on one log: what one of them acknowledged, the other knows.

mod addresses;
mod rights;

use bareboat::api::{Value, value};
use bareboat::controllers::{Client, Controllers, DefaultRoles, Options};
use bareboat::storage::faults::{Fault, Faulty};
use bareboat::storage::{Backend, MemoryBackend, Store, StoreOptions};
use bareboat::{ControlPlane as _, Server};
use bareboat_rig::plan;
use std::sync::Arc;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn server(backend: Arc<dyn Backend>) -> Client {
    let store = Store::open(backend, StoreOptions::default()).unwrap();
    let server = Server::builder().storage(store).control_plane().build();
    Client::new(server.unwrap())
}

async fn two() -> [Client; 2] {
    several().await
}

async fn several<const N: usize>() -> [Client; N] {
    let log = MemoryBackend::new().shared();
    let clients = [(); N].map(|()| server(Arc::new(log.clone())));
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
    let total = plan::count(20, 10_000) as usize;
    let limit = (total / 20).max(3);
    for n in 0..total {
        servers[n % 2]
            .create(MAPS, &map(&format!("m{n:05}")))
            .await
            .unwrap();
    }
    let mut pages = Vec::new();
    let (mut next, mut version) = (String::new(), String::new());
    for page in 0.. {
        let path = format!("{MAPS}?limit={limit}{next}");
        let list = servers[page % 2].get(&path).await.unwrap();
        pages.extend(states(list.value()));
        let shown = list.at(&["metadata", "resourceVersion"]);
        let shown = shown.and_then(|text| text.as_str()).unwrap().to_owned();
        match page {
            0 => version = shown,
            _ => assert_eq!(shown, version, "page {page}"),
        }
        // What is deleted, changed and created meanwhile is not part of the list.
        let other = &servers[(page + 1) % 2];
        let gone = format!("{MAPS}/m{:05}", total - 1 - page);
        other.delete(&gone, &value!({})).await.unwrap();
        let changed = format!("{MAPS}/m{:05}", total / 2);
        let patch = value!({"data": {"page": (page.to_string())}});
        other.merge(&changed, &patch).await.unwrap();
        let created = format!("m{:05}-{page}", total / 2);
        other.create(MAPS, &map(&created)).await.unwrap();
        let token = list.get("metadata").and_then(|meta| meta.get("continue"));
        match token
            .and_then(|token| token.as_str())
            .filter(|token| !token.is_empty())
        {
            Some(token) => next = format!("&continue={token}"),
            None => break,
        }
    }
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<String> = (0..total).map(|n| format!("m{n:05}")).collect();
    assert_eq!(names, expected);
    // It is the exact list of its version, whichever server is asked.
    for server in &servers {
        let exact = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
        let list = server.get(&exact).await.unwrap();
        assert_eq!(states(list.value()), pages);
    }
}

/// Returns the names and versions of the objects in a list.
fn states(list: &Value) -> Vec<(String, String)> {
    let items = list.get("items").and_then(|items| items.as_array());
    let field = |item: &Value, name: &str| {
        let found = item.at(&["metadata", name]);
        found.and_then(|text| text.as_str()).unwrap().to_owned()
    };
    let state = |item: &Value| (field(item, "name"), field(item, "resourceVersion"));
    items.unwrap().iter().map(state).collect()
}

/// A patch without a version never conflicts: the server decides it again until it is stored.
#[tokio::test(flavor = "multi_thread")]
async fn patches_of_one_object_by_many_clients_all_happen() {
    let servers: [Client; 3] = several().await;
    servers[0].create(MAPS, &map("hot")).await.unwrap();
    let (clients, rounds) = (64, plan::count(3, 100));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..clients {
        let server = servers[n % servers.len()].clone();
        tasks.spawn(async move {
            let path = format!("{MAPS}/hot");
            for round in 1..=rounds {
                let patch = value!({"data": {(format!("c{n}")): (round.to_string())}});
                let done = server.merge(&path, &patch).await;
                assert!(done.is_ok(), "client {n}: {done:?}");
            }
        });
    }
    tasks.join_all().await;
    for server in &servers {
        let hot = server.get(&format!("{MAPS}/hot")).await.unwrap();
        for n in 0..clients {
            let last = hot.at(&["data", &format!("c{n}")]);
            let last = last.and_then(|text| text.as_str());
            assert_eq!(last, Some(rounds.to_string().as_str()), "client {n}");
        }
    }
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

/// Servers with controllers, which enforce quotas.
async fn with_controllers() -> ([Client; 3], Vec<Controllers>) {
    let clients = several().await;
    let mut controllers = Vec::new();
    for client in &clients {
        let options = Options {
            default_roles: DefaultRoles::ControllersOnly,
            ..Options::default()
        };
        controllers.push(Controllers::start_with(client.server().clone(), options).await);
    }
    (clients, controllers)
}

/// Creates objects through all servers at the same time. Returns the codes of the refused ones.
async fn create_all(servers: &[Client], path: &str, objects: Vec<Value>) -> Vec<u16> {
    let mut tasks = tokio::task::JoinSet::new();
    for (n, object) in objects.into_iter().enumerate() {
        let (server, path) = (servers[n % servers.len()].clone(), path.to_owned());
        tasks.spawn(async move { server.create(&path, &object).await });
    }
    let all = tasks.join_all().await;
    all.into_iter()
        .filter_map(|created| created.err().map(|status| status.code))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_holds_on_all_servers_together() {
    let (servers, mut controllers) = with_controllers().await;
    for round in 0..5 {
        let space = format!("space-{round}");
        namespace(&servers[0], &space).await;
        let quota = value!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
            "spec": {"hard": {"count/secrets": "10"}},
        });
        let quotas = format!("/api/v1/namespaces/{space}/resourcequotas");
        servers[round % 2].create(&quotas, &quota).await.unwrap();
        let secret = |n: usize| {
            let name = format!("s{n}");
            value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": (name)}})
        };
        let path = format!("/api/v1/namespaces/{space}/secrets");
        let tries = plan::count(40, 300) as usize;
        let refused = create_all(&servers, &path, (0..tries).map(secret).collect()).await;
        assert_eq!(refused, vec![403; tries - 10], "round {round}");
    }
    for controllers in &mut controllers {
        controllers.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_port_is_given_once() {
    let servers = two().await;
    for round in 0..10 {
        let port = 30_100 + round;
        let service = |n: usize| {
            value!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": (format!("s{round}-{n}"))},
                "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
            })
        };
        let path = "/api/v1/namespaces/default/services";
        let refused = create_all(&servers, path, (0..8).map(service).collect()).await;
        assert_eq!(refused, vec![422; 7], "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_definitions_are_given_once() {
    let servers = two().await;
    for round in 0..5 {
        let group = format!("g{round}.example.com");
        let definition = |n: usize| {
            let plural = format!("boats{n}");
            value!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": (format!("{plural}.{group}"))},
                "spec": {
                    "group": (group.clone()),
                    "names": {"plural": (plural), "kind": "Boat"},
                    "scope": "Namespaced",
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                    }],
                },
            })
        };
        let refused = create_all(&servers, DEFINITIONS, (0..6).map(definition).collect()).await;
        assert_eq!(refused, Vec::<u16>::new());
        let mut accepted = 0;
        for n in 0..6 {
            let path = format!("{DEFINITIONS}/boats{n}.{group}");
            let definition = servers[n % 2].get(&path).await.unwrap();
            let conditions = definition.at(&["status", "conditions"]);
            let conditions = conditions.and_then(|all| all.as_array()).unwrap();
            let find = |kind: &str| {
                let is =
                    |one: &&Value| one.get("type").and_then(|text| text.as_str()) == Some(kind);
                conditions.iter().find(is)
            };
            let text = |kind: &str, name: &str| {
                let found = find(kind).and_then(|one| one.get(name));
                found.and_then(|text| text.as_str()).unwrap_or_default()
            };
            if text("NamesAccepted", "status") == "True" {
                accepted += 1;
                assert_eq!(text("Established", "status"), "True");
                continue;
            }
            // The others say why they are not served.
            assert_eq!(text("NamesAccepted", "status"), "False", "{definition:?}");
            assert_eq!(text("NamesAccepted", "reason"), "ListKindConflict");
            let message = text("NamesAccepted", "message");
            assert!(message.contains("is already in use"), "{message}");
            assert_eq!(text("Established", "status"), "False", "{definition:?}");
        }
        assert_eq!(accepted, 1, "round {round}");
    }
}
