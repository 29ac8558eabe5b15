//! Members and hubs that fail: rows stay, watches resume, nothing is listed without need.

use super::load::{own_versions, shown_versions};
use super::restarts::{list, watch};
use super::witness::{Witness, each, none};
use super::{Fleet, TYPES, condition, kubeconfig, places};
use crate::kubectl::Kubectl;
use crate::process::{eventually, run};
use bareboat_rig::proxy::Proxy;
use serde_json::{Value, json};

/// The names of configmaps of a member in the default namespace, as the views have them.
fn names(fleet: &Fleet) -> Vec<String> {
    let mut names = places(&fleet.raw("/clusters/c1/api/v1/namespaces/default/configmaps"));
    names.retain(|place| !place.ends_with("kube-root-ca.crt"));
    names
}

#[test]
fn a_member_that_was_away_is_resumed_without_a_list() {
    let witness = Witness::new();
    let Some(fleet) = Fleet::new(0) else {
        return;
    };
    let Some(member) = witness.start(&[]) else {
        return;
    };
    let proxy = Proxy::to(member.home.port());
    let spec = json!({
        "kubeconfig": kubeconfig(&member, Some(proxy.port)),
        "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
    });
    for name in ["a", "b", "c"] {
        member.gives(&format!("create configmap {name} --from-literal a=1"));
    }
    fleet.apply("c1", spec, json!({}));
    fleet.synced("c1");
    fleet.contexts();
    assert_eq!(
        names(&fleet),
        ["c1/default/a", "c1/default/b", "c1/default/c"]
    );
    let asked = witness.asked();
    assert_eq!(asked.lists, each(1));
    proxy.set_down(true);
    proxy.drop_all();
    let down = fleet.until("c1", |cluster| {
        condition(cluster, "ClusterHealthy").1 == "NotReachable"
    });
    assert_eq!(
        condition(&down, "Ready"),
        ("False".to_owned(), "NotReady".to_owned())
    );
    // What was synced is still shown, with warnings.
    let own = fleet.view("--context c1 get configmaps -n default");
    assert!(
        own.stdout.contains("a ")
            && own
                .stderr
                .contains("c1 is not ready and the resources obtained may be inaccurate, reason: "),
        "{}",
        own.all()
    );
    let all = fleet.view("--context clusterpedia get configmaps -n default");
    assert!(all.stderr.contains("Warning: c1"), "{}", all.all());
    member.gives("delete configmap b --wait=false");
    member.gives("create configmap d --from-literal a=1");
    member.gives("create configmap a2 --from-literal a=1");
    proxy.set_down(false);
    fleet.synced("c1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("a2")
    });
    assert_eq!(
        names(&fleet),
        [
            "c1/default/a",
            "c1/default/a2",
            "c1/default/c",
            "c1/default/d"
        ]
    );
    // The member saw one watch of each type, and no list.
    let since = witness.resumed(&asked);
    assert_eq!((since.lists, since.watches), (none(), each(1)));
}

#[test]
fn a_hub_that_was_killed_resumes_without_a_list() {
    let witness = Witness::new();
    let Some(mut fleet) = Fleet::new(0) else {
        return;
    };
    let Some(member) = witness.start(&[]) else {
        return;
    };
    fleet.members.push(member);
    fleet.join(1..=1);
    for name in ["a", "b", "c"] {
        fleet.members[0].gives(&format!("create configmap {name} --from-literal a=1"));
    }
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("c ")
    });
    let asked = witness.asked();
    fleet.hub = fleet.hub.killed();
    fleet.members[0].gives("delete configmap b --wait=false");
    fleet.members[0].gives("create configmap d --from-literal a=1");
    fleet.hub = fleet.hub.started();
    fleet.synced("c1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("d ") && !output.stdout.contains("b ")
    });
    assert_eq!(
        names(&fleet),
        ["c1/default/a", "c1/default/c", "c1/default/d"]
    );
    let since = witness.resumed(&asked);
    assert_eq!((since.lists, since.watches), (none(), each(1)));
    // The same if it ends in order.
    let asked = witness.asked();
    fleet.hub = fleet.hub.restarted();
    let since = witness.resumed(&asked);
    fleet.synced("c1");
    assert_eq!((since.lists, since.watches), (none(), each(1)));
}

/// The changes of configmaps in the default namespace after a version, as `TYPE cluster/namespace/name`. A configmap that the member
/// makes now ends them.
fn changes(fleet: &Fleet, member: &Kubectl, version: &str, last: &str) -> Vec<String> {
    member.gives(&format!("create configmap {last} --from-literal a=1"));
    let mut following = watch(fleet, "configmaps", &format!("resourceVersion={version}"));
    let mut changes = Vec::new();
    loop {
        let event = following.json();
        let place = places(&json!({"items": [event["object"]]})).remove(0);
        if place.ends_with(last) {
            break;
        }
        changes.push(format!("{} {place}", event["type"].as_str().unwrap()));
    }
    changes.sort();
    changes
}

