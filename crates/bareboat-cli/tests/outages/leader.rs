//! Controllers work on one server at a time. Another one takes over when it stops, when it is killed, and when it sleeps;
//! one that wakes up does no harm.

use crate::database::Database;
use crate::fleet::Fleet;
use crate::run::healthy;
use bareboat_rig::plan;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
/// How long the leader sleeps: longer than its Lease is valid.
const SLEEP: Duration = Duration::from_secs(20);
/// What every namespace gets from controllers.
const ROOT: &str = "kube-root-ca.crt";

/// Returns the servers whose controllers lead, by their own metrics.
async fn leaders(clients: &[kube::Client], asked: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, client) in clients.iter().enumerate().filter(|(at, _)| asked(*at)) {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let Ok(text) = client.request_text(request).await else {
            continue;
        };
        let leads =
            |line: &str| line.starts_with("leader_election_master_status") && line.ends_with(" 1");
        if text.lines().any(leads) {
            found.push(at);
        }
    }
    found
}

/// Waits until exactly one server leads.
async fn one_leader(clients: &[kube::Client]) -> usize {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match leaders(clients, |_| true).await[..] {
            [one] => return one,
            ref found => assert!(Instant::now() < deadline, "these lead: {found:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns who holds the Lease.
async fn holder(client: &kube::Client) -> String {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get("bareboat-controllers").await.unwrap();
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    holder.unwrap_or_default()
}

async fn create(client: &kube::Client, name: &str) {
    let space: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let spaces = Api::all(client.clone());
    spaces.create(&PostParams::default(), &space).await.unwrap();
}

/// Waits until controllers have done their work in a namespace.
async fn furnished(client: &kube::Client, name: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    let deadline = Instant::now() + Duration::from_secs(60);
    while maps.get_opt(ROOT).await.unwrap().is_none()
        || accounts.get_opt("default").await.unwrap().is_none()
    {
        assert!(Instant::now() < deadline, "no controller works in {name}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_leads_and_hands_over() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let fleet = tokio::task::block_in_place(|| Fleet::start(&database, SERVERS, &[]));
    let clients = fleet.clients().await;

    // It stops: it releases the Lease, and another server takes it.
    let first = one_leader(&clients).await;
    let other = &clients[(first + 1) % SERVERS];
    let before = holder(other).await;
    let running = fleet.replicas[first].running.lock().unwrap().take();
    let start = Instant::now();
    let stopping = tokio::task::spawn_blocking(move || running.unwrap().stop());
    let handed_over = loop {
        let now = holder(other).await;
        if !now.is_empty() && now != before {
            break start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no server leads");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    println!("handed over within {handed_over:?}");
    // A Lease that was not released is taken after 15 s.
    let soon = plan::bound(Duration::from_secs(12), Duration::from_secs(1));
    assert!(handed_over < soon, "{handed_over:?}");
    assert!(stopping.await.unwrap().0.success());
    create(other, "after-the-stop").await;
    furnished(other, "after-the-stop").await;
    tokio::task::block_in_place(|| {
        let running = fleet.replicas[first].home.serve();
        *fleet.replicas[first].running.lock().unwrap() = Some(running);
    });

    // It is killed: another server acts when the Lease is no longer valid.
    let second = one_leader(&clients).await;
    let other = &clients[(second + 1) % SERVERS];
    let running = fleet.replicas[second].running.lock().unwrap().take();
    let start = Instant::now();
    tokio::task::block_in_place(|| running.unwrap().kill());
    create(other, "after-the-kill").await;
    furnished(other, "after-the-kill").await;
    let acts = start.elapsed();
    println!("another one acts after {acts:?}");
    let soon = plan::bound(Duration::from_secs(40), Duration::from_secs(20));
    assert!(acts < soon, "{acts:?}");
    tokio::task::block_in_place(|| {
        let running = fleet.replicas[second].home.serve();
        *fleet.replicas[second].running.lock().unwrap() = Some(running);
    });

    // It sleeps, and wakes up with the belief that it leads.
    let third = one_leader(&clients).await;
    let other = &clients[(third + 1) % SERVERS];
    for n in 0..10 {
        create(other, &format!("asleep-{n}")).await;
    }
    fleet.replicas[third].signal("STOP");
    let slept = Instant::now();
    let spaces: Api<Namespace> = Api::all(other.clone());
    for n in 0..5 {
        let name = format!("asleep-{n}");
        spaces
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
        create(other, &format!("meanwhile-{n}")).await;
    }
    tokio::time::sleep(SLEEP.saturating_sub(slept.elapsed())).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    let awake = loop {
        let awake = leaders(&clients, |at| at != third).await;
        if awake.len() == 1 {
            break awake;
        }
        assert!(Instant::now() < deadline, "these lead: {awake:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    fleet.replicas[third].signal("CONT");
    for n in 0..5 {
        let name = format!("asleep-{n}");
        let deadline = Instant::now() + Duration::from_secs(60);
        while spaces.get_opt(&name).await.unwrap().is_some() {
            assert!(Instant::now() < deadline, "{name} is not deleted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        furnished(other, &format!("asleep-{}", n + 5)).await;
        furnished(other, &format!("meanwhile-{n}")).await;
    }
    assert_eq!(one_leader(&clients).await, awake[0], "it goes on to lead");
    // Every server has the same objects.
    let maps = clients
        .iter()
        .map(|client| Api::<ConfigMap>::all(client.clone()));
    let mut lists = Vec::new();
    for maps in maps {
        let list = maps.list(&Default::default()).await.unwrap();
        let uids = list.items.into_iter().map(|map| map.metadata.uid.unwrap());
        lists.push(uids.collect::<Vec<_>>());
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]));
    healthy(&database.url(database.port()));
}
