//! Servers are replaced one after another under load, by the same or by another release of the program.

use crate::database::Database;
use crate::fleet::Fleet;
use crate::log;
use crate::run::{RETAIN, Work, healthy, report};
use bareboat_rig::history::assert_explained;
use bareboat_rig::plan;
use std::process::Command;
use std::time::Duration;

/// Names the program of the release before this one. Without it, the present one takes its place.
const PREVIOUS: &str = "BAREBOAT_PREVIOUS";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_replaced_one_after_another() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let fleet = tokio::task::block_in_place(|| Fleet::start(&database, 3, RETAIN));
    if let Ok(previous) = std::env::var(PREVIOUS) {
        for replica in &fleet.replicas {
            tokio::task::block_in_place(|| {
                let mut command = Command::new(&previous);
                command.arg("serve").env_remove(PREVIOUS);
                replica.replace(|home| home.launch_with(command));
            });
        }
    }
    let work = Work::start(&fleet, plan::seed()).await;
    let errors = work.errors.clone();
    let rounds = plan::count(1, 10);
    for _ in 0..rounds {
        for replica in &fleet.replicas {
            tokio::time::sleep(Duration::from_secs(1)).await;
            tokio::task::block_in_place(|| replica.restart());
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
