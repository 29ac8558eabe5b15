//! A server that sleeps for longer than history is kept: it recovers by itself, and writes nothing into the past.

use crate::database::Database;
use crate::fleet::Fleet;
use crate::process::run;
use crate::run::healthy;
use crate::server::bareboat;
use bareboat_rig::plan;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn map(name: &str, n: u64) -> ConfigMap {
    let map = json!({"metadata": {"name": name}, "data": {"n": n.to_string()}});
    serde_json::from_value(map).unwrap()
}

/// Returns the oldest version from which watches go on.
fn floor(url: &str) -> u64 {
    let doctor = ["doctor", "--storage", url, "-o", "json"];
    let output = tokio::task::block_in_place(|| run(&mut bareboat(doctor), ""));
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    let floor = report["compactedResourceVersion"].as_str();
    floor
        .unwrap_or_else(|| panic!("{}", output.all()))
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_sleeps_longer_than_history_recovers() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let (retain, sleep) = match plan::torture() {
        Some(_) => ("10m", Duration::from_secs(15 * 60)),
        None => ("2s", Duration::from_secs(5)),
    };
    let flags = ["--retain-for", retain];
    let fleet = tokio::task::block_in_place(|| Fleet::start(&database, 2, &flags));
    let clients = fleet.clients().await;
    let maps = [0, 1].map(|at| Api::<ConfigMap>::namespaced(clients[at].clone(), "default"));
    let hot = maps[0].create(&PostParams::default(), &map("hot", 0)).await;
    let hot = hot.unwrap();
    let version = hot.metadata.resource_version.clone().unwrap();
    let watch = maps[0].watch(&WatchParams::default(), &version).await;
    let mut events = Box::pin(watch.unwrap());
    // Leases are written all the time, so the server has seen more than the version of its last write.
    let list = maps[0].list(&ListParams::default()).await.unwrap();
    let seen: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
    fleet.replicas[0].signal("STOP");
    let stopped = Instant::now();

    // Writes that wait for the server: a creation, and a change of a version that another server replaces.
    let creation = tokio::spawn({
        let maps = maps[0].clone();
        async move { maps.create(&PostParams::default(), &map("queued", 1)).await }
    });
    let change = tokio::spawn({
        let maps = maps[0].clone();
        let mut old = hot.clone();
        old.data = map("hot", 999_999).data;
        async move { maps.replace("hot", &PostParams::default(), &old).await }
    });
    let url = database.url(database.port());
    let (mut last, mut n) = (hot, 0);
    loop {
        n += 1;
        last.data = map("hot", n).data;
        last = maps[1]
            .replace("hot", &PostParams::default(), &last)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        // It may have seen a little more before it was stopped.
        if stopped.elapsed() >= sleep && floor(&url) > seen + 10 {
            break;
        }
        let most = sleep + Duration::from_secs(120);
        assert!(stopped.elapsed() < most, "history is not compacted");
    }
    fleet.replicas[0].signal("CONT");

    // The old version was replaced, so this change must not be there. A client may give up before it is answered.
    let changed = change.await.unwrap();
    assert!(changed.is_err(), "{changed:?}");
    if let Err(kube::Error::Api(status)) = &changed {
        assert!(matches!(status.code, 409 | 500..), "{status:?}");
    }
    let created = creation.await.unwrap();
    println!("after {:?}: {created:?}", stopped.elapsed());

    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let ready = http::Request::get("/readyz").body(Vec::new()).unwrap();
        if clients[0].request_text(ready).await.is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "it is not ready again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The watch ends with 410: its history is gone.
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        match next.expect("a watch hears nothing") {
            Some(Ok(WatchEvent::Error(status))) => {
                assert_eq!(status.code, 410, "{status:?}");
                break;
            }
            Some(Ok(WatchEvent::Bookmark(_))) => {}
            Some(Ok(event)) => panic!("an event after a gap: {event:?}"),
            // The client closed a connection that was silent for minutes.
            Some(Err(_)) | None => {
                let again = maps[0].watch(&WatchParams::default(), &version).await;
                let Ok(again) = again else { break };
                events = Box::pin(again);
            }
        }
    }
    // Both servers have the same objects, and the queued creation happened once if it was answered so.
    for maps in &maps {
        let found = maps.get("hot").await.unwrap();
        assert_eq!(
            found.metadata.resource_version,
            last.metadata.resource_version
        );
        assert_eq!(found.data, last.data);
        let queued = maps.get_opt("queued").await.unwrap();
        match &created {
            Ok(created) => assert_eq!(queued.unwrap().metadata.uid, created.metadata.uid),
            Err(kube::Error::Api(status)) if status.code != 500 => {
                assert!(queued.is_none(), "{status:?}");
            }
            Err(_) => {}
        }
    }
    maps[0]
        .create(&PostParams::default(), &map("after", 1))
        .await
        .unwrap();
    maps[1].get("after").await.unwrap();
    healthy(&url);
}
