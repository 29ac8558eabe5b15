//! Hubs that share a shelf in a database: each member is synced by one of them, and all of them answer for it.

#[path = "../../../bareboat-sql/tests/mariadb/cluster.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of the database need more of it"
)]
mod mariadb;
#[path = "../../../bareboat-sql/tests/postgres/cluster.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of the database need more of it"
)]
mod postgres;

use super::ghost::Ghost;
use super::hub::Hub;
use crate::views::Live;
use bareboat_shelf::{Batch, Engine, Settings, ShelfError};
use bareboat_sql::{MysqlShelf, PostgresShelf};
use bareboat_views::{Members as _, Place};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Opens a shelf.
type Open<'o> = &'o dyn Fn() -> Box<dyn Engine>;

/// The lists of pods that ghosts were asked for.
fn lists(ghosts: &[Arc<Ghost>]) -> Vec<usize> {
    ghosts
        .iter()
        .map(|ghost| ghost.state.lock().lists)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_shared_out_and_taken_over_without_a_list() {
    let Some(cluster) = postgres::Cluster::start(&[]) else {
        return eprintln!("skipped: PostgreSQL is not installed");
    };
    let url = cluster.fresh();
    let open = || -> Box<dyn Engine> {
        let opened = PostgresShelf::open(&url, &Settings::default());
        Box::new(opened.expect("the database opens"))
    };
    shared_out_and_taken_over(&open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_taken_over_without_a_list_in_mariadb() {
    let Some(cluster) = mariadb::Cluster::start(&[]) else {
        return eprintln!("skipped: MariaDB is not installed");
    };
    let url = cluster.fresh();
    let open = || -> Box<dyn Engine> {
        let opened = MysqlShelf::open(&url, &Settings::default());
        Box::new(opened.expect("the database opens"))
    };
    shared_out_and_taken_over(&open).await;
}

async fn shared_out_and_taken_over(open: Open<'_>) {
    let first = Hub::start_on(open()).await;
    let second = first.beside(open()).await;
    // One that begins late would take its share from the other one while that lists.
    first.begun().await;
    second.begun().await;
    let ghosts = [30, 31, 32, 33].map(Ghost::new);
    let names = ["c1", "c2", "c3", "c4"];
    for (name, ghost) in names.iter().zip(&ghosts) {
        first.join(name, ghost).await;
    }
    let shared_out = || async {
        let (a, b) = (first.members(), second.members());
        a.0.len() == 2 && b.0.len() == 2 && a.0 == b.1 && a.1 == b.0
    };
    first.until("each hub has its share", shared_out).await;
    for (name, count) in names.iter().zip(30..) {
        first.ready(name).await;
        for hub in [&first, &second] {
            hub.has_rows(name, "pods", count).await;
            let shown = || async {
                let fleet = hub.fleet.fleet();
                let member = fleet.members.get(*name).cloned();
                member.is_some_and(|it| {
                    it.ready && it.in_sync && it.heard.is_some() && it.synced("", "pods").is_some()
                })
            };
            hub.until("all hubs show it as it is", shown).await;
            assert!(matches!(hub.fleet.place(), Place::Here));
            let reached: Option<Live> = hub.parts().table.get(name).and_then(|it| it.live());
            assert!(reached.is_some(), "requests can be forwarded from any hub");
        }
    }
    assert_eq!(lists(&ghosts), [1; 4], "each member was listed once");
    // A watch on one hub sees what the other one writes.
    let (own, _) = second.members();
    let index = names
        .iter()
        .position(|name| *name == own[0])
        .expect("it is one of them");
    let before = first.fleet.shelf().visible();
    ghosts[index].send("MODIFIED", 3, 2_000_000);
    let query = |hub: &Hub| {
        let directory = hub.fleet.shelf().directory();
        bareboat_shelf::Query {
            kinds: directory.kind("", "pods").into_iter().collect(),
            ..bareboat_shelf::Query::default()
        }
    };
    let seen = || async {
        let changes = first.fleet.shelf().changes(&query(&first), before, 100);
        let changes = changes
            .expect("the shelf can be read")
            .expect("it is not too old");
        changes
            .events
            .iter()
            .any(|event| event.narrow.member_version == "2000000")
    };
    first
        .until("the change is seen on the other hub", seen)
        .await;

    // The hub of that member dies. The other one takes over and resumes.
    second.die().await;
    let begun = Instant::now();
    let taken = || async { first.members().0.len() == 4 };
    first.until("the other hub takes over", taken).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    let alive = || async {
        first
            .fleet
            .fleet()
            .members
            .values()
            .all(|it| it.ready && it.in_sync)
    };
    first.until("all members are in sync", alive).await;
    ghosts[index].send("MODIFIED", 4, 3_000_000);
    let seen = || async {
        let changes = first.fleet.shelf().changes(&query(&first), before, 100);
        let changes = changes
            .expect("the shelf can be read")
            .expect("versions stay valid");
        changes
            .events
            .iter()
            .any(|event| event.narrow.member_version == "3000000")
    };
    first.until("changes go on", seen).await;
    assert_eq!(lists(&ghosts), [1; 4], "nothing was listed again");
    // What the dead one still had in hand is refused.
    let stale = second.fleet.shelf();
    let directory = stale.directory();
    let (member, kind) = directory
        .member(&own[0])
        .zip(directory.kind("", "pods"))
        .expect("they are known");
    let batch = Batch {
        member,
        kind,
        changes: Vec::new(),
        progress: None,
    };
    assert!(matches!(stale.apply(&[batch], 1), Err(ShelfError::NotHeld)));
    // One that comes back gets its share; one that stops gives all back at once.
    let third = first.beside(open()).await;
    let shared_out = || async { first.members().0.len() == 2 && third.members().0.len() == 2 };
    first.until("the third has its share", shared_out).await;
    first.fleet.stop().await;
    let begun = Instant::now();
    let taken = || async { third.members().0.len() == 4 };
    third.until("the third has all members", taken).await;
    assert!(
        begun.elapsed() < Duration::from_secs(12),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(lists(&ghosts), [1; 4]);
    // A member that leaves is gone on all hubs.
    let path = format!(
        "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters/{}",
        own[0]
    );
    let deleted = third.client.delete(&path, &bareboat_api::value!({})).await;
    deleted.expect("a PediaCluster can be deleted");
    let gone = || async { third.rows(&own[0], "", "pods") == 0 && third.members().0.len() == 3 };
    third.until("its rows are gone", gone).await;
}
