//! Watches of the views while the hub and its members stop, die and forget.

use super::load::{Load, own_versions, shown_versions};
use super::witness::{COUNTED, Witness};
use super::{Fleet, TYPES, VIEWS, condition, kubeconfig, places};
use crate::kubectl::Kubectl;
use crate::process::{Followed, PATIENCE, eventually, run};
use bareboat_rig::proxy::Proxy;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Objects by cluster, namespace and name.
pub(super) type State = BTreeMap<String, Value>;

fn place(object: &Value) -> String {
    places(&json!({"items": [object]})).remove(0)
}

/// The list of all members in the default namespace, and its version.
pub(super) fn list(fleet: &Fleet, resource: &str) -> (State, String) {
    let list = fleet.raw(&format!("/api/v1/namespaces/default/{resource}"));
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let state = items.into_iter().map(|item| (place(&item), item));
    (state.collect(), version.to_owned())
}

pub(super) fn watch(fleet: &Fleet, resource: &str, more: &str) -> Followed {
    watch_path(
        fleet,
        &format!("/api/v1/namespaces/default/{resource}"),
        more,
    )
}

/// A watch of a path below the views.
pub(super) fn watch_path(fleet: &Fleet, path: &str, more: &str) -> Followed {
    let path = format!("{VIEWS}{path}?watch=true&{more}");
    let mut command = fleet.hub.command("get --raw");
    Followed::start("watch", command.arg(path))
}

/// Type and place of an event.
fn next(watch: &mut Followed) -> (String, String, Value) {
    let event = watch.json();
    let kind = event["type"].as_str().unwrap().to_owned();
    assert_ne!(kind, "ERROR", "{event:#}");
    (kind, place(&event["object"]), event["object"].clone())
}

/// Applies events to a state until one for an object arrives. No object is added twice, and none is changed before it is added.
pub(super) fn apply_until(watch: &mut Followed, state: &mut State, last: &str) {
    loop {
        let (kind, place, object) = next(watch);
        match kind.as_str() {
            "ADDED" => {
                let before = state.insert(place.clone(), object);
                assert!(before.is_none(), "{place} was added twice");
            }
            "MODIFIED" => {
                let before = state.insert(place.clone(), object);
                assert!(before.is_some(), "{place} was changed before it was added");
            }
            // A deletion of an object that came and went in between is ignored, as informers do.
            "DELETED" => drop(state.remove(&place)),
            other => panic!("{other}"),
        }
        if place == last {
            return;
        }
    }
}

#[test]
fn a_watch_goes_on_after_restarts_of_the_hub() {
    let Some(mut fleet) = Fleet::new(3) else {
        return;
    };
    fleet.join(1..=2);
    let start = |member: &Kubectl, name: &str| {
        member.gives(&format!("run {name} --image nginx:1"));
    };
    start(&fleet.members[0], "kept");
    start(&fleet.members[0], "removed");
    start(&fleet.members[1], "other");
    start(&fleet.members[2], "third");
    let shows = |fleet: &Fleet, name: &str| {
        let line = "--context clusterpedia get pods -n default";
        fleet.shows_until(line, |output| output.stdout.contains(name));
    };
    for name in ["kept", "removed", "other"] {
        shows(&fleet, name);
    }
    let (mut state, version) = list(&fleet, "pods");
    assert_eq!(state.len(), 3);
    fleet.members[0].gives("label pod kept a=1");
    fleet.members[0].gives("label pod kept b=2");
    start(&fleet.members[0], "before");
    shows(&fleet, "before");
    fleet.hub = fleet.hub.restarted();
    fleet.members[0].gives("delete pod removed --force --wait=false");
    fleet.members[1].gives("label pod other a=1");
    fleet.hub = fleet.hub.killed();
    start(&fleet.members[1], "between");
    fleet.hub = fleet.hub.started();
    fleet.synced("c1");
    fleet.synced("c2");
    shows(&fleet, "between");
    // The events since the version of before the restarts lead from the old list to the present one.
    let mut following = watch(&fleet, "pods", &format!("resourceVersion={version}"));
    start(&fleet.members[0], "last");
    apply_until(&mut following, &mut state, "c1/default/last");
    let (now, _) = list(&fleet, "pods");
    assert_eq!(state, now);
    assert!(!now.contains_key("c1/default/removed"));
    // Live changes come one by one.
    for value in ["x", "y", "z"] {
        fleet.members[1].gives(&format!("label pod other live={value} --overwrite"));
    }
    for value in ["x", "y", "z"] {
        let (kind, place, object) = next(&mut following);
        assert_eq!(
            (kind.as_str(), place.as_str()),
            ("MODIFIED", "c2/default/other")
        );
        assert_eq!(object["metadata"]["labels"]["live"], value);
        state.insert(place, object);
    }
    // A member that joins shows its objects on the open stream.
    fleet.join(3..=3);
    apply_until(&mut following, &mut state, "c3/default/third");
    assert_eq!(state, list(&fleet, "pods").0);
    // The end of the state is marked.
    let mut whole = watch(
        &fleet,
        "pods",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    );
    let mut initial = State::new();
    loop {
        let event = whole.json();
        if event["type"] == "BOOKMARK" {
            let annotations = &event["object"]["metadata"]["annotations"];
            assert_eq!(
                annotations["k8s.io/initial-events-end"], "true",
                "{event:#}"
            );
            break;
        }
        assert_eq!(event["type"], "ADDED", "{event:#}");
        initial.insert(place(&event["object"]), event["object"].clone());
    }
    assert_eq!(initial, state);
}

