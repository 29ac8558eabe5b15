//! A network that loses packets between a server and its database. Connections do not end; nothing arrives.

use crate::database::Database;
use crate::fleet::Fleet;
use crate::run::healthy;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, GetParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

const WRITERS: usize = 4;

/// Creates objects for three seconds. Returns those that were made, and how long the slowest took.
async fn write(maps: Api<ConfigMap>, writer: usize) -> (BTreeSet<String>, Duration) {
    let (start, mut made, mut slowest) = (Instant::now(), BTreeSet::new(), Duration::ZERO);
    while start.elapsed() < Duration::from_secs(3) {
        let name = format!("w{writer}-{}", made.len());
        let labels = json!({"metadata": {"name": name, "labels": {"by": "writer"}}});
        let map: ConfigMap = serde_json::from_value(labels).unwrap();
        let sent = Instant::now();
        match maps.create(&PostParams::default(), &map).await {
            Ok(_) => assert!(made.insert(name)),
            // It was refused before it was sent. A write that happened all the same would be a conflict the next time.
            Err(kube::Error::Api(status)) if status.code == 503 => {}
            Err(error) => panic!("{name}: {error}"),
        }
        slowest = slowest.max(sent.elapsed());
    }
    (made, slowest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_packets_lose_no_write_and_no_event() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let fleet = tokio::task::block_in_place(|| Fleet::fragile(&database, 2, &[]));
    let Some(link) = &fleet.replicas[0].link else {
        return;
    };
    let clients = fleet.clients().await;
    let maps = [0, 1].map(|at| Api::<ConfigMap>::namespaced(clients[at].clone(), "default"));
    let first = maps[0].create(&PostParams::default(), &map("m-0")).await;
    let version = first.unwrap().metadata.resource_version.unwrap();
    let watch = maps[0].watch(&WatchParams::default(), &version).await;
    let mut events = Box::pin(watch.unwrap());

    // Answers are lost in the middle of writes: those happen, and their server cannot know it for a while.
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(maps[0].clone(), writer)))
        .collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        link.set_mute(true);
        let muted = Instant::now();
        tokio::time::sleep(Duration::from_millis(700)).await;
        link.set_mute(false);
        println!("no answers for {:?}", muted.elapsed());
    }
    let (mut expected, mut slowest) = (BTreeSet::new(), Duration::ZERO);
    for writer in writers {
        let (written, took) = writer.await.unwrap();
        expected.extend(written);
        slowest = slowest.max(took);
    }
    println!("{} writes, the slowest took {slowest:?}", expected.len());
    assert!(slowest > Duration::from_millis(500), "nothing was lost");
    let ours = ListParams::default().labels("by=writer");
    let found = maps[1].list(&ours).await.unwrap().items.into_iter();
    let found: BTreeSet<String> = found.map(|map| map.metadata.name.unwrap()).collect();
    assert_eq!(found, expected);

    // All packets are lost: what could be out of date is refused, and the other server goes on.
    link.set_down(true);
    let refused = maps[0].get("m-0").await.unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}");
    };
    assert_eq!(status.code, 503, "{}", status.message);
    maps[0].get_with("m-0", &GetParams::any()).await.unwrap();
    for n in 1..4 {
        let made = map(&format!("m-{n}"));
        maps[1].create(&PostParams::default(), &made).await.unwrap();
    }
    link.set_down(false);
    let mut names = Vec::new();
    while names.len() < expected.len() + 3 {
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        match event.unwrap().unwrap().unwrap() {
            WatchEvent::Added(map) => names.push(map.metadata.name.unwrap()),
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    // The stream has every object once, and those of the other server at its end.
    let tail = names.split_off(expected.len());
    assert_eq!(tail, ["m-1", "m-2", "m-3"]);
    assert!(names.into_iter().collect::<BTreeSet<_>>() == expected);
    maps[0].get("m-3").await.unwrap();
    healthy(&database.url(database.port()));
}
