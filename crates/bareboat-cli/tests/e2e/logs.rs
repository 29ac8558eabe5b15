//! What must never be in a log, however much is logged: tokens, keys, and what secrets hold.

use crate::process::run;
use crate::server::Home;
use crate::tools;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::process::Command;

const TOKEN: &str = "t0ken-that-nobody-may-read";
const PASSWORD: &str = "passw0rd-that-nobody-may-read";
/// The password as it is on the wire.
const ENCODED: &str = "cGFzc3cwcmQtdGhhdC1ub2JvZHktbWF5LXJlYWQ";

#[tokio::test(flavor = "multi_thread")]
async fn tokens_keys_and_secrets_are_in_no_log() {
    let tokens = tempfile::tempdir().unwrap();
    let file = tokens.path().join("tokens.csv");
    std::fs::write(&file, format!("{TOKEN},ann,1,\"system:masters\"\n")).unwrap();
    let home = Home::with(&[
        "--log",
        "trace",
        "--token-file",
        file.to_str().expect("a path in UTF-8"),
    ]);
    let server = home.serve();
    let secrets: Api<Secret> = Api::namespaced(home.client().await, "default");
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "vault" }, "stringData": { "password": PASSWORD },
    }))
    .unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    secrets.list(&ListParams::default()).await.unwrap();
    // What is refused is shown to its sender, and to nobody else.
    let wrong = json!({ "data": { "password": { "deep": PASSWORD } } });
    let refused = secrets
        .patch("vault", &PatchParams::default(), &Patch::Merge(wrong))
        .await;
    assert!(refused.is_err());
    if let Some(kubectl) = tools::kubectl() {
        for (token, right) in [(TOKEN, true), ("another-t0ken-nobody-may-read", false)] {
            let output = run(
                Command::new(&kubectl)
                    .arg(format!("--server=https://{}", home.address()))
                    .arg(format!(
                        "--certificate-authority={}",
                        home.data().join("certificates/ca.crt").display()
                    ))
                    .args([
                        "--kubeconfig=/dev/null",
                        "get",
                        "secret",
                        "vault",
                        "-o=yaml",
                    ])
                    .arg(format!("--token={token}"))
                    .env("HOME", home.path()),
                "",
            );
            assert_eq!(output.status.success(), right, "{}", output.all());
            assert_eq!(output.stdout.contains(ENCODED), right);
        }
    }
    let greeting = server.greeting.clone();
    let (status, log) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert!(status.success());
    assert!(log.lines().count() > 20, "at trace there is a lot to read");
    let log = format!("{greeting}{log}");
    for secret in [TOKEN, "another-t0ken-nobody-may-read", PASSWORD, ENCODED] {
        let found = log.lines().find(|line| line.contains(secret));
        assert!(found.is_none(), "{secret} is logged: {found:?}");
    }
    for key in ["ca", "server", "admin"] {
        let path = home.data().join(format!("certificates/{key}.key"));
        let pem = std::fs::read_to_string(path).unwrap();
        for line in pem.lines().filter(|line| !line.starts_with("-----")) {
            assert!(!log.contains(line), "the key of {key} is logged");
        }
    }
    assert!(!log.contains("PRIVATE KEY"));
}

#[test]
fn keys_and_the_kubeconfig_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let _server = home.serve();
    for file in [
        "admin.kubeconfig",
        "certificates/ca.key",
        "certificates/server.key",
        "certificates/admin.key",
        "state.db",
        "state.db-wal",
    ] {
        let found = std::fs::metadata(home.data().join(file)).unwrap();
        let mode = found.permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
}
