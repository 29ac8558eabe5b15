//! Several servers on one database or one etcd: all of them write, and all of them see everything.

use crate::etcd::Member;
use crate::mariadb;
use crate::postgres::Cluster;
use crate::server::Home;
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

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
    let homes: Vec<Home> = (0..3).map(|_| Home::with(&["--storage", url])).collect();
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
        let params = WatchParams::default().timeout(60);
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
    let homes: Vec<Home> = (0..2).map(|_| Home::with(&["--storage", &url])).collect();
    let mut servers: Vec<_> = homes.iter().map(|home| Some(home.serve())).collect();
    let mut maps = Vec::new();
    for home in &homes {
        maps.push(Api::<ConfigMap>::namespaced(home.client().await, "default"));
    }
    let start = maps[0].list(&ListParams::default()).await.unwrap();
    let version = start.metadata.resource_version.unwrap();
    let watching = maps[0].clone();
    let watched = tokio::spawn(async move {
        let params = WatchParams::default().timeout(120);
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