/// Asks for a list as long as no server answers or the server asks to wait. Returns the first list, and how often it asked.
async fn first_list(client: &kube::Client) -> (Vec<String>, usize) {
    let (begun, mut waited) = (Instant::now(), 0);
    loop {
        let path = format!("{VIEWS}/api/v1/namespaces/default/configmaps");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        match client.request::<Value>(request).await {
            Ok(list) => return (places(&list), waited),
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 503, "{status:?}");
                waited += 1;
            }
            // It does not listen.
            Err(_) => {}
        }
        assert!(begun.elapsed() < PATIENCE, "there is no list");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_starts_lists_no_members_or_all() {
    use tokio::task::block_in_place;
    let Some(mut fleet) = block_in_place(|| Fleet::joined(4)) else {
        return;
    };
    let wanted = [1, 2, 3, 4].map(|number| format!("c{number}/default/a"));
    block_in_place(|| {
        for member in &fleet.members {
            member.gives("create configmap a --from-literal a=1");
        }
        eventually("all members are listed", || {
            let (found, _) = list(&fleet, "configmaps");
            let all = wanted.iter().all(|place| found.contains_key(place));
            all.then_some(())
        });
    });
    let client = fleet.hub.home.client().await;
    for _ in 0..3 {
        fleet.hub = block_in_place(|| fleet.hub.killed());
        let asking = client.clone();
        let first = tokio::spawn(async move { first_list(&asking).await });
        fleet.hub = block_in_place(|| fleet.hub.started());
        let (mut found, waited) = first.await.unwrap();
        println!("it asked to wait {waited} times");
        found.retain(|place| place.ends_with("/a"));
        found.sort();
        assert_eq!(found, wanted);
    }
}

#[test]
fn a_watch_from_before_the_retention_is_refused() {
    let Some(mut fleet) = Fleet::new_with(1, &["--fleet-retain", "1s"]) else {
        return;
    };
    fleet.join(1..=1);
    fleet.members[0].gives("create configmap a --from-literal a=1");
    fleet.shows_until("--context c1 get configmaps -n default", |output| {
        output.stdout.contains("a ")
    });
    let (_, version) = list(&fleet, "configmaps");
    fleet.members[0].gives("delete configmap a");
    let refused = |fleet: &Fleet| {
        let path =
            format!("/api/v1/configmaps?watch=true&resourceVersion={version}&timeoutSeconds=1");
        eventually("the version is too old", || {
            let text = fleet.hub.gives(&format!("get --raw '{VIEWS}{path}'"));
            let first = text.lines().next()?;
            let event: Value = serde_json::from_str(first).unwrap();
            (event["type"] == "ERROR")
                .then(|| assert_eq!(event["object"]["code"], 410, "{event:#}"))
        });
    };
    refused(&fleet);
    fleet.hub = fleet.hub.restarted();
    refused(&fleet);
}

