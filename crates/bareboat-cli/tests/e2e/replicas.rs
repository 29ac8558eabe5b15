//! Several servers on one database or one etcd: all of them write, and all of them see everything.

use crate::etcd::Member;
use crate::mariadb;
use crate::postgres::Cluster;
use crate::process::run;
use crate::server::{Home, bareboat};
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Makes the keys of several servers, in a directory `keys`.
pub(crate) fn shared_keys() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut command = bareboat(["init-shared"]);
    let made = run(command.arg(dir.path().join("keys")), "");
    assert!(made.status.success(), "{}", made.all());
    assert!(made.stdout.contains("Next"), "{}", made.all());
    dir
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_share_a_database() {
    let Some(cluster) = Cluster::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "PostgreSQL is missing"
        );
        return eprintln!("skipped: PostgreSQL is not installed");
    };
    let restart = || {
        cluster.kill();
        cluster.run(&[]);
    };
    share(&cluster.fresh(), &restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_share_an_etcd() {
    let Some(member) = Member::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "etcd is missing"
        );
        return eprintln!("skipped: etcd is not built");
    };
    let restart = || {
        member.kill();
        member.run(&[]);
    };
    share(&member.fresh(), &restart).await;
}

/// Runs three servers on the store at an address, kills one of them, and restarts the store.
async fn share(url: &str, restart: &dyn Fn()) {
    let keys = shared_keys();
    let home = |_| Home::with(&["--storage", url]).sharing(&keys.path().join("keys"));
    let homes: Vec<Home> = (0..3).map(home).collect();
    let mut servers: Vec<_> = homes.iter().map(|home| Some(home.serve())).collect();
    let mut maps = Vec::new();
    for home in &homes {
        maps.push(Api::<ConfigMap>::namespaced(home.client().await, "default"));
    }
    let start = maps[2].list(&ListParams::default()).await.unwrap();
    let version = start.metadata.resource_version.unwrap();
    let watching = maps[2].clone();
    let watched = tokio::spawn(async move {
        let mut names = Vec::new();
        let params = WatchParams::default().timeout(290);
        let mut events = Box::pin(watching.watch(&params, &version).await.unwrap());
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(map) = event
                && map.name_any().starts_with("m-")
            {
                names.push(map.name_any());
                if names.len() == 90 {
                    break;
                }
            }
        }
        names
    });
    // One of them is killed on the way.
    for n in 0..90 {
        if n == 45 {
            servers[1].take().unwrap().kill();
        }
        let at = match n % 3 {
            1 if n >= 45 => 0,
            at => at,
        };
        let name = format!("m-{n}");
        maps[at]
            .create(&PostParams::default(), &map(&name))
            .await
            .unwrap();
        // Read after write, on the next living server.
        let other = if at == 0 { 2 } else { 0 };
        maps[other].get(&name).await.unwrap();
    }
    let names = tokio::time::timeout(Duration::from_secs(60), watched)
        .await
        .unwrap()
        .unwrap();
    let expected: Vec<String> = (0..90).map(|n| format!("m-{n}")).collect();
    assert_eq!(
        names, expected,
        "the watcher of the third server saw all in order"
    );
    // The killed one comes back and knows all.
    servers[1] = Some(homes[1].serve());
    let again = Api::<ConfigMap>::namespaced(homes[1].client().await, "default");
    let list = again.list(&ListParams::default()).await.unwrap();
    let found: BTreeSet<String> = list.iter().map(|map| map.name_any()).collect();
    assert!(expected.iter().all(|name| found.contains(name)));
    again.delete("m-0", &DeleteParams::default()).await.unwrap();
    let gone = maps[0].get_opt("m-0").await.unwrap();
    assert!(gone.is_none());
    // The store goes away for a moment, and nothing has to be restarted.
    tokio::task::block_in_place(restart);
    maps[2]
        .create(&PostParams::default(), &map("after"))
        .await
        .unwrap();
    maps[0].get("after").await.unwrap();
    for server in servers.into_iter().flatten() {
        let (status, _) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
        assert!(status.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_a_mariadb() {
    let Some(cluster) = mariadb::Cluster::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "MariaDB is missing"
        );
        return eprintln!("skipped: MariaDB is not installed");
    };
    let url = cluster.fresh();
    let keys = shared_keys();
    let home = |_| Home::with(&["--storage", &url]).sharing(&keys.path().join("keys"));
    let homes: Vec<Home> = (0..2).map(home).collect();
    let mut servers: Vec<_> = homes.iter().map(|home| Some(home.serve())).collect();
    let mut maps = Vec::new();
    for home in &homes {
        maps.push(Api::<ConfigMap>::namespaced(home.client().await, "default"));
    }
    let start = maps[0].list(&ListParams::default()).await.unwrap();
    let version = start.metadata.resource_version.unwrap();
    let watching = maps[0].clone();
    let watched = tokio::spawn(async move {
        let params = WatchParams::default().timeout(290);
        let mut events = Box::pin(watching.watch(&params, &version).await.unwrap());
        let mut names = Vec::new();
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(map) = event
                && map.name_any().starts_with("m-")
            {
                names.push(map.name_any());
                if names.len() == 60 {
                    break;
                }
            }
        }
        names
    });
    // The database is killed on the way, and one of the servers.
    for n in 0..60 {
        if n == 20 {
            tokio::task::block_in_place(|| {
                cluster.kill();
                cluster.run(&[]);
            });
        }
        if n == 40 {
            servers[1].take().unwrap().kill();
        }
        let at = if n >= 40 { 0 } else { n % 2 };
        let name = format!("m-{n}");
        maps[at]
            .create(&PostParams::default(), &map(&name))
            .await
            .unwrap();
        // Read after write, on the other server.
        let other = if n >= 40 { 0 } else { 1 - at };
        maps[other].get(&name).await.unwrap();
    }
    let names = tokio::time::timeout(Duration::from_secs(120), watched);
    let expected: Vec<String> = (0..60).map(|n| format!("m-{n}")).collect();
    assert_eq!(names.await.unwrap().unwrap(), expected);
    // The killed one comes back and knows all.
    servers[1] = Some(homes[1].serve());
    let again = Api::<ConfigMap>::namespaced(homes[1].client().await, "default");
    let list = again.list(&ListParams::default()).await.unwrap();
    let found: BTreeSet<String> = list.iter().map(|map| map.name_any()).collect();
    assert!(expected.iter().all(|name| found.contains(name)));
    // What people see of it.
    let database = url.rsplit('/').next().unwrap();
    let database = database.split('?').next().unwrap();
    let live = format!(
        "SELECT count(*) FROM {database}.live WHERE resource = 'core/configmaps' AND name LIKE 'm-%'
        AND JSON_VALUE(object, '$.metadata.namespace') = 'default'"
    );
    assert_eq!(cluster.ask(&live).as_deref(), Some("60"));
    for server in servers.into_iter().flatten() {
        let (status, _) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
        assert!(status.success());
    }
}

