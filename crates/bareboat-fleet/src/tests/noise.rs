//! Members that misbehave do not delay others. While latencies are measured the clock is that of the test: it stands still while
//! work is done, so it measures how long something waits, and not how busy the machine is.

use super::ghost::{Ghost, Mood};
use super::hub::Hub;
use bareboat_views::Members as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const OTHERS: usize = 10;
const ROUNDS: usize = 60;
/// How often others send an event.
const PACE: Duration = Duration::from_millis(50);

/// Sends events of good members one after another, and returns the median and the longest time until they are visible.
async fn latencies(hub: &Hub, ghosts: &[Arc<Ghost>], first: u64) -> (Duration, Duration) {
    tokio::time::pause();
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let (name, ghost) = (format!("g{}", round % OTHERS), &ghosts[round % OTHERS]);
        let before = hub.rows(&name, "", "pods");
        let version = first + round as u64;
        let begun = Instant::now();
        ghost.send("ADDED", version as usize, version);
        while hub.rows(&name, "", "pods") == before {
            sleep(Duration::from_millis(1)).await;
        }
        all.push(begun.elapsed());
        sleep(PACE).await;
    }
    tokio::time::resume();
    all.sort();
    (all[ROUNDS / 2], all[ROUNDS - 1])
}

#[tokio::test]
async fn others_do_not_wait_for_members_that_misbehave() {
    let hub = Hub::start_limited(|settings| settings.shelf.rows_per_member = 2000).await;
    let ghosts: Vec<_> = (0..OTHERS).map(|_| Ghost::new(100)).collect();
    for (number, ghost) in ghosts.iter().enumerate() {
        hub.join(&format!("g{number}"), ghost).await;
    }
    let in_sync = |name: String| {
        let fleet = hub.fleet.fleet();
        fleet.members.get(&name).is_some_and(|one| one.in_sync)
    };
    hub.until("all are in sync", || async {
        (0..OTHERS).all(|number| in_sync(format!("g{number}")))
    })
    .await;
    let quiet = latencies(&hub, &ghosts, 2_000_000).await;
    // One never ends its list, one answers nothing, and one sends a hundred times as much as the others.
    let (endless, silent, fast) = (Ghost::new(10), Ghost::new(10), Ghost::new(10));
    endless.set(Mood::Endless);
    silent.set(Mood::Silent);
    for (name, ghost) in [("endless", &endless), ("silent", &silent), ("fast", &fast)] {
        hub.join(name, ghost).await;
    }
    hub.until("the fast one is in sync", || async {
        in_sync("fast".to_owned())
    })
    .await;
    let sender = fast.clone();
    let noise = tokio::spawn(async move {
        let mut version = 2_000_000;
        loop {
            for _ in 0..10 {
                version += 1;
                sender.send("MODIFIED", version as usize % 500, version);
            }
            sleep(PACE / 10).await;
        }
    });
    let noisy = latencies(&hub, &ghosts, 3_000_000).await;
    noise.abort();
    assert!(
        hub.rows("fast", "", "pods") >= 400,
        "the fast one was held up"
    );
    println!(
        "visible after (median, longest): {quiet:?}, and {noisy:?} beside members that misbehave"
    );
    assert!(
        noisy.0 <= quiet.0.mul_f64(1.2),
        "{quiet:?} became {noisy:?}"
    );
    assert!(
        noisy.1 <= quiet.1.mul_f64(1.2) + PACE,
        "{quiet:?} became {noisy:?}"
    );
    hub.fleet.stop().await;
}
