//! Resource quotas: which writes they refuse, and their status.

use crate::fixture::{DEFINITIONS, Fixture, config, configs, definition};
use bareboat_api::{Object, Status, Value, value};
use bareboat_controllers::{Client, Options};
use tokio::task::JoinSet;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn quota(name: &str, hard: Value) -> Value {
    let mut quota =
        value!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}});
    let spec = quota.make_object().object_mut("spec");
    spec.insert("hard", hard);
    quota
}

fn pod(name: &str, cpu: Option<&str>) -> Value {
    let resources = match cpu {
        Some(cpu) => value!({"requests": {"cpu": cpu}}),
        None => value!({}),
    };
    value!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

fn config_map(name: &str) -> Value {
    value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

async fn create(client: &Client, path: &str, object: Value) -> Result<Value, Status> {
    client.create(path, &object).await
}

fn used(quota: &Object, resource: &str) -> Option<String> {
    let used = quota.at(&["status", "used", resource])?;
    Some(used.as_str()?.to_owned())
}

impl Fixture {
    async fn until_used(&self, name: &str, resource: &str, amount: &str) {
        let path = format!("{QUOTAS}/{name}");
        self.until_it(&path, |quota| {
            used(quota, resource).as_deref() == Some(amount)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_enforced_as_soon_as_it_is_created() {
    let fixture = Fixture::new().await;
    fixture.create(&configs("default"), config_map("one")).await;
    fixture
        .create(QUOTAS, quota("q", value!({"count/configmaps": "1"})))
        .await;
    let refused = create(&fixture.client, &configs("default"), config_map("two")).await;
    let status = refused.expect_err("the second is one too many");
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "configmaps \"two\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1"
    );
    fixture.until_used("q", "count/configmaps", "1").await;
    let quota = fixture
        .get(&format!("{QUOTAS}/q"))
        .await
        .expect("it is there");
    assert_eq!(quota.at(&["status", "hard"]), quota.at(&["spec", "hard"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_cannot_exceed_a_quota() {
    let fixture = Fixture::new().await;
    fixture
        .create(QUOTAS, quota("q", value!({"configmaps": "10"})))
        .await;
    let mut writers = JoinSet::new();
    for number in 0..60 {
        let client = fixture.client.clone();
        // Every name is tried twice. The write that loses releases its reservation.
        let object = config_map(&format!("c{}", number / 2));
        writers.spawn(async move { create(&client, &configs("default"), object).await });
    }
    let mut created = 0;
    while let Some(ended) = writers.join_next().await {
        match ended.expect("no writer panics") {
            Ok(_) => created += 1,
            Err(status) => assert!(matches!(status.code, 403 | 409), "{status}"),
        }
    }
    assert!(created <= 10, "{created} were created");
    // Exactly the rest of the quota can be used.
    for number in created..10 {
        fixture
            .create(&configs("default"), config_map(&format!("late{number}")))
            .await;
    }
    let refused = create(&fixture.client, &configs("default"), config_map("over")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    fixture.until_used("q", "configmaps", "10").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_releases_its_quota() {
    let fixture = Fixture::new().await;
    fixture
        .create(QUOTAS, quota("q", value!({"configmaps": "1"})))
        .await;
    for _ in 0..5 {
        fixture.create(&configs("default"), config_map("one")).await;
        fixture.until_used("q", "configmaps", "1").await;
        fixture.delete(&config("one"), "Background").await;
        fixture.until_used("q", "configmaps", "0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_use_what_they_request() {
    let fixture = Fixture::new().await;
    fixture
        .create(
            QUOTAS,
            quota("q", value!({"requests.cpu": "1", "pods": "3"})),
        )
        .await;
    let refused = create(&fixture.client, PODS, pod("a", None)).await;
    assert_eq!(
        refused.expect_err("it does not say what it needs").message,
        "pods \"a\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
    fixture.create(PODS, pod("a", Some("600m"))).await;
    let refused = create(&fixture.client, PODS, pod("b", Some("500m"))).await;
    assert_eq!(
        refused.expect_err("it asks for too much").message,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    fixture.create(PODS, pod("b", Some("400m"))).await;
    fixture.until_used("q", "requests.cpu", "1").await;
    // A pod that has ended uses nothing.
    let done = value!({"status": {"phase": "Succeeded"}});
    let status = format!("{PODS}/a/status");
    fixture
        .client
        .merge(&status, &done)
        .await
        .expect("it can end");
    fixture.until_used("q", "requests.cpu", "400m").await;
    fixture.until_used("q", "pods", "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_select_the_objects_that_count() {
    let fixture = Fixture::new().await;
    let mut best = quota("best", value!({"pods": "1"}));
    let spec = best.make_object().object_mut("spec");
    spec.insert("scopes", value!(["BestEffort"]));
    fixture.create(QUOTAS, best).await;
    fixture.create(PODS, pod("a", Some("1"))).await;
    fixture.create(PODS, pod("b", None)).await;
    let refused = create(&fixture.client, PODS, pod("c", None)).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    fixture.create(PODS, pod("d", Some("1"))).await;
    fixture.until_used("best", "pods", "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_kinds_are_counted_by_their_names() {
    let fixture = Fixture::new().await;
    fixture
        .create(DEFINITIONS, definition("things", "Thing", "Namespaced"))
        .await;
    let path = "/apis/example.com/v1/namespaces/default/things";
    let thing = |name: &str| value!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}});
    fixture
        .create(
            QUOTAS,
            quota("q", value!({"count/things.example.com": "1"})),
        )
        .await;
    fixture.create(path, thing("a")).await;
    let refused = create(&fixture.client, path, thing("b")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    fixture
        .until_used("q", "count/things.example.com", "1")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_changes_its_type_is_counted_anew() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/namespaces/default/services";
    fixture
        .create(QUOTAS, quota("q", value!({"services.nodeports": "1"})))
        .await;
    let service = value!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"type": "ClusterIP", "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
    });
    fixture.create(path, service).await;
    let open = value!({"spec": {"type": "NodePort"}});
    let refused = fixture.client.merge(&format!("{path}/s"), &open).await;
    let status = refused.expect_err("two ports are one too many");
    assert!(
        status.message.contains("requested: services.nodeports=2"),
        "{status}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_checked_but_reserves_nothing() {
    let fixture = Fixture::new().await;
    fixture
        .create(QUOTAS, quota("q", value!({"configmaps": "1"})))
        .await;
    let dry = format!("{}?dryRun=All", configs("default"));
    for _ in 0..3 {
        create(&fixture.client, &dry, config_map("one"))
            .await
            .expect("there is room");
    }
    fixture.create(&configs("default"), config_map("one")).await;
    let refused = create(&fixture.client, &dry, config_map("two")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_counted_again_at_the_start_and_when_a_quota_changes() {
    let off = Options::without(["quotas"]).unwrap();
    let fixture = Fixture::with(off, |_| {}).await;
    fixture
        .create(QUOTAS, quota("q", value!({"configmaps": "1"})))
        .await;
    for name in ["one", "two"] {
        fixture.create(&configs("default"), config_map(name)).await;
    }
    // These objects were created before the controller ran.
    let fixture = fixture.restarted(Options::default()).await;
    fixture.until_used("q", "configmaps", "2").await;
    let more = value!({"spec": {"hard": {"configmaps": "3", "secrets": "5"}}});
    let path = format!("{QUOTAS}/q");
    fixture
        .client
        .merge(&path, &more)
        .await
        .expect("it can be changed");
    fixture
        .create(&configs("default"), config_map("three"))
        .await;
    let refused = create(&fixture.client, &configs("default"), config_map("four")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    fixture.until_used("q", "secrets", "0").await;
    // Without quotas there are no limits.
    fixture.delete(&path, "Background").await;
    fixture
        .create(&configs("default"), config_map("four"))
        .await;
}
