//! APIServices of group versions that this server serves.

use crate::fixture::{DEFINITIONS, Fixture, definition};
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
async fn every_group_version_has_an_api_service() {
    let fixture = Fixture::new().await;
    for (name, group, version) in [
        ("v1.", 18000, 1),
        ("v1.apps", 17800, 15),
        ("v2.autoscaling", 17500, 30),
        ("v1.flowcontrol.apiserver.k8s.io", 16100, 21),
    ] {
        fixture
            .until(name, async || fixture.exists(&path(name)).await)
            .await;
        let service = fixture.get(&path(name)).await.expect("it is there");
        assert_eq!(priorities(&service), (Some(group), Some(version)), "{name}");
        assert_eq!(service.label(LABEL), Some("onstart"), "{name}");
        let conditions = service
            .at(&["status", "conditions"])
            .and_then(Value::as_array);
        let reason = conditions.and_then(|list| list.first()?.get("reason")?.as_str());
        assert_eq!(reason, Some("Local"), "{name}");
    }
    assert!(!fixture.exists(&path("v1.apiregistration.k8s.io")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_service_of_a_custom_group_goes_with_its_last_kind() {
    let fixture = Fixture::new().await;
    fixture
        .create(DEFINITIONS, definition("things", "Thing", "Namespaced"))
        .await;
    let name = path("v1.example.com");
    fixture
        .until_it(&name, |service| service.label(LABEL) == Some("true"))
        .await;
    let service = fixture.get(&name).await.expect("it is there");
    assert_eq!(priorities(&service), (Some(1000), Some(100)));
    let first = service.uid().to_owned();
    fixture
        .create(DEFINITIONS, definition("others", "Other", "Namespaced"))
        .await;
    // A deleted or changed APIService is repaired.
    fixture.delete(&name, "Background").await;
    fixture
        .until_it(&name, |service| service.uid() != first)
        .await;
    let bend = value!({"spec": {"versionPriority": 5}});
    fixture
        .client
        .merge(&name, &bend)
        .await
        .expect("it can be changed");
    fixture
        .until_it(&name, |service| priorities(service).1 == Some(100))
        .await;

    fixture
        .delete(&format!("{DEFINITIONS}/things.example.com"), "Background")
        .await;
    fixture
        .until_gone(&format!("{DEFINITIONS}/things.example.com"))
        .await;
    fixture.settle().await;
    assert!(fixture.exists(&name).await, "another kind is in it");
    fixture
        .delete(&format!("{DEFINITIONS}/others.example.com"), "Background")
        .await;
    fixture.until_gone(&name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_services_of_users_stay_and_outdated_ones_go() {
    let off = Options::without(["api-services"]).unwrap();
    let fixture = Fixture::with(off, |_| {}).await;
    let service = |group: &str, labels: Value| {
        value!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": (format!("v1.{group}")), "labels": labels},
            "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 7},
        })
    };
    fixture.create(SERVICES, service("apps", value!({}))).await;
    fixture
        .create(
            SERVICES,
            service("gone.example.com", value!({LABEL: "onstart"})),
        )
        .await;
    fixture
        .create(SERVICES, service("batch", value!({LABEL: "onstart"})))
        .await;
    let fixture = fixture.restarted(Options::default()).await;
    fixture.until_gone(&path("v1.gone.example.com")).await;
    fixture
        .until_it(&path("v1.batch"), |service| {
            priorities(service).0 == Some(17400)
        })
        .await;
    let own = fixture.get(&path("v1.apps")).await.expect("it is there");
    assert_eq!(priorities(&own), (Some(7), Some(7)));
}