#[test]
fn a_member_that_was_killed_is_equal_again() {
    let witness = Witness::new();
    let Some(mut fleet) = Fleet::new(0) else {
        return;
    };
    let Some(member) = witness.start(&[]) else {
        return;
    };
    fleet.members.push(member);
    fleet.join(1..=1);
    for name in ["a", "b", "c"] {
        fleet.members[0].gives(&format!("create configmap {name} --from-literal a=1"));
    }
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("c ")
    });
    let list = fleet.raw("/api/v1/namespaces/default/configmaps");
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let asked = witness.asked();
    let member = fleet.members.remove(0);
    fleet.members.push(member.killed());
    fleet.until("c1", |cluster| {
        condition(cluster, "ClusterHealthy").0 == "False"
    });
    let member = fleet.members.remove(0);
    fleet.members.push(member.started());
    fleet.members[0].gives("create configmap d --from-literal a=1");
    fleet.members[0].gives("delete configmap a --wait=false");
    fleet.synced("c1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("d ") && !output.stdout.contains("a ")
    });
    assert_eq!(
        names(&fleet),
        ["c1/default/b", "c1/default/c", "c1/default/d"]
    );
    // This member keeps its history over restarts, so nothing is listed. Tasks may have tried to watch while it started.
    let since = witness.resumed(&asked);
    assert_eq!(since.lists, none());
    // Only what differs was written.
    assert_eq!(
        changes(&fleet, &fleet.members[0], version, "last"),
        ["ADDED c1/default/d", "DELETED c1/default/a"]
    );
    // The same if it ends in order.
    let asked = witness.asked();
    let member = fleet.members.remove(0);
    fleet.members.push(member.restarted());
    let since = witness.resumed(&asked);
    fleet.synced("c1");
    assert_eq!(since.lists, none());
}

#[test]
fn a_member_that_restarts_and_forgot_is_listed_once() {
    let witness = Witness::new();
    let Some(fleet) = Fleet::new(0) else {
        return;
    };
    let Some(mut member) = witness.start(&["--retain-revisions", "16"]) else {
        return;
    };
    let proxy = Proxy::to(member.home.port());
    for name in ["kept", "changed", "removed-1", "removed-2"] {
        member.gives(&format!("create configmap {name} --from-literal a=1"));
    }
    let spec = json!({
        "kubeconfig": kubeconfig(&member, Some(proxy.port)),
        "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
    });
    fleet.apply("c1", spec, json!({}));
    fleet.synced("c1");
    for round in [1, 2] {
        let (_, version) = list(&fleet, "configmaps");
        let asked = witness.asked();
        proxy.set_down(true);
        proxy.drop_all();
        fleet.until("c1", |cluster| {
            condition(cluster, "ClusterHealthy").1 == "NotReachable"
        });
        let own: Value =
            serde_json::from_str(&member.gives("get --raw /api/v1/configmaps")).unwrap();
        let old = own["metadata"]["resourceVersion"].as_str().unwrap();
        // Once it is killed, once it ends in order.
        member = match round {
            1 => member.killed().started(),
            _ => member.restarted(),
        };
        member.gives(&format!("delete configmap removed-{round}"));
        member.gives(&format!("create configmap new-{round} --from-literal a=1"));
        for value in 0..40 {
            member.gives(&format!(
                "label configmap changed n={round}-{value} --overwrite"
            ));
        }
        eventually("the member forgets", || {
            let path =
                format!("/api/v1/configmaps?watch=true&resourceVersion={old}&timeoutSeconds=1");
            let output = run(&mut member.command(&format!("get --raw '{path}'")), "");
            output.all().contains("too old").then_some(())
        });
        proxy.set_down(false);
        eventually("the view has what the member has", || {
            let shown = shown_versions(&list(&fleet, "configmaps").0);
            (shown == own_versions(&member, "c1")).then_some(())
        });
        fleet.synced("c1");
        // No type was listed twice, and only rows that differ were written.
        let since = witness.asked().since(&asked);
        assert_eq!(since.lists.get("configmaps"), Some(&1), "{since:?}");
        assert!(since.lists.values().all(|count| *count == 1), "{since:?}");
        assert_eq!(
            changes(&fleet, &member, &version, &format!("last-{round}")),
            [
                format!("ADDED c1/default/new-{round}"),
                format!("DELETED c1/default/removed-{round}"),
                "MODIFIED c1/default/changed".to_owned(),
            ]
        );
    }
}

#[test]
fn a_hub_that_starts_while_its_member_is_away_shows_what_it_has() {
    let Some(mut fleet) = Fleet::joined(1) else {
        return;
    };
    fleet.members[0].gives("create configmap kept --from-literal a=1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("kept")
    });
    let member = fleet.members.remove(0);
    fleet.members.push(member.killed());
    fleet.hub = fleet.hub.killed();
    fleet.hub = fleet.hub.started();
    let line = "--context clusterpedia get configmaps -n default";
    let shown = fleet.shows_until(line, |output| output.status.success());
    assert!(
        shown.stdout.contains("kept") && shown.stderr.contains("Warning: c1"),
        "{}",
        shown.all()
    );
    // Short names are known, too.
    let short = fleet.shows("--context clusterpedia get cm -n default");
    assert!(short.contains("kept"), "{short}");
    let member = fleet.members.remove(0);
    fleet.members.push(member.started());
    fleet.members[0].gives("create configmap later --from-literal a=1");
    fleet.shows_until(line, |output| output.stdout.contains("later"));
}
