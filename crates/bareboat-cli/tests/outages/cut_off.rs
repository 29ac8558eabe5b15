//! A server that is cut off from its database: it says so, refuses what could be out of date, and recovers by itself.

use crate::database::Database;
use crate::fleet::Fleet;
use bareboat_rig::plan;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, GetParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use std::time::{Duration, Instant};

async fn is_ready(client: &kube::Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    client.request_text(request).await.is_ok()
}

async fn wait_for_ready(client: &kube::Client, ready: bool) {
    let start = Instant::now();
    while is_ready(client).await != ready {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "ready should be {ready}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_its_database_says_so_and_recovers() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let fleet = tokio::task::block_in_place(|| Fleet::start(&database, 2, &[]));
    let clients = fleet.clients().await;
    let maps = [0, 1].map(|at| Api::<ConfigMap>::namespaced(clients[at].clone(), "default"));
    let first = maps[0]
        .create(&PostParams::default(), &map("m-0"))
        .await
        .unwrap();
    let version = first.metadata.resource_version.unwrap();
    let mut events = Box::pin(
        maps[0]
            .watch(&WatchParams::default(), &version)
            .await
            .unwrap(),
    );
    // The server asks its database once more after this moment, so the ten seconds begin later.
    let start = Instant::now();
    maps[0].get("m-0").await.unwrap();
    fleet.replicas[0].proxy.set_silent(true);
    wait_for_ready(&clients[0], false).await;
    let after = start.elapsed();
    println!("not ready after {after:?}");
    let (least, most) = match plan::torture() {
        Some(_) => (9, 11),
        None => (8, 40),
    };
    assert!(after > Duration::from_secs(least), "{after:?}");
    assert!(after < Duration::from_secs(most), "{after:?}");
    // What could be out of date is refused; what may be is answered.
    let refused = maps[0].get("m-0").await.unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}");
    };
    assert_eq!(status.code, 503, "{}", status.message);
    assert!(
        status.message.contains("resourceVersion=0"),
        "{}",
        status.message
    );
    maps[0].get_with("m-0", &GetParams::any()).await.unwrap();
    for n in 1..6 {
        let made = map(&format!("m-{n}"));
        maps[1].create(&PostParams::default(), &made).await.unwrap();
    }
    fleet.replicas[0].proxy.set_silent(false);
    wait_for_ready(&clients[0], true).await;
    maps[0].get("m-5").await.unwrap();
    // The same connection of the watch goes on, without loss.
    let mut names = Vec::new();
    while names.len() < 5 {
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        match event.unwrap().unwrap().unwrap() {
            WatchEvent::Added(map) => names.push(map.metadata.name.unwrap()),
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["m-1", "m-2", "m-3", "m-4", "m-5"]);
}
