//! Tests against a whole API server in this process.

use bareboat_testing::TestServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::await_condition;
use std::time::Duration;
use yachts::crew::{Crew, CrewSpec};

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

fn crew(message: &str, times: u8) -> Crew {
    let message = message.to_owned();
    Crew::new("sample", CrewSpec { message, times })
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
    let objects: Api<Crew> = Api::default_namespaced(client.clone());
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    objects
        .create(&PostParams::default(), &crew("ahoy", 2))
        .await
        .expect("it is valid");
    let ready = |object: Option<&Crew>| {
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
    let objects: Api<Crew> = Api::default_namespaced(client);
    let refused = objects
        .create(&PostParams::default(), &crew("ahoy", 101))
        .await;
    let text = refused.expect_err("101 is too many").to_string();
    assert!(text.contains("spec.times"), "{text}");
}