/// Starts a server that must refuse; returns what it says.
fn refusal(home: &Home, flags: &[&str]) -> String {
    let mut command = bareboat(["serve", "--bind", "127.0.0.1:0"]);
    let output = run(command.arg("--data-dir").arg(home.data()).args(flags), "");
    assert_eq!(output.status.code(), Some(1), "{}", output.all());
    output.stderr
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_one_store_have_the_same_keys() {
    let Some(cluster) = Cluster::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "PostgreSQL is missing"
        );
        return eprintln!("skipped: PostgreSQL is not installed");
    };
    let url = cluster.fresh();
    let keys = shared_keys();
    let keys = keys.path().join("keys");
    let encryption = keys.join("encryption.yaml");
    let encryption = encryption.to_str().unwrap();
    let flags = [
        "--storage",
        &url,
        "--encryption-provider-config",
        encryption,
    ];
    let first = Home::with(&flags).sharing(&keys);
    let second = Home::with(&flags).sharing(&keys);
    let servers = [first.serve(), second.serve()];
    // A token of one is good at the other.
    let request = http::Request::builder()
        .method("POST")
        .uri("/api/v1/namespaces/default/serviceaccounts/default/token")
        .header("content-type", "application/json")
        .body(
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
                .to_string()
                .into_bytes(),
        )
        .unwrap();
    let client = first.client().await;
    let token = client.request::<serde_json::Value>(request);
    let token = token.await.unwrap()["status"]["token"].clone();
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "metadata": {}, "spec": {"token": token},
    });
    let request = http::Request::builder()
        .method("POST")
        .uri("/apis/authentication.k8s.io/v1/tokenreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .unwrap();
    let client = second.client().await;
    let reviewed = client.request::<serde_json::Value>(request);
    let reviewed = reviewed.await.unwrap();
    assert_eq!(reviewed["status"]["authenticated"], true, "{reviewed}");
    for server in servers {
        tokio::task::block_in_place(|| server.stop());
    }
    // Other keys, or none, are refused by name.
    let other = Home::new();
    let said = tokio::task::block_in_place(|| refusal(&other, &flags));
    assert!(
        said.contains("for ca ") && said.contains("init-shared"),
        "{said}"
    );
    let bare = Home::new().sharing(&keys);
    let said = tokio::task::block_in_place(|| refusal(&bare, &flags[..2]));
    assert!(said.contains("for encryption "), "{said}");
    // One server rotates its key: it knows the old one. The other learns the new one.
    let rotate = ["certificates", "rotate", "service-accounts", "--data-dir"];
    let rotated = run(bareboat(rotate).arg(first.data()), "");
    assert!(rotated.status.success(), "{}", rotated.all());
    let server = first.serve();
    let said = tokio::task::block_in_place(|| refusal(&second, &flags));
    assert!(said.contains("for service-accounts "), "{said}");
    let key = first.data().join("certificates/service-accounts.key");
    let accept = ["--service-account-key-file", key.to_str().unwrap()];
    let knowing = Home::with(&[&flags[..], &accept].concat()).sharing(&keys);
    let knowing = knowing.serve();
    tokio::task::block_in_place(|| knowing.stop());
    tokio::task::block_in_place(|| server.stop());
    // All others are gone.
    let taken = Home::with(&[&flags[..], &["--replace-identity"]].concat());
    let server = taken.serve();
    assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    let again = Home::with(&flags).sharing(&taken.data());
    again.serve();
}
