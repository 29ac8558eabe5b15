//! Servers are replaced one after another under load, by the same or by another release of the program.

use crate::database::Database;
use crate::fleet::{Fleet, Replica};
use crate::log;
use crate::run::{RETAIN, Work, healthy, report};
use crate::server::{Home, program};
use bareboat_rig::history::assert_explained;
use bareboat_rig::plan;
use std::time::Duration;

/// Names the program of the release before this one, which `scripts/previous.sh` builds. Without it, the present one
/// takes its place.
const PREVIOUS: &str = "BAREBOAT_PREVIOUS";

/// Replaces a server by one of the release before this one, if it is known.
fn replace(replica: &Replica, previous: Option<&str>) {
    tokio::task::block_in_place(|| match previous {
        Some(path) => {
            let mut command = program(path);
            command.arg("serve");
            replica.replace(|home| home.launch_with(command));
        }
        None => replica.replace(Home::launch),
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_replaced_one_after_another() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let previous = std::env::var(PREVIOUS).ok();
    assert!(
        previous.is_some() || plan::torture().is_none(),
        "{PREVIOUS} is not set: build it with scripts/previous.sh"
    );
    // The store is made by the older release.
    let made = previous.as_deref().map(program);
    let fleet = tokio::task::block_in_place(|| Fleet::made_by(&database, 3, RETAIN, made));
    for replica in &fleet.replicas {
        replace(replica, previous.as_deref());
    }
    let work = Work::start(&fleet, plan::seed()).await;
    let errors = work.errors.clone();
    // In odd rounds the older release comes back, as after an update that is taken back.
    let rounds = plan::count(1, 10);
    for round in 0..rounds {
        let next = previous.as_deref().filter(|_| round % 2 == 1);
        for replica in &fleet.replicas {
            tokio::time::sleep(Duration::from_secs(1)).await;
            replace(replica, next);
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut history = work.end().await;
    let url = database.url(database.port());
    history.rows = tokio::task::block_in_place(|| log::read(&url, history.after));
    report("rolling restart", &history, 3 * rounds as usize);
    assert_explained("rolling restart", &history);
    healthy(&url);
    // A client notices lost connections at most.
    let errors = errors.lock().unwrap();
    assert!(errors.is_empty(), "{errors:#?}");
}