#[test]
fn a_member_that_forgot_is_listed_once_and_each_event_comes_once() {
    let witness = Witness::new();
    let Some(fleet) = Fleet::new(0) else {
        return;
    };
    let Some(member) = witness.start(&["--retain-revisions", "16"]) else {
        return;
    };
    let proxy = Proxy::to(member.home.port());
    for name in ["a", "b", "c"] {
        member.gives(&format!("create configmap {name} --from-literal a=1"));
    }
    // A controller of the member writes it, which must not be an event later.
    member.until("get configmaps -o name", "kube-root-ca.crt");
    let spec = json!({
        "kubeconfig": kubeconfig(&member, Some(proxy.port)),
        "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
    });
    fleet.apply("c1", spec, json!({}));
    fleet.synced("c1");
    let (mut state, version) = list(&fleet, "configmaps");
    let mut following = watch(&fleet, "configmaps", &format!("resourceVersion={version}"));
    let old = member.gives("get configmap c -o jsonpath={.metadata.resourceVersion}");
    let asked = witness.asked();
    proxy.set_down(true);
    fleet.until("c1", |cluster| {
        condition(cluster, "ClusterHealthy").1 == "NotReachable"
    });
    member.gives("delete configmap b");
    member.gives("create configmap b2 --from-literal a=1");
    for value in 0..40 {
        member.gives(&format!("label configmap a n={value} --overwrite"));
    }
    eventually("the member forgets", || {
        let path = format!("/api/v1/configmaps?watch=true&resourceVersion={old}&timeoutSeconds=1");
        let output = run(&mut member.command(&format!("get --raw '{path}'")), "");
        output.all().contains("too old").then_some(())
    });
    proxy.set_down(false);
    eventually("the view has what is new", || {
        list(&fleet, "configmaps")
            .0
            .contains_key("c1/default/b2")
            .then_some(())
    });
    fleet.synced("c1");
    let since = witness.asked().since(&asked);
    assert_eq!(since.lists.get("configmaps"), Some(&1), "{since:?}");
    assert!(since.lists.values().all(|count| *count == 1), "{since:?}");
    member.gives("create configmap last --from-literal a=1");
    let mut deletions = 0;
    let mut changes = Vec::new();
    loop {
        let (kind, place, object) = next(&mut following);
        if kind == "DELETED" {
            deletions += 1;
            assert_eq!(place, "c1/default/b");
            state.remove(&place);
            continue;
        }
        changes.push(format!("{kind} {place}"));
        state.insert(place.clone(), object);
        if place == "c1/default/last" {
            break;
        }
    }
    assert_eq!(deletions, 1);
    changes.sort();
    // Rows that did not change made no event.
    assert_eq!(
        changes,
        [
            "ADDED c1/default/b2",
            "ADDED c1/default/last",
            "MODIFIED c1/default/a"
        ]
    );
    assert_eq!(state, list(&fleet, "configmaps").0);
}

#[test]
fn a_hub_that_is_killed_while_it_syncs_has_rows_and_version_together() {
    let witness = Witness::new();
    let Some(mut fleet) = Fleet::new(0) else {
        return;
    };
    let Some(member) = witness.start(&[]) else {
        return;
    };
    fleet.members.push(member);
    fleet.join(1..=1);
    let (mut state, version) = list(&fleet, "configmaps");
    let asked = witness.asked();
    let load = Load::start(&fleet.members[0]);
    // A moment after its start the hub may not know its members yet.
    let rev = |fleet: &Fleet| -> i64 {
        let known = || fleet.view("--context clusterpedia get configmaps -n default");
        eventually("the type is known", || {
            known().status.success().then_some(())
        });
        list(fleet, "configmaps").1.parse().unwrap()
    };
    for round in 0..5_u64 {
        // It syncs: rows are written while it is killed.
        let before = rev(&fleet);
        eventually("rows are written", || {
            (rev(&fleet) > before + 20).then_some(())
        });
        sleep(Duration::from_millis(13 * round));
        fleet.hub = fleet.hub.killed();
        load.more(30);
        fleet.hub = fleet.hub.started();
    }
    load.end();
    fleet.members[0].gives("create configmap last --from-literal a=1");
    let shown = || {
        rev(&fleet);
        list(&fleet, "configmaps")
            .0
            .contains_key("c1/default/last")
            .then_some(())
    };
    eventually("the last change is shown", shown);
    // The shelf has what the member has, in the versions that the member has.
    let own = own_versions(&fleet.members[0], "c1");
    let (now, _) = list(&fleet, "configmaps");
    let versions = shown_versions(&now);
    assert_eq!(versions, own);
    // Nothing was listed, so the saved version was never ahead of the rows; it was never lost either.
    let since = witness.asked().since(&asked);
    assert_eq!(since.lists, BTreeMap::new(), "{since:?}");
    assert_eq!(since.watches.len(), COUNTED.len(), "{since:?}");
    // A client that watched before the kills comes to the same state.
    let mut following = watch(&fleet, "configmaps", &format!("resourceVersion={version}"));
    apply_until(&mut following, &mut state, "c1/default/last");
    assert_eq!(state, now);
}

