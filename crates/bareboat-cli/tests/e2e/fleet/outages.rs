//! Members and hubs that fail: rows stay, watches resume, nothing is listed without need.

use super::{Fleet, TYPES, condition, kubeconfig, places, requests};
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
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    let proxy = Proxy::to(member.home.port());
    let spec = json!({
        "kubeconfig": kubeconfig(member, Some(proxy.port)),
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
    let types = ["configmaps", "pods", "deployments"];
    let lists: Vec<u64> = types
        .iter()
        .map(|name| requests(member, "LIST", name))
        .collect();
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
    let again: Vec<u64> = types
        .iter()
        .map(|name| requests(member, "LIST", name))
        .collect();
    assert_eq!(again, lists, "a type was listed again");
}

#[test]
fn a_hub_that_was_killed_resumes_without_a_list() {
    let Some(mut fleet) = Fleet::joined(1) else {
        return;
    };
    for name in ["a", "b", "c"] {
        fleet.members[0].gives(&format!("create configmap {name} --from-literal a=1"));
    }
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("c ")
    });
    let types = ["configmaps", "pods", "deployments"];
    let count = |fleet: &Fleet| -> Vec<u64> {
        types
            .iter()
            .map(|name| requests(&fleet.members[0], "LIST", name))
            .collect()
    };
    let lists = count(&fleet);
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
    assert_eq!(count(&fleet), lists, "a type was listed again");
}

#[test]
fn a_member_that_restarts_is_equal_again() {
    let Some(mut fleet) = Fleet::joined(1) else {
        return;
    };
    fleet.members[0].gives("create configmap a --from-literal a=1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("a ")
    });
    let member = fleet.members.remove(0);
    fleet.members.push(member.killed());
    fleet.until("c1", |cluster| {
        condition(cluster, "ClusterHealthy").0 == "False"
    });
    let member = fleet.members.remove(0);
    fleet.members.push(member.started());
    fleet.members[0].gives("create configmap b --from-literal a=1");
    fleet.members[0].gives("delete configmap a --wait=false");
    fleet.synced("c1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("b ") && !output.stdout.contains("a ")
    });
    assert_eq!(names(&fleet), ["c1/default/b"]);
}
