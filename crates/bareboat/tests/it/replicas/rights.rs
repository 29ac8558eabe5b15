//! Rights that are taken away through one server, while another one writes.

use super::{MAPS, map, namespace};
use bareboat::api::{Value, value};
use bareboat::controllers::Client;
use bareboat::rbac::Rbac;
use bareboat::storage::faults::Faulty;
use bareboat::storage::{Backend, MemoryBackend, Store, StoreOptions};
use bareboat::{ControlPlane as _, Server};
use bareboat_rig::plan;
use bareboat_server::request::body::RequestBody;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

fn server(backend: Arc<dyn Backend>) -> Client {
    let store = Store::open(backend, StoreOptions::default()).unwrap();
    let builder = Server::builder().storage(store).control_plane();
    Client::new(Rbac::new().install(builder).build().unwrap())
}

/// Makes a namespace, and a role that may create config maps.
async fn prepare(server: &Client) {
    namespace(server, "default").await;
    let role = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "maps"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    server.create(roles, &role).await.unwrap();
}

/// Gives the role to alice.
fn binding() -> Value {
    value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    })
}

/// Creates a config map as alice; returns the code of the answer.
async fn create(server: &Client, name: &str) -> u16 {
    let request = http::Request::post(MAPS)
        .header("content-type", "application/json")
        .body(RequestBody::Memory(map(name).to_json().into()))
        .unwrap();
    let user = crate::rbac::user("alice", &[]);
    server.server().call(user, request).await.status().as_u16()
}

async fn revoke(server: &Client) {
    let path = format!("{BINDINGS}/maps");
    server.delete(&path, &value!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_follows_the_answer_that_took_the_right_away() {
    let log = MemoryBackend::new().shared();
    // Both learn late what the other one wrote: an answer without a look at the log would be wrong.
    let servers = [0, 1].map(|_| {
        let slow = Faulty::new(Arc::new(log.clone()));
        slow.set_lag(Duration::from_millis(3));
        server(Arc::new(slow))
    });
    prepare(&servers[0]).await;
    // Others write all the time, through both servers.
    let mut writers = tokio::task::JoinSet::new();
    for (at, server) in servers.iter().enumerate() {
        let server = server.clone();
        writers.spawn(async move {
            let name = format!("busy-{at}");
            server.create(MAPS, &map(&name)).await.unwrap();
            for n in 0u64.. {
                let patch = value!({"data": {"n": (n.to_string())}});
                let done = server.merge(&format!("{MAPS}/{name}"), &patch).await;
                assert!(done.is_ok(), "{done:?}");
                tokio::task::yield_now().await;
            }
        });
    }
    for n in 0..plan::count(100, 10_000) {
        let (here, there) = (&servers[n as usize % 2], &servers[(n as usize + 1) % 2]);
        here.create(BINDINGS, &binding()).await.unwrap();
        assert_eq!(create(there, &format!("m{n}")).await, 201, "round {n}");
        revoke(here).await;
        assert_eq!(create(there, &format!("x{n}")).await, 403, "round {n}");
        assert!(writers.try_join_next().is_none(), "a writer ended");
    }
    writers.abort_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_write_on_its_way_is_refused_when_its_right_is_taken_away() {
    let log = MemoryBackend::new().shared();
    let slow = Arc::new(Faulty::new(Arc::new(log.clone())));
    let (here, there) = (server(Arc::new(log)), server(slow.clone()));
    prepare(&here).await;
    for n in 0..plan::count(20, 1_000) {
        here.create(BINDINGS, &binding()).await.unwrap();
        let before = format!("m{n}");
        assert_eq!(create(&there, &before).await, 201, "round {n}");
        // The write is authorized and waits for the log.
        let hold = slow.hold();
        let (writer, name) = (there.clone(), format!("x{n}"));
        let late = tokio::spawn(async move { create(&writer, &name).await });
        let deadline = Instant::now() + Duration::from_secs(60);
        while slow.held() == 0 {
            assert!(
                Instant::now() < deadline,
                "the write does not reach the log"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        revoke(&here).await;
        drop(hold);
        assert_eq!(late.await.unwrap(), 403, "round {n}");
        let path = format!("{MAPS}/x{n}");
        assert_eq!(here.get(&path).await.unwrap_err().code, 404, "round {n}");
    }
}
