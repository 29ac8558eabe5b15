//! Tests against a whole API server in this process.

use bareboat_testing::TestServer;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::await_condition;
use std::time::Duration;
use yachts::yacht::{Yacht, YachtSpec};

/// A server with the operator.
async fn server() -> (TestServer, Client) {
    let server = TestServer::start().await;
    let client = server.client();
    yachts::install(&client)
        .await
        .expect("the definitions are accepted");
    tokio::spawn(yachts::run(client.clone()));
    (server, client)
}

fn yacht(message: &str, times: u8) -> Yacht {
    let message = message.to_owned();
    Yacht::new("sample", YachtSpec { message, times })
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, work)
        .await
        .expect("it happens within a minute")
}

#[tokio::test]
async fn an_object_gets_a_config_map_and_a_status() {
    let (_server, client) = server().await;
    let objects: Api<Yacht> = Api::default_namespaced(client.clone());
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    objects
        .create(&PostParams::default(), &yacht("ahoy", 2))
        .await
        .expect("it is valid");
    let ready = |object: Option<&Yacht>| {
        object
            .and_then(|object| object.status.as_ref())
            .is_some_and(|status| status.ready)
    };
    soon(await_condition(objects.clone(), "sample", ready))
        .await
        .expect("the watch goes on");
    let made = config_maps.get("sample").await.expect("it was made");
    assert_eq!(made.data.unwrap_or_default()["text"], "ahoy\nahoy");

    // It goes with its owner.
    objects
        .delete("sample", &DeleteParams::default())
        .await
        .expect("it is there");
    let gone = |object: Option<&ConfigMap>| object.is_none();
    soon(await_condition(config_maps, "sample", gone))
        .await
        .expect("the watch goes on");
}

#[tokio::test]
async fn an_object_that_breaks_the_rules_is_refused() {
    let (_server, client) = server().await;
    let objects: Api<Yacht> = Api::default_namespaced(client);
    let refused = objects
        .create(&PostParams::default(), &yacht("ahoy", 101))
        .await;
    let text = refused.expect_err("101 is too many").to_string();
    assert!(text.contains("spec.times"), "{text}");
}

#[test]
fn the_manifest_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/definition.yaml");
    let mut text = String::new();
    for definition in yachts::definitions() {
        let json = serde_json::to_string_pretty(&definition).expect("it can be written");
        text.push_str(&format!("---\n{json}\n"));
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).expect("it can be written");
    }
    let found = std::fs::read_to_string(path).expect("the manifest is there");
    let documents = |text: &str| -> Vec<CustomResourceDefinition> {
        let documents = text.split("---\n").filter(|text| !text.trim().is_empty());
        documents
            .map(|text| serde_json::from_str(text).expect("it is JSON"))
            .collect()
    };
    assert!(
        documents(&found) == documents(&text),
        "definition.yaml is old: run `make manifests`"
    );
}
