//! Events of members: a member is synced in one group, and views show both.

use super::restarts::watch_path;
use super::witness::Witness;
use super::{Fleet, kubeconfig};
use crate::kubectl::Kubectl;
use serde_json::{Value, json};

/// Creates an event in a member, in the form of the core group or of `events.k8s.io`.
fn record(member: &Kubectl, name: &str, about: &str, newer: bool) {
    let subject = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": about});
    let metadata = json!({"name": name, "namespace": "default"});
    let event = match newer {
        false => json!({
            "apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": subject,
            "type": "Normal", "reason": "Started", "message": "it started", "count": 3,
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:01:00Z",
        }),
        true => json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": metadata, "regarding": subject,
            "type": "Warning", "reason": "Failed", "note": "it failed", "action": "Run",
            "eventTime": "2024-01-01T00:00:00.000000Z",
            "reportingController": "example.com/runner", "reportingInstance": "runner-1",
        }),
    };
    member.gives_for("create -f -", &event.to_string());
}

/// An event of a list without what differs between member and view.
fn bare(mut event: Value) -> Value {
    let metadata = event["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "uid"));
    event
}

#[test]
fn events_are_synced_once_and_shown_in_both_groups() {
    let witness = Witness::new();
    let Some(mut fleet) = Fleet::new(1) else {
        return;
    };
    let Some(second) = witness.start(&[]) else {
        return;
    };
    fleet.members.push(second);
    // Each member is synced with another group.
    for (member, group) in [(0, ""), (1, "events.k8s.io")] {
        let spec = json!({
            "kubeconfig": kubeconfig(&fleet.members[member], None),
            "syncResources": [{"group": group, "resources": ["events"]}],
        });
        fleet.apply(&format!("c{}", member + 1), spec, json!({}));
    }
    for (member, name) in [(0, "c1"), (1, "c2")] {
        fleet.synced(name);
        record(&fleet.members[member], "old", "web", false);
        record(&fleet.members[member], "new", "db", true);
    }
    fleet.contexts();
    for (group, about) in [
        ("events", "involvedObject"),
        ("events.v1.events.k8s.io", "regarding"),
    ] {
        // The view of one member shows what the member shows.
        for (number, member) in fleet.members.iter().enumerate() {
            for name in ["old", "new"] {
                let line = format!("get {group} {name} -n default -o json");
                let view = format!("--context c{} {line}", number + 1);
                let shown = fleet.shows_until(&view, |output| output.status.success());
                let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
                let own: Value = serde_json::from_str(&member.gives(&line)).unwrap();
                assert_eq!(bare(shown), bare(own), "{view}");
            }
        }
        // The view of all members, as a table and by a field of the group.
        let table = fleet.shows(&format!("--context clusterpedia get {group} -n default"));
        for words in ["CLUSTER", "pod/web", "it started", "pod/db", "it failed"] {
            assert!(table.contains(words), "{group}: {words}: {table}");
        }
        let line = format!(
            "--context clusterpedia get {group} -n default --field-selector {about}.name=db -o name"
        );
        let found = fleet.shows(&line);
        assert!(!found.contains("old"), "{found}");
        assert_eq!(found.matches("/new").count(), 2, "{found}");
    }
    let types = fleet.shows("--context c2 api-resources --no-headers");
    let versions = |version: &str| types.split_whitespace().any(|word| word == version);
    assert!(versions("v1") && versions("events.k8s.io/v1"), "{types}");
    // A watch of the newer group, over a change in the core group.
    let list = fleet.raw("/apis/events.k8s.io/v1/namespaces/default/events");
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let mut following = watch_path(&fleet, path, &format!("resourceVersion={version}"));
    fleet.members[1].gives_for(
        "patch event old -n default --type merge --patch-file /dev/stdin",
        r#"{"message": "it started again", "count": 4}"#,
    );
    let event = following.json();
    assert_eq!(event["type"], "MODIFIED", "{event:#}");
    assert_eq!(event["object"]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(event["object"]["note"], "it started again");
    assert_eq!(event["object"]["deprecatedCount"], 4);
    // The member was asked for one group only.
    let targets = witness.targets("events");
    assert!(!targets.is_empty());
    for target in targets {
        assert!(target.starts_with("/api/v1/events"), "{target}");
    }
}
