//! Failures that concern a part of the fleet: the rest goes on, and the part comes back.

use super::disk::Disk;
use super::ghost::Ghost;
use super::hub::{Hub, settings};
use bareboat_api::value;
use bareboat_shelf::Settings;
use std::time::Duration;

const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_that_may_not_be_read_stops_alone() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    let forbid = |path: &str| ghost.state.lock().forbidden.insert(path.to_owned());
    forbid(DEPLOYMENTS);
    hub.join("g", &ghost).await;
    hub.has_rows("g", "pods", 10).await;
    let refused = "the hub may not read /apis/apps/v1/deployments";
    hub.until("the type names the refusal", || async {
        let [status, reason, message] = hub.sync_condition("g", "deployments").await;
        status == "Error" && reason == "Forbidden" && message.contains(refused)
    })
    .await;
    for other in ["pods", "namespaces"] {
        hub.until("other types are synced", || async {
            hub.sync_condition("g", other).await[0] == "Syncing"
        })
        .await;
    }
    hub.ready("g").await;
    // Other types still follow the member.
    ghost.send("ADDED", 200, 1_000_001);
    hub.has_rows("g", "pods", 11).await;
    assert_eq!(hub.sync_condition("g", "deployments").await[0], "Error");
    ghost.state.lock().forbidden.clear();
    hub.in_sync("g").await;
    hub.until("the type is synced", || async {
        hub.sync_condition("g", "deployments").await == ["Syncing", "", ""]
    })
    .await;
    assert_eq!(ghost.state.lock().lists, 1, "other types were listed once");
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shelf_that_is_lost_is_filled_again_from_all_members() {
    let hub = Hub::start().await;
    let ghosts = [("one", Ghost::new(10)), ("two", Ghost::new(7))];
    for (name, ghost) in &ghosts {
        hub.join(name, ghost).await;
    }
    for (name, _) in &ghosts {
        hub.in_sync(name).await;
    }
    let hub = hub.lose_shelf().await;
    for (name, ghost) in &ghosts {
        hub.in_sync(name).await;
        hub.ready(name).await;
        let count = ghost.state.lock().pods as u64;
        assert_eq!(hub.rows(name, "", "pods"), count);
        assert_eq!(hub.rows(name, "", "namespaces"), 1);
        assert_eq!(ghost.state.lock().lists, 2, "it was listed once more");
    }
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_that_cannot_be_noted_on_a_full_disk_starts_when_there_is_room() {
    let (dir, disk) = (tempfile::tempdir().expect("a directory"), Disk::default());
    let engine = disk.engine(&dir.path().join("fleet.db"), &Settings::default());
    let mut settings = settings();
    // The next regular look at what the member serves is far away.
    settings.discovery_interval = Duration::from_secs(3600);
    let hub = Hub::start_on_with(engine, settings).await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.in_sync("g").await;
    disk.fill();
    let rules =
        value!([{"group": "", "resources": ["*"]}, {"group": "batch", "resources": ["jobs"]}]);
    ghost.state.lock().groups = Ok(super::ghost::groups(&[("batch", "jobs", "Job", "Current")]));
    hub.apply("g", rules).await;
    hub.until("the sync says that the disk is full", || async {
        hub.condition("g", "SynchroRunning").await.1 == "InitialFailed"
    })
    .await;
    // What was written is shown, and the hub's own objects are written.
    assert_eq!(hub.rows("g", "", "pods"), 10);
    let namespace = value!({"metadata": {"name": "own"}});
    let created = hub.client.create("/api/v1/namespaces", &namespace).await;
    created.expect("the hub's own objects are elsewhere");
    disk.clear();
    hub.until("the type is synced", || async {
        hub.sync_condition("g", "jobs").await[0] == "Syncing"
    })
    .await;
    hub.ready("g").await;
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_synced_with_settings_that_cannot_be_read() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.in_sync("g").await;
    // Without this setting more would be synced.
    let later = "{namespaces: [default], later: true}";
    let sync = "fleet.bareboat.dev/sync";
    hub.annotate_unchecked("g", sync, later).await;
    let invalid = ("False".to_owned(), "InvalidSyncResources".to_owned());
    hub.until("the condition says so", || async {
        hub.condition("g", "Validated").await == invalid
    })
    .await;
    hub.until("nothing is synced", || async {
        hub.sync_condition("g", "pods").await[0] == "Stop"
    })
    .await;
    assert_eq!(hub.rows("g", "", "pods"), 10, "rows stay");
    for kind in ["SynchroRunning", "Ready"] {
        assert_eq!(hub.condition("g", kind).await.0, "False", "{kind}");
    }
    hub.annotate_unchecked("g", sync, "{namespaces: [default]}")
        .await;
    hub.in_sync("g").await;
    hub.ready("g").await;
    let valid = ("True".to_owned(), "Validated".to_owned());
    assert_eq!(hub.condition("g", "Validated").await, valid);
    hub.fleet.stop().await;
}
