//! Tests with an API server in this process that asks the webhooks.

use bareboat_testing::TestServer;
use guard::serve::{Listener, routes};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use tokio::net::TcpListener;

/// Starts the webhooks; returns their address and CA as a client configuration without path.
async fn webhooks() -> (String, String) {
    let made =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("it can be made");
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let socket = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("there is a free port");
    let address = socket.local_addr().expect("it listens");
    let listener = Listener::new(socket, chain.as_bytes(), key.as_bytes()).expect("it is a pair");
    tokio::spawn(async { axum::serve(listener, routes()).await });
    (format!("https://{address}"), chain)
}

/// A configuration of this project's manifests, with the address of the test.
fn configuration(index: usize, url: &str, ca: &str) -> Value {
    let text = include_str!("../manifests/webhook.yaml");
    let document = text
        .split("---\n")
        .filter(|text| text.contains("{"))
        .nth(index);
    let mut value: Value =
        serde_json::from_str(document.expect("it is there")).expect("it is JSON");
    let hook = &mut value["webhooks"][0];
    let path = hook["clientConfig"]["service"]["path"]
        .as_str()
        .expect("it has a path")
        .to_owned();
    let ca = k8s_openapi::ByteString(ca.as_bytes().to_vec());
    hook["clientConfig"] = json!({"url": format!("{url}{path}"), "caBundle": ca});
    // The kind that every server has.
    hook["rules"][0]["apiGroups"] = json!([""]);
    hook["rules"][0]["apiVersions"] = json!(["v1"]);
    hook["rules"][0]["resources"] = json!(["configmaps"]);
    value
}

#[tokio::test]
async fn objects_are_changed_and_refused() {
    let (url, ca) = webhooks().await;
    let server = TestServer::start().await;
    let client = server.client();
    let post = PostParams::default();
    let mutating: MutatingWebhookConfiguration =
        serde_json::from_value(configuration(0, &url, &ca)).expect("it is one");
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(configuration(1, &url, &ca)).expect("it is one");
    Api::all(client.clone())
        .create(&post, &mutating)
        .await
        .expect("it is accepted");
    Api::all(client.clone())
        .create(&post, &validating)
        .await
        .expect("it is accepted");

    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let objects: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
    let made = objects
        .create(&post, &DynamicObject::new("first", &kind))
        .await
        .expect("it is allowed");
    assert_eq!(
        made.metadata.labels.unwrap_or_default()["reviewed-by"],
        "guard"
    );
    let refused = objects
        .create(&post, &DynamicObject::new("forbidden-one", &kind))
        .await;
    let text = refused.expect_err("it is refused").to_string();
    assert!(text.contains("must not begin with"), "{text}");
}

/// Container runtimes end a program with SIGTERM.
#[test]
fn the_program_ends_when_it_is_told_to() {
    let made =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("it can be made");
    let folder = std::env::temp_dir().join(format!("guard-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for its files");
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).expect("it is written");
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem())
        .expect("it is written");
    let mut program = Command::new(env!("CARGO_BIN_EXE_guard"))
        .args([
            "--bind",
            "127.0.0.1:0",
            "--tls-cert",
            "tls.crt",
            "--tls-key",
            "tls.key",
        ])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(program.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says something");
    assert!(line.starts_with("serving on https://"), "{line}");
    let told = Command::new("kill").arg(program.id().to_string()).status();
    assert!(told.expect("kill runs").success());
    assert!(program.wait().expect("it ends").success());
    std::fs::remove_dir_all(&folder).expect("its files are removed");
}
