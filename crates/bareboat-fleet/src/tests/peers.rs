//! Which server answers, among several.

use super::ghost::Ghost;
use super::hub::Hub;
use crate::members::table::Table;
use crate::peers::{Part, Peers};
use bareboat_api::value;
use bareboat_controllers::{LEADER_LEASE, LEASES};
use bareboat_storage::{Expect, MemoryBackend, Store, StoreOptions, Write};
use bareboat_views::{Members as _, Place};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Writes the Lease of the leader.
async fn hold(store: &Store, holder: &str, annotations: bareboat_api::Value) {
    let lease = value!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "bareboat-controllers", "namespace": "kube-system", "annotations": annotations},
        "spec": {"holderIdentity": holder},
    });
    let leases = store.resource(LEASES);
    let write = Write::create(&leases, LEADER_LEASE, lease.to_json().into());
    let written = store.commit(write.expecting(Expect::Any)).await;
    written.expect("a Lease is written");
}

/// What clients are told; empty if the request is forwarded, and `here` if this server answers.
fn said(part: &Part) -> String {
    match part.place() {
        Place::Here => "here".to_owned(),
        Place::There(_) => String::new(),
        Place::Nowhere(status) => {
            let details = status.details.expect("a time to try again");
            assert_eq!((status.code, details.retry_after_seconds), (503, 1));
            status.message.to_string()
        }
    }
}

#[tokio::test]
async fn requests_go_where_the_lease_says() {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default());
    let store = store.expect("a store can be opened");
    let (leading, leads) = watch::channel(false);
    let term = Arc::new(AtomicU64::new(0));
    let part = Part::default();
    assert_eq!(said(&part), "here", "a server alone answers");
    let peers = Peers {
        term: term.clone(),
        authorities: String::new(),
        name: None,
    };
    part.join(peers, store.clone(), leads);
    assert!(said(&part).contains("no server leads"));
    hold(&store, "other", value!({})).await;
    assert!(said(&part).contains("where it listens"));
    let address = "192.0.2.1:6443";
    hold(&store, "other", value!({"bareboat.dev/address": address})).await;
    assert!(said(&part).contains("has no fleet"), "{}", said(&part));
    let notes = value!({"bareboat.dev/address": address, "fleet.bareboat.dev/leader": "true"});
    hold(&store, "other", notes.clone()).await;
    assert_eq!(said(&part), "");
    hold(&store, "", notes.clone()).await;
    assert!(said(&part).contains("no server leads"));
    hold(&store, "own", notes).await;
    term.store(7, Ordering::Release);
    leading.send_replace(true);
    assert!(said(&part).contains("just begun"));
    let table = Table::new(Arc::new(|| 0));
    part.settle(7, &table);
    let begun = std::time::Instant::now();
    while said(&part) != "here" {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Another server led in between: what was known of members is old.
    term.store(9, Ordering::Release);
    assert!(said(&part).contains("just begun"));
    leading.send_replace(false);
    assert_eq!(said(&part), "");
    part.left().await;
}

#[tokio::test]
async fn a_new_leader_counts_apart_and_answers_when_its_members_are_known() {
    let hub = Hub::start_among(11).await;
    let ghost = Ghost::new(20);
    hub.join("c1", &ghost).await;
    hub.ready("c1").await;
    hub.has_rows("c1", "pods", 20).await;
    let place = || said(&hub.parts().part);
    hub.until("it answers", || async { place() == "here" })
        .await;
    let first = hub.fleet.shelf().visible();
    assert!((11 << 20..12 << 20).contains(&first), "{first}");
    // It loses the Lease, and takes it again; another server may have led meanwhile.
    hub.term.store(15, Ordering::Release);
    hub.leads.send_replace(false);
    hub.until("its sessions end", || async {
        hub.parts().table.all().is_empty()
    })
    .await;
    assert!(place().contains("no server leads"));
    hub.leads.send_replace(true);
    hub.until("it answers again", || async { place() == "here" })
        .await;
    assert!(hub.fleet.shelf().visible() >= 15 << 20);
    assert!(hub.fleet.shelf().gave(first));
    assert!(!hub.fleet.shelf().gave(first + (2 << 20)));
    assert_eq!(hub.rows("c1", "", "pods"), 20);
    let table = &hub.parts().table;
    assert!(table.get("c1").is_some_and(|state| state.is_settled()));
}

#[tokio::test]
async fn a_hub_that_starts_answers_for_all_its_members_or_for_none() {
    let mut hub = Hub::start().await;
    let names = ["c1", "c2", "c3", "c4"];
    for name in names {
        hub.join(name, &Ghost::new(3)).await;
    }
    for name in names {
        hub.in_sync(name).await;
    }
    for _ in 0..3 {
        hub = hub.crash().await;
        // On one thread, nothing has looked at the members yet.
        assert!(said(&hub.parts().part).contains("just started"));
        hub.until("it answers", || async {
            let answers = said(&hub.parts().part) == "here";
            let known = hub.fleet.fleet().members.len();
            assert!(!answers || known == names.len(), "{known} members");
            answers
        })
        .await;
    }
    hub.fleet.stop().await;
}

#[tokio::test]
async fn a_hub_that_lost_the_lease_before_it_began_does_not_ask_clients_to_wait() {
    let hub = Hub::start_among(11).await;
    // On one thread, its controller has not begun.
    assert!(said(&hub.parts().part).contains("just started"));
    hub.leads.send_replace(false);
    hub.until("it looks for the leader", || async {
        said(&hub.parts().part).contains("no server leads")
    })
    .await;
    hub.fleet.stop().await;
}
