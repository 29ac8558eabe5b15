//! Watches of all members and of one.

use crate::rig::{P, Rig, TABLE, member, pod};
use bareboat_shelf::Settings as ShelfSettings;
use bareboat_views::Settings;
use std::time::Duration;

const PODS: &str = "/apis/clusterpedia.io/v1beta1/resources/api/v1/pods";

fn version(body: &serde_json::Value) -> String {
    body["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or("")
        .to_owned()
}

#[tokio::test]
async fn changes_after_a_list_come_as_events() {
    let rig = Rig::start().await;
    rig.put("c1", pod("a", "old", "Running"));
    rig.put("c1", pod("a", "dying", "Running"));
    let start = version(&rig.get(PODS).await.json());
    // Before the watch begins: they are replayed, several changes of one object as one.
    rig.put("c1", pod("a", "old", "Failed"));
    rig.put("c1", pod("a", "old", "Succeeded"));
    rig.put("c2", pod("a", "new", "Running"));
    rig.delete("c1", "Pod", "a", "dying");
    let mut events = rig
        .watch(&format!("{PODS}?watch=true&resourceVersion={start}"))
        .await;
    assert_eq!(
        events.take(3).await,
        ["MODIFIED c1/a/old", "ADDED c2/a/new", "DELETED c1/a/dying"]
    );
    // From here on each change is an event.
    for phase in ["Pending", "Running"] {
        rig.put("c2", pod("a", "new", phase));
        let event = events.next().await.expect("an event");
        assert_eq!(event["type"], "MODIFIED");
        assert_eq!(event["object"]["status"]["phase"], phase);
    }
    rig.delete("c2", "Pod", "a", "new");
    let event = events.next().await.expect("an event");
    assert_eq!(event["type"], "DELETED");
    assert_eq!(
        event["object"]["status"]["phase"], "Running",
        "live deletions have the last state"
    );
    // A member that joins.
    rig.join(member("c4"));
    rig.put("c4", pod("a", "first", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c4/a/first"]);
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_the_state() {
    let rig = Rig::start().await;
    rig.put("c1", pod("a", "x", "Running"));
    let mut events = rig.watch(&format!("{PODS}?watch=true")).await;
    assert_eq!(events.take(1).await, ["ADDED c1/a/x"]);
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = rig.watch(&format!("{PODS}?{query}")).await;
    assert_eq!(events.take(1).await, ["ADDED c1/a/x"]);
    let end = events.next().await.expect("a bookmark");
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(
        end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(version(&end["object"]), rig.shelf.visible().to_string());
    rig.put("c1", pod("a", "y", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c1/a/y"]);
}

#[tokio::test]
async fn selectors_turn_changes_into_additions_and_deletions() {
    let rig = Rig::start().await;
    rig.put("c1", pod("a", "x", "Pending"));
    let start = rig.shelf.visible();
    let query = format!("watch=true&resourceVersion={start}&fieldSelector=status.phase%3DRunning");
    let mut events = rig.watch(&format!("{PODS}?{query}")).await;
    rig.put("c1", pod("a", "x", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c1/a/x"]);
    rig.put("c1", pod("a", "x", "Failed"));
    assert_eq!(events.take(1).await, ["DELETED c1/a/x"]);
    rig.put("c1", pod("a", "z", "Failed"));
    rig.put("c2", pod("b", "w", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c2/b/w"]);
}

#[tokio::test]
async fn versions_beyond_the_retention_are_gone() {
    let settings = ShelfSettings {
        retain: Duration::ZERO,
        ..ShelfSettings::default()
    };
    let rig = Rig::with(false, Settings::default(), settings).await;
    rig.put("c1", pod("a", "x", "Running"));
    let start = rig.shelf.visible();
    rig.delete("c1", "Pod", "a", "x");
    rig.put("c1", pod("a", "y", "Running"));
    rig.shelf
        .upkeep(crate::rig::BIRTHDAY + 1_000_000)
        .expect("upkeep works");
    for old in [start.to_string(), (rig.shelf.visible() + 1_000).to_string()] {
        let mut events = rig
            .watch(&format!("{PODS}?watch=true&resourceVersion={old}"))
            .await;
        let event = events.next().await.expect("an event");
        assert_eq!(event["type"], "ERROR", "{event}");
        assert_eq!(event["object"]["code"], 410);
        assert_eq!(event["object"]["reason"], "Expired");
        assert!(events.next().await.is_none(), "the watch ends");
    }
}

#[tokio::test]
async fn one_member_has_its_own_versions() {
    let rig = Rig::start().await;
    let first = rig.put("c1", pod("a", "x", "Running"));
    rig.put("c2", pod("a", "other", "Running"));
    let pods = format!("{P}/clusters/c1/api/v1/pods");
    let list = rig.get(&pods).await.json();
    assert_eq!(version(&list), first.to_string());
    let second = rig.put("c1", pod("a", "y", "Running"));
    let mut events = rig
        .watch(&format!("{pods}?watch=true&resourceVersion={first}"))
        .await;
    let event = events.next().await.expect("an event");
    assert_eq!(event["type"], "ADDED");
    assert_eq!(version(&event["object"]), second.to_string());
    rig.put("c2", pod("a", "hidden", "Running"));
    let third = rig.put("c1", pod("a", "x", "Failed"));
    let event = events.next().await.expect("an event");
    assert_eq!(
        (event["type"].as_str(), version(&event["object"])),
        (Some("MODIFIED"), third.to_string())
    );
    // A version that this server knows nothing about.
    let mut events = rig
        .watch(&format!("{pods}?watch=true&resourceVersion=1"))
        .await;
    assert_eq!(
        events.next().await.expect("an event")["object"]["code"],
        410
    );
    // Versions that are no numbers are for the member to read.
    rig.get(&format!("{pods}?watch=true&resourceVersion=opaque"))
        .await
        .expect(200);
    assert_eq!(rig.data.forwarded.lock().len(), 1);
}

#[tokio::test]
async fn tables_are_watched_too() {
    let rig = Rig::start().await;
    rig.put("c1", pod("a", "x", "Running"));
    let headers = [("accept", TABLE)];
    let mut events = rig
        .watch_as(crate::rig::admin(), &format!("{PODS}?watch=true"), &headers)
        .await;
    let event = events.next().await.expect("an event");
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["columnDefinitions"][0]["name"], "Cluster");
    assert_eq!(event["object"]["rows"][0]["cells"][0], "c1");
    rig.put("c2", pod("a", "y", "Running"));
    let event = events.next().await.expect("an event");
    assert!(
        event["object"]["columnDefinitions"].is_null(),
        "columns are sent once"
    );
    assert_eq!(event["object"]["rows"][0]["cells"][1], "y");
}
