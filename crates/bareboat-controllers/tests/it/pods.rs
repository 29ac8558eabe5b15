//! The end of pods nobody runs.

use crate::world::World;
use bareboat_api::value;
use bareboat_controllers::Options;
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
