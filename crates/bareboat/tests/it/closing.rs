//! A dropped server releases its file.

use bareboat::api::{Value, value};
use bareboat::controllers::{Client, Controllers};
use bareboat::storage::StoreOptions;
use bareboat::{ControlPlane as _, Server, open_sqlite};
use std::time::{Duration, Instant};

fn definition() -> Value {
    value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/"},
            }},
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_dropped_server_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    for round in 0..2 {
        let begun = Instant::now();
        let store = loop {
            match open_sqlite(&file, StoreOptions::default()) {
                Ok(store) => break store,
                Err(error) => assert!(
                    round == 1 && begun.elapsed() < Duration::from_secs(300),
                    "still not closed: {error}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let server = Server::builder()
            .storage(store)
            .control_plane()
            .build()
            .unwrap();
        let controllers = Controllers::start(server.clone()).await;
        let client = Client::new(server);
        if round == 0 {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            client.create(path, &definition()).await.unwrap();
            let boat = value!({
                "apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ada"},
            });
            let boats = "/apis/example.com/v1/boats";
            client.create(boats, &boat).await.unwrap();
        } else {
            client.get("/apis/example.com/v1/boats/ada").await.unwrap();
        }
        drop(controllers);
    }
}
