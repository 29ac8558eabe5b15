//! Tests of kube-rs against a test server, in-process and over its socket.
#![allow(missing_docs, clippy::unwrap_used)]

use bareboat_testing::TestServer;
use futures_util::{StreamExt as _, TryStreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{CustomResource, CustomResourceExt as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "zoo.example.com", version = "v1", kind = "Animal", namespaced)]
struct AnimalSpec {
    legs: u32,
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": name, "labels": {"of": "tests"}}, "data": {"a": "b"},
    }))
    .unwrap()
}

/// Fails after a time limit instead of hanging.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(300), what).await;
    waited.expect("this should not take so long")
}

async fn both() -> [TestServer; 2] {
    [TestServer::start().await, TestServer::listening().await]
}

#[tokio::test]
async fn objects_are_created_read_patched_listed_and_deleted() {
    for server in both().await {
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
        let made = maps
            .create(&PostParams::default(), &config_map("a"))
            .await
            .unwrap();
        assert!(made.uid().is_some() && made.resource_version().is_some());
        let patch = Patch::Merge(serde_json::json!({"data": {"a": null, "c": "d"}}));
        let patched = maps
            .patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
        assert_eq!(patched.data.unwrap().into_iter().next().unwrap().0, "c");
        let list = maps
            .list(&ListParams::default().labels("of=tests"))
            .await
            .unwrap();
        assert_eq!(list.items.len(), 1);
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(maps.get_opt("a").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_watch_sees_every_change() {
    for server in both().await {
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
        let now = maps.list(&ListParams::default()).await.unwrap();
        let version = now.metadata.resource_version.unwrap();
        let events = maps.watch(&WatchParams::default(), &version).await.unwrap();
        pin_mut!(events);
        maps.create(&PostParams::default(), &config_map("a"))
            .await
            .unwrap();
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < 2 {
            match soon(events.try_next()).await.unwrap().unwrap() {
                WatchEvent::Added(map) => seen.push(format!("added {}", map.name_any())),
                WatchEvent::Deleted(map) => seen.push(format!("deleted {}", map.name_any())),
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert_eq!(seen, ["added a", "deleted a"]);
    }
}

#[tokio::test]
async fn a_derived_custom_resource_is_served_at_once_and_reflected() {
    for server in both().await {
        let client = server.client();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        definitions
            .create(&PostParams::default(), &Animal::crd())
            .await
            .unwrap();
        let animals: Api<Animal> = Api::default_namespaced(client.clone());
        let cat = Animal::new("cat", AnimalSpec { legs: 4 });
        animals.create(&PostParams::default(), &cat).await.unwrap();
        for config in [
            watcher::Config::default(),
            watcher::Config::default().streaming_lists(),
        ] {
            let (store, writer) = reflector::store();
            let stream = reflector(writer, watcher(animals.clone(), config))
                .applied_objects()
                .boxed();
            let reflecting = tokio::spawn(stream.for_each(|_| async {}));
            soon(store.wait_until_ready()).await.unwrap();
            let found = store.get(&reflector::ObjectRef::new("cat").within("default"));
            assert_eq!(found.map(|cat| cat.spec.legs), Some(4));
            reflecting.abort();
        }
    }
}

#[tokio::test]
async fn a_restart_keeps_data_address_and_clients() {
    for builder in [TestServer::builder(), TestServer::builder().sqlite()] {
        let mut server = builder.listening().start().await;
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
        let made = maps
            .create(&PostParams::default(), &config_map("a"))
            .await
            .unwrap();
        let address = server.address();
        server.restart().await;
        assert_eq!(server.address(), address);
        let found = soon(async {
            loop {
                // The client's pooled connection ended with the old server, so one failed attempt
                // is allowed.
                match maps.get("a").await {
                    Ok(found) => break found,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        assert_eq!(found.await.resource_version(), made.resource_version());
    }
}

#[tokio::test]
async fn a_user_without_rights_is_refused() {
    let server = TestServer::builder()
        .token("secret", "ann", &["dev"])
        .listening()
        .start()
        .await;
    let namespaces: Api<Namespace> = Api::all(server.client_as("bob", &[]));
    let refused = namespaces.delete("default", &DeleteParams::default()).await;
    match refused {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403),
        other => panic!("unexpected: {other:?}"),
    }
    let text = std::fs::read_to_string(server.kubeconfig_path()).unwrap();
    assert_eq!(text, server.kubeconfig());
}

#[tokio::test]
async fn a_bare_server_serves_only_its_own_kinds() {
    use bareboat::prelude::TypedKind;
    #[derive(Clone, Serialize, Deserialize, JsonSchema)]
    struct Post {
        spec: PostSpec,
    }
    #[derive(Clone, Serialize, Deserialize, JsonSchema)]
    struct PostSpec {
        title: String,
    }
    let server = TestServer::builder()
        .bare()
        .with(|builder| {
            let posts = TypedKind::new("blog.example.com", "posts", "Post").version::<Post>("v1");
            builder.kind(posts.build().unwrap())
        })
        .start()
        .await;
    let groups = server.client().list_api_groups().await.unwrap();
    let names: Vec<String> = groups.groups.into_iter().map(|group| group.name).collect();
    assert_eq!(names, ["blog.example.com"]);
}
