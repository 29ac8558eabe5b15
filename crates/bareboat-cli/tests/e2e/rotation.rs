//! Encryption keys of a shared store are replaced while its servers run.

use crate::backups::Engines;
use crate::process::{PATIENCE, run};
use crate::server::{Home, bareboat};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes a configuration with keys for secrets, the first of which encrypts.
fn configure(path: &Path, keys: &[(&str, u8)]) {
    let key =
        |(name, byte): &(&str, u8)| json!({"name": name, "secret": STANDARD.encode([*byte; 32])});
    let keys: Vec<Value> = keys.iter().map(key).collect();
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"aesgcm": {"keys": keys}}]}],
    });
    // Replaced atomically, as operators should do.
    let new = path.with_extension("new");
    std::fs::write(&new, config.to_string()).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Repeats an action until it returns something.
async fn until<T>(what: &str, mut action: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(done) = tokio::task::block_in_place(&mut action) {
            return done;
        }
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Returns the fingerprints of encryption keys in a store.
fn fingerprints(store: &str) -> Option<Value> {
    let arguments = [
        "history",
        "identity.bareboat",
        "encryption",
        "--at",
        "0s",
        "-o",
        "json",
    ];
    let shown = run(bareboat(arguments).args(["--storage", store]), "");
    let list: Value = serde_json::from_str(&shown.stdout).ok()?;
    Some(list["items"][0]["fingerprints"].clone())
}

/// Returns whether a server has taken another configuration since it took the one with both keys.
async fn is_taken(home: &Home) -> bool {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = home.client().await.request_text(request).await.unwrap();
    let taken = text.lines().find(|line| {
        line.starts_with("apiserver_encryption_config_controller_automatic_reloads_total{")
            && line.contains("status=\"success\"")
    });
    let taken = taken.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    taken.unwrap_or_default() >= 2.0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_shared_store_is_replaced() {
    let engines = Engines::start();
    for store in engines.fresh() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("encryption.yaml");
        let path = config.to_str().unwrap();
        let home = Home::with(&[
            "--storage",
            &store,
            "--encryption-provider-config",
            path,
            "--retain-for",
            "1s",
        ]);
        configure(&config, &[("old", 1)]);
        let server = home.serve();
        let secrets: Api<Secret> = Api::namespaced(home.client().await, "default");
        let secret = json!({"metadata": {"name": "kept"}, "stringData": {"a": "b"}});
        let secret = serde_json::from_value(secret).unwrap();
        let made = secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
        let before = until("the key is noted", || fingerprints(&store)).await;
        configure(&config, &[("new", 2), ("old", 1)]);
        // The server takes the file within seconds.
        let said = until("values are encrypted again", || {
            let mut command = bareboat(["migrate", "--encryption", "--kubeconfig"]);
            let migrated = run(command.arg(home.kubeconfig()), "");
            assert!(migrated.status.success(), "{}", migrated.all());
            (!migrated.stdout.contains(" 0 written again")).then_some(migrated.stdout)
        })
        .await;
        assert!(said.contains("written again with the first keys"), "{said}");
        let read = secrets.get("kept").await.unwrap();
        assert_ne!(
            read.metadata.resource_version,
            made.metadata.resource_version
        );
        assert_eq!(read.data, made.data);
        let noted = || fingerprints(&store).filter(|noted| *noted != before);
        until("the new key is noted while the server runs", noted).await;
        // The history with old values is compacted soon after a write; afterwards the old key is not needed, and the
        // running server takes a file without it.
        let mut other = 0;
        let deadline = Instant::now() + PATIENCE;
        while !is_taken(&home).await {
            assert!(Instant::now() < deadline, "{store} still needs the old key");
            other += 1;
            let mut secret = secret.clone();
            secret.metadata.name = Some(format!("other-{other}"));
            secrets
                .create(&PostParams::default(), &secret)
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(1500)).await;
            // Another text of the same file, so that it is read again.
            configure(&config, &[("new", 2)]);
            let spaces = " ".repeat(other);
            let text = std::fs::read_to_string(&config).unwrap();
            std::fs::write(&config, text + &spaces).unwrap();
        }
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
        configure(&config, &[("new", 2)]);
        let server = home.serve();
        let secrets: Api<Secret> = Api::namespaced(home.client().await, "default");
        assert_eq!(
            secrets.get("kept").await.unwrap().data,
            made.data,
            "{store}"
        );
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    }
}
