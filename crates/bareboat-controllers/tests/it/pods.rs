//! The end of pods nobody runs.

use crate::world::World;
use bareboat_api::{Object, Value, value};
use bareboat_controllers::Options;
use bareboat_storage::Write;
use std::time::{Duration, Instant};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(world: &World, name: &str) {
    let pod = value!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
    });
    world.create(PODS, pod).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_goes_when_its_grace_period_is_over() {
    let world = World::new().await;
    pod(&world, "p").await;
    let path = format!("{PODS}/p");
    let begun = Instant::now();
    let options = value!({"kind": "DeleteOptions", "gracePeriodSeconds": 2});
    world.client.delete(&path, &options).await.unwrap();
    world.until_gone(&path).await;
    assert!(begun.elapsed() >= Duration::from_millis(900));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_stays_where_a_kubelet_looks_after_it() {
    let options = Options {
        pods: false,
        ..Options::default()
    };
    let world = World::with(options, |_| {}).await;
    pod(&world, "p").await;
    let path = format!("{PODS}/p");
    let options = value!({"kind": "DeleteOptions", "gracePeriodSeconds": 1});
    world.client.delete(&path, &options).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(world.exists(&path).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_deletion_a_crash_cut_short_is_gone_after_the_start() {
    let options = Options {
        pods: false,
        ..Options::default()
    };
    let world = World::with(options, |_| {}).await;
    for name in ["cut", "held", "whole"] {
        pod(&world, name).await;
    }
    // A deletion without a grace period is stored in two steps. The server ends after the first.
    let store = world.client.server().store().clone();
    let resource = store.resource("core/pods");
    for (name, finalizers) in [("cut", value!([])), ("held", value!(["example.com/held"]))] {
        let entry = resource.get(&format!("default/{name}")).unwrap();
        let parsed = bareboat_wire::json::parse(entry.json()).unwrap();
        let mut begun = Object::try_from(parsed.value).unwrap();
        begun.remove_meta("resourceVersion");
        begun.set_meta("deletionTimestamp", Value::string("2026-01-01T00:00:00Z"));
        begun.set_meta("deletionGracePeriodSeconds", Value::Int(0));
        begun.set_meta("finalizers", finalizers);
        let bytes = bareboat_wire::encode::stored(begun.value());
        let write = Write::replace(&resource, &entry, bytes);
        store.commit(write).await.unwrap();
    }
    let world = world.restarted(Options::default()).await;
    world.until_gone(&format!("{PODS}/cut")).await;
    // Others keep what they hold, and nobody touches a pod that nobody deletes.
    assert!(world.exists(&format!("{PODS}/held")).await);
    assert!(world.exists(&format!("{PODS}/whole")).await);
    let free = value!({"metadata": {"finalizers": null}});
    let held = format!("{PODS}/held");
    world.client.merge(&held, &free).await.unwrap();
    world.until_gone(&held).await;
}