#[test]
fn a_hub_that_is_killed_while_it_fills_a_type_again_deletes_once() {
    let witness = Witness::new();
    let Some(mut fleet) = Fleet::new(0) else {
        return;
    };
    let Some(member) = witness.start(&["--retain-revisions", "16"]) else {
        return;
    };
    let proxy = Proxy::to(member.home.port());
    super::load::fill(&member, 3000);
    member.gives("create configmap gone --from-literal a=1");
    let spec = json!({
        "kubeconfig": kubeconfig(&member, Some(proxy.port)),
        "syncResources": [{"group": "", "resources": ["configmaps"]}],
    });
    fleet.apply("c1", spec, json!({}));
    fleet.synced("c1");
    fleet.contexts();
    let (mut state, version) = list(&fleet, "configmaps");
    let old = member.gives("get configmap gone -o jsonpath={.metadata.resourceVersion}");
    let asked = witness.asked();
    proxy.set_down(true);
    proxy.drop_all();
    fleet.until("c1", |cluster| {
        condition(cluster, "ClusterHealthy").1 == "NotReachable"
    });
    member.gives("delete configmap gone");
    for value in 0..40 {
        member.gives(&format!("label configmap fill-7 n={value} --overwrite"));
    }
    eventually("the member forgets", || {
        let path = format!("/api/v1/configmaps?watch=true&resourceVersion={old}&timeoutSeconds=1");
        let output = run(&mut member.command(&format!("get --raw '{path}'")), "");
        output.all().contains("too old").then_some(())
    });
    // The member is slow, so that the hub dies in the midst.
    proxy.set_delay(Duration::from_millis(150));
    proxy.set_down(false);
    fleet.until("c1", |cluster| {
        let types = super::sync_conditions(cluster);
        types
            .iter()
            .any(|(name, status)| name == "configmaps" && status == "Pending")
    });
    fleet.hub = fleet.hub.killed();
    proxy.set_delay(Duration::ZERO);
    fleet.hub = fleet.hub.started();
    fleet.synced("c1");
    member.gives("create configmap last --from-literal a=1");
    let own = || own_versions(&member, "c1");
    eventually("the shelf has what the member has", || {
        let now = shown_versions(&list(&fleet, "configmaps").0);
        (now == own()).then_some(())
    });
    let since = witness.asked().since(&asked);
    let lists = since.lists.get("configmaps").copied().unwrap_or(0);
    assert!((1..=3).contains(&lists), "{since:?}");
    // A client that watched before sees each change once.
    let mut following = watch(&fleet, "configmaps", &format!("resourceVersion={version}"));
    let mut deletions = 0;
    loop {
        let (kind, place, object) = next(&mut following);
        match kind.as_str() {
            "DELETED" => {
                deletions += 1;
                assert_eq!(place, "c1/default/gone");
                state.remove(&place);
            }
            _ => drop(state.insert(place.clone(), object)),
        }
        if place == "c1/default/last" {
            break;
        }
    }
    assert_eq!(deletions, 1);
    assert_eq!(state, list(&fleet, "configmaps").0);
}
