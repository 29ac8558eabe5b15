//! Resource quotas: what they refuse, and what their status tells.

use crate::world::{DEFINITIONS, World, config, configs, definition};
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

impl World {
    async fn until_used(&self, name: &str, resource: &str, amount: &str) {
        let path = format!("{QUOTAS}/{name}");
        self.until_it(&path, |quota| {
            used(quota, resource).as_deref() == Some(amount)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_in_force_when_its_creator_learns_of_it() {
    let world = World::new().await;
    world.create(&configs("default"), config_map("one")).await;
    world
        .create(QUOTAS, quota("q", value!({"count/configmaps": "1"})))
        .await;
    let refused = create(&world.client, &configs("default"), config_map("two")).await;
    let status = refused.expect_err("the second is one too many");
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "configmaps \"two\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1"
    );
    world.until_used("q", "count/configmaps", "1").await;
    let quota = world
        .get(&format!("{QUOTAS}/q"))
        .await
        .expect("it is there");
    assert_eq!(quota.at(&["status", "hard"]), quota.at(&["spec", "hard"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_at_once_do_not_get_past_a_quota() {
    let world = World::new().await;
    world
        .create(QUOTAS, quota("q", value!({"configmaps": "10"})))
        .await;
    let mut writers = JoinSet::new();
    for number in 0..60 {
        let client = world.client.clone();
        // Every name is tried twice: who loses a race against itself gives its share back.
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
    // Whatever was lost in races, what is left can be had, and no more.
    for number in created..10 {
        world
            .create(&configs("default"), config_map(&format!("late{number}")))
            .await;
    }
    let refused = create(&world.client, &configs("default"), config_map("over")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    world.until_used("q", "configmaps", "10").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_can_be_had_again() {
    let world = World::new().await;
    world
        .create(QUOTAS, quota("q", value!({"configmaps": "1"})))
        .await;
    for _ in 0..5 {
        world.create(&configs("default"), config_map("one")).await;
        world.until_used("q", "configmaps", "1").await;
        world.delete(&config("one"), "Background").await;
        world.until_used("q", "configmaps", "0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_charged_for_what_they_ask_for() {
    let world = World::new().await;
    world
        .create(
            QUOTAS,
            quota("q", value!({"requests.cpu": "1", "pods": "3"})),
        )
        .await;
    let refused = create(&world.client, PODS, pod("a", None)).await;
    assert_eq!(
        refused.expect_err("it does not say what it needs").message,
        "pods \"a\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
    world.create(PODS, pod("a", Some("600m"))).await;
    let refused = create(&world.client, PODS, pod("b", Some("500m"))).await;
    assert_eq!(
        refused.expect_err("it asks for too much").message,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    world.create(PODS, pod("b", Some("400m"))).await;
    world.until_used("q", "requests.cpu", "1").await;
    // What has ended takes nothing any more.
    let done = value!({"status": {"phase": "Succeeded"}});
    let status = format!("{PODS}/a/status");
    world
        .client
        .merge(&status, &done)
        .await
        .expect("it can end");
    world.until_used("q", "requests.cpu", "400m").await;
    world.until_used("q", "pods", "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_choose_what_is_counted() {
    let world = World::new().await;
    let mut best = quota("best", value!({"pods": "1"}));
    let spec = best.make_object().object_mut("spec");
    spec.insert("scopes", value!(["BestEffort"]));
    world.create(QUOTAS, best).await;
    world.create(PODS, pod("a", Some("1"))).await;
    world.create(PODS, pod("b", None)).await;
    let refused = create(&world.client, PODS, pod("c", None)).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    world.create(PODS, pod("d", Some("1"))).await;
    world.until_used("best", "pods", "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_kinds_are_counted_by_their_names() {
    let world = World::new().await;
    world
        .create(DEFINITIONS, definition("things", "Thing", "Namespaced"))
        .await;
    let path = "/apis/example.com/v1/namespaces/default/things";
    let thing = |name: &str| value!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}});
    world
        .create(
            QUOTAS,
            quota("q", value!({"count/things.example.com": "1"})),
        )
        .await;
    world.create(path, thing("a")).await;
    let refused = create(&world.client, path, thing("b")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    world.until_used("q", "count/things.example.com", "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_pays_for_what_it_becomes() {
    let world = World::new().await;
    let path = "/api/v1/namespaces/default/services";
    world
        .create(QUOTAS, quota("q", value!({"services.nodeports": "1"})))
        .await;
    let service = value!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"type": "ClusterIP", "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
    });
    world.create(path, service).await;
    let open = value!({"spec": {"type": "NodePort"}});
    let refused = world.client.merge(&format!("{path}/s"), &open).await;
    let status = refused.expect_err("two ports are one too many");
    assert!(
        status.message.contains("requested: services.nodeports=2"),
        "{status}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_refused_but_holds_nothing() {
    let world = World::new().await;
    world
        .create(QUOTAS, quota("q", value!({"configmaps": "1"})))
        .await;
    let dry = format!("{}?dryRun=All", configs("default"));
    for _ in 0..3 {
        create(&world.client, &dry, config_map("one"))
            .await
            .expect("there is room");
    }
    world.create(&configs("default"), config_map("one")).await;
    let refused = create(&world.client, &dry, config_map("two")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_quotas_and_new_starts_count_again() {
    let off = Options {
        quotas: false,
        ..Options::default()
    };
    let world = World::with(off, |_| {}).await;
    world
        .create(QUOTAS, quota("q", value!({"configmaps": "1"})))
        .await;
    for name in ["one", "two"] {
        world.create(&configs("default"), config_map(name)).await;
    }
    // Nobody counted; from now on somebody does.
    let world = world.restarted(Options::default()).await;
    world.until_used("q", "configmaps", "2").await;
    let more = value!({"spec": {"hard": {"configmaps": "3", "secrets": "5"}}});
    let path = format!("{QUOTAS}/q");
    world
        .client
        .merge(&path, &more)
        .await
        .expect("it can be changed");
    world.create(&configs("default"), config_map("three")).await;
    let refused = create(&world.client, &configs("default"), config_map("four")).await;
    assert_eq!(refused.map_err(|status| status.code), Err(403));
    world.until_used("q", "secrets", "0").await;
    // Without quotas there are no limits.
    world.delete(&path, "Background").await;
    world.create(&configs("default"), config_map("four")).await;
}
