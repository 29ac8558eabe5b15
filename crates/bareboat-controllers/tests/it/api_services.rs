//! APIServices for what is served here.

use crate::world::{DEFINITIONS, World, definition};
use bareboat_api::{Object, Value, value};
use bareboat_controllers::Options;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

fn path(name: &str) -> String {
    format!("{SERVICES}/{name}")
}

fn priorities(service: &Object) -> (Option<i64>, Option<i64>) {
    let number = |key| service.at(&["spec", key]).and_then(Value::as_i64);
    (number("groupPriorityMinimum"), number("versionPriority"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_that_is_served_is_registered() {
    let world = World::new().await;
    for (name, group, version) in [
        ("v1.", 18000, 1),
        ("v1.apps", 17800, 15),
        ("v2.autoscaling", 17500, 30),
        ("v1.flowcontrol.apiserver.k8s.io", 16100, 21),
    ] {
        world
            .until(name, async || world.exists(&path(name)).await)
            .await;
        let service = world.get(&path(name)).await.expect("it is there");
        assert_eq!(priorities(&service), (Some(group), Some(version)), "{name}");
        assert_eq!(service.label(LABEL), Some("onstart"), "{name}");
        let conditions = service
            .at(&["status", "conditions"])
            .and_then(Value::as_array);
        let reason = conditions.and_then(|list| list.first()?.get("reason")?.as_str());
        assert_eq!(reason, Some("Local"), "{name}");
    }
    assert!(!world.exists(&path("v1.apiregistration.k8s.io")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_groups_come_and_go_with_their_last_kind() {
    let world = World::new().await;
    world
        .create(DEFINITIONS, definition("things", "Thing", "Namespaced"))
        .await;
    let name = path("v1.example.com");
    world
        .until_it(&name, |service| service.label(LABEL) == Some("true"))
        .await;
    let service = world.get(&name).await.expect("it is there");
    assert_eq!(priorities(&service), (Some(1000), Some(100)));
    let first = service.uid().to_owned();
    world
        .create(DEFINITIONS, definition("others", "Other", "Namespaced"))
        .await;
    // What is taken away or bent is set right.
    world.delete(&name, "Background").await;
    world
        .until_it(&name, |service| service.uid() != first)
        .await;
    let bend = value!({"spec": {"versionPriority": 5}});
    world
        .client
        .merge(&name, &bend)
        .await
        .expect("it can be changed");
    world
        .until_it(&name, |service| priorities(service).1 == Some(100))
        .await;

    world
        .delete(&format!("{DEFINITIONS}/things.example.com"), "Background")
        .await;
    world
        .until_gone(&format!("{DEFINITIONS}/things.example.com"))
        .await;
    world.settle().await;
    assert!(world.exists(&name).await, "another kind is in it");
    world
        .delete(&format!("{DEFINITIONS}/others.example.com"), "Background")
        .await;
    world.until_gone(&name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_registered_is_theirs_and_what_is_no_longer_served_goes() {
    let off = Options {
        api_services: false,
        ..Options::default()
    };
    let world = World::with(off, |_| {}).await;
    let service = |group: &str, labels: Value| {
        value!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": (format!("v1.{group}")), "labels": labels},
            "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 7},
        })
    };
    world.create(SERVICES, service("apps", value!({}))).await;
    world
        .create(
            SERVICES,
            service("gone.example.com", value!({LABEL: "onstart"})),
        )
        .await;
    world
        .create(SERVICES, service("batch", value!({LABEL: "onstart"})))
        .await;
    let world = world.restarted(Options::default()).await;
    world.until_gone(&path("v1.gone.example.com")).await;
    world
        .until_it(&path("v1.batch"), |service| {
            priorities(service).0 == Some(17400)
        })
        .await;
    let own = world.get(&path("v1.apps")).await.expect("it is there");
    assert_eq!(priorities(&own), (Some(7), Some(7)));
}
