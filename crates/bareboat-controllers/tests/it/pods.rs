//! Deletion of pods at the end of their grace period.

use crate::fixture::Fixture;
use bareboat_api::{Object, Value, value};
use bareboat_controllers::Options;
use bareboat_storage::Write;
use std::time::{Duration, Instant};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(fixture: &Fixture, name: &str) {
    let pod = value!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
    });
    fixture.create(PODS, pod).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_removed_at_the_end_of_its_grace_period() {
    let fixture = Fixture::new().await;
    pod(&fixture, "p").await;
    let path = format!("{PODS}/p");
    let begun = Instant::now();
    let options = value!({"kind": "DeleteOptions", "gracePeriodSeconds": 2});
    fixture.client.delete(&path, &options).await.unwrap();
    fixture.until_gone(&path).await;
    assert!(begun.elapsed() >= Duration::from_millis(900));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_controller_a_deleted_pod_stays() {
    let options = Options::without(["pods"]).unwrap();
    let fixture = Fixture::with(options, |_| {}).await;
    pod(&fixture, "p").await;
    let path = format!("{PODS}/p");
    let options = value!({"kind": "DeleteOptions", "gracePeriodSeconds": 1});
    fixture.client.delete(&path, &options).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(fixture.exists(&path).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_a_crash_interrupted_is_finished_at_the_next_start() {
    let options = Options::without(["pods"]).unwrap();
    let fixture = Fixture::with(options, |_| {}).await;
    for name in ["cut", "held", "whole"] {
        pod(&fixture, name).await;
    }
    // A deletion without a grace period is stored in two steps. The server ends after the first.
    let store = fixture.client.server().store().clone();
    let resource = store.resource("core/pods");
    for (name, finalizers) in [("cut", value!([])), ("held", value!(["example.com/held"]))] {
        let entry = resource.get(&format!("default/{name}")).unwrap();
        let parsed = bareboat_wire::json::parse(entry.json()).unwrap();
        let mut begun = Object::try_from(parsed.value).unwrap();
        begun.remove_meta("resourceVersion");
        begun.set_meta("deletionTimestamp", Value::string("2026-01-01T00:00:00Z"));
        begun.set_meta("deletionGracePeriodSeconds", Value::Int(0));
        begun.set_meta("finalizers", finalizers);
        let bytes = bareboat_wire::encode::persisted(begun.value());
        let write = Write::replace(&resource, &entry, bytes);
        store.commit(write).await.unwrap();
    }
    let fixture = fixture.restarted(Options::default()).await;
    fixture.until_gone(&format!("{PODS}/cut")).await;
    // Finalizers of others are respected, and other pods are left alone.
    assert!(fixture.exists(&format!("{PODS}/held")).await);
    assert!(fixture.exists(&format!("{PODS}/whole")).await);
    let free = value!({"metadata": {"finalizers": null}});
    let held = format!("{PODS}/held");
    fixture.client.merge(&held, &free).await.unwrap();
    fixture.until_gone(&held).await;
}
