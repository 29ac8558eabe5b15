//! Responses when the store cannot write: rejected, or outcome unknown.

use bareboat::api::{Value, value};
use bareboat::controllers::Client;
use bareboat::storage::faults::{Fault, Faulty};
use bareboat::storage::{MemoryBackend, Store, StoreOptions};
use bareboat::{ControlPlane as _, Server};
use std::sync::Arc;

fn map(name: &str) -> Value {
    value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": (name)}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_reports_rejection_or_unknown_outcome() {
    let backend = Arc::new(Faulty::new(Arc::new(MemoryBackend::new())));
    let store = Store::open(backend.clone(), StoreOptions::default()).unwrap();
    let server = Server::builder()
        .storage(store)
        .control_plane()
        .build()
        .unwrap();
    let client = Client::new(server);
    let namespace = value!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"},
    });
    client
        .create("/api/v1/namespaces", &namespace)
        .await
        .unwrap();
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    // After the first failure of the third kind no write is attempted.
    for (fault, code, words) in [
        (Fault::Full, 507, "no space is left"),
        (Fault::ReadOnly, 503, "nothing was written: the disk"),
        (Fault::Busy, 503, "nothing was written: another program"),
        (Fault::Failed, 500, "the outcome of this write is not known"),
        (Fault::Failed, 503, "nothing was written"),
    ] {
        backend.set(Some(fault));
        let status = client.create(MAPS, &map("a")).await.unwrap_err();
        assert_eq!(status.code, code, "{fault:?}: {}", status.message);
        assert!(status.message.contains(words), "{}", status.message);
        let read = client.get("/api/v1/namespaces/default").await;
        assert!(read.is_ok(), "reads go on");
        if fault != Fault::Failed {
            backend.set(None);
            let path = format!("{MAPS}/a");
            assert!(
                client.get(&path).await.is_err(),
                "{fault:?}: it was refused"
            );
        }
    }
}
