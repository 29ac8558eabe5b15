//! Servers that share a shelf: each syncs some members, all of them answer, and nothing ends when one is killed.

use super::replicas::{Group, MAPS, ask, watch};
use super::{TYPES, kubeconfig, pedia_cluster, places};
use crate::kubectl::Kubectl;
use crate::process::PATIENCE;
use crate::replicas::shared_keys;
use crate::server::Home;
use crate::{mariadb, postgres};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn missing(database: &str) {
    let required = std::env::var("CI").as_deref() == Ok("true");
    assert!(!required, "{database} is missing");
    eprintln!("skipped: {database} is not installed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_of_one_shelf_go_on_when_one_is_killed() {
    match postgres::Cluster::start(&[]) {
        Some(cluster) => one_is_killed(&cluster.fresh(), 3).await,
        None => missing("PostgreSQL"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_of_one_shelf_in_mariadb_go_on_when_one_is_killed() {
    match mariadb::Cluster::start(&[]) {
        Some(cluster) => one_is_killed(&cluster.fresh(), 2).await,
        None => missing("MariaDB"),
    }
}

async fn one_is_killed(url: &str, hubs: usize) {
    let keys = shared_keys();
    let start = || {
        let mut flags = vec!["--storage", url, "--fleet", "--fleet-probe-interval", "1s"];
        flags.extend(["--fleet-shelf", "shared"]);
        Kubectl::over(Home::with(&flags).sharing(&keys.path().join("keys")))
    };
    let Some(member) = Kubectl::start() else {
        return eprintln!("skipped: kubectl is not built");
    };
    let mut group = Group {
        hubs: (0..hubs).map(|_| start()).collect(),
        clients: Vec::new(),
        member,
    };
    for index in 0..hubs {
        group.clients.push(group.hub(index).home.client().await);
    }
    // One server under three names: each hub gets one at least.
    let names = ["c1", "c2", "c3"];
    tokio::task::block_in_place(|| {
        group.member.gives("create configmap a --from-literal a=1");
        group.member.gives("create configmap b --from-literal a=1");
        let spec = json!({
            "kubeconfig": kubeconfig(&group.member, None),
            "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
        });
        for name in names {
            let cluster = pedia_cluster(name, spec.clone(), json!({}));
            let hub = group.hub(0);
            hub.gives_for("apply --server-side -f -", &cluster.to_string());
        }
    });
    let everywhere = |list: &Value, map: &str| {
        let found = places(list);
        let has = |name: &str| found.contains(&format!("{name}/default/{map}"));
        names.iter().all(|name| has(name))
    };
    for index in 0..hubs {
        let begun = Instant::now();
        loop {
            // Before the first member has a type, there is no such resource.
            let answer = ask(&group.clients[index], MAPS, &[]).await;
            let (body, warnings) = (&answer.body, &answer.warnings);
            if answer.code == 200 && everywhere(body, "a") && warnings.is_empty() {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{index}: {body:#} {warnings:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    // A version of one hub is good at the others, before and after a hub is killed.
    let list = ask(&group.clients[0], &format!("{MAPS}?limit=1"), &[])
        .await
        .body;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let token = list["metadata"]["continue"].as_str().unwrap().to_owned();
    let resumed = format!("{MAPS}?watch=true&resourceVersion={version}");
    let mut live = watch(&group.clients[1], &resumed).await;
    let killed = group.hubs[0].take().unwrap().killed();
    let begun = Instant::now();
    let line = "create configmap after --from-literal a=1";
    tokio::task::block_in_place(|| group.member.gives(line));
    let mut seen = 0;
    while seen < 3 {
        let event = live.next().await;
        let event = event.expect("the watch goes on");
        assert!(!event.starts_with("ERROR"), "{event}");
        seen += usize::from(event == "ADDED after");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "taken over after {took:?}");
    for index in group.living() {
        let client = &group.clients[index];
        let page = format!("{MAPS}?limit=500&continue={token}");
        let page = ask(client, &page, &[]).await;
        assert_eq!(page.code, 200, "{:#}", page.body);
        let mut again = watch(client, &resumed).await;
        let event = again.next().await.expect("there are changes");
        assert!(!event.starts_with("ERROR"), "{event}");
        // This hub may read a little later what others wrote.
        let wanted = names.map(|name| format!("{name}/default/after"));
        let wanted = wanted.each_ref().map(String::as_str);
        group.complete(index, MAPS, &wanted).await;
    }
    // The killed one comes back, and answers for all members.
    group.hubs[0] = Some(tokio::task::block_in_place(|| killed.started()));
    group.clients[0] = group.hub(0).home.client().await;
    let (answer, _) = group.patiently(0, MAPS).await;
    assert!(everywhere(&answer.body, "after"), "{:#}", answer.body);
    // A member that leaves is gone everywhere.
    tokio::task::block_in_place(|| group.hub(1).gives("delete pediacluster c1 --wait=true"));
    for index in 0..hubs {
        let begun = Instant::now();
        loop {
            let (answer, _) = group.patiently(index, MAPS).await;
            let found = places(&answer.body);
            if !found.iter().any(|place| place.starts_with("c1/")) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{found:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
