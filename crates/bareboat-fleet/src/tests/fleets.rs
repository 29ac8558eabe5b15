//! A whole fleet of ghosts: members come, go, fail and lie, and the others do not notice.

use super::ghost::{Ghost, Mood, groups};
use super::hub::Hub;
use bareboat_api::value;
use bareboat_views::Members as _;
use std::sync::atomic::Ordering;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_ghosts_are_synced_while_others_misbehave() {
    let hub = Hub::start_limited(|settings| settings.shelf.rows_per_member = 2000).await;
    let endless = Ghost::new(10);
    endless.set(Mood::Endless);
    let silent = Ghost::new(10);
    silent.set(Mood::Silent);
    let down = Ghost::new(10);
    down.set(Mood::Down);
    hub.join("endless", &endless).await;
    hub.join("silent", &silent).await;
    hub.join("down", &down).await;
    let ghosts: Vec<_> = (0..20).map(|_| Ghost::new(1000)).collect();
    for (number, ghost) in ghosts.iter().enumerate() {
        hub.join(&format!("g{number}"), ghost).await;
    }
    for number in 0..20 {
        let name = format!("g{number}");
        hub.ready(&name).await;
        hub.has_rows(&name, "pods", 1000).await;
        hub.in_sync(&name).await;
    }
    for ghost in &ghosts {
        assert_eq!(ghost.state.lock().lists, 1);
    }
    assert!(hub.rows("endless", "", "pods") <= 2500);
    let what = "the ghost that is down is not reachable";
    hub.until(what, || async {
        hub.condition("down", "ClusterHealthy").await.1 == "NotReachable"
    })
    .await;
    let fleet = hub.fleet.fleet();
    assert!(fleet.members["g3"].in_sync && fleet.members["g3"].ready);
    assert!(!fleet.members["down"].ready);
    assert_eq!(fleet.members["g3"].types.len(), 3);
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_restarts_do_not_list_again() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(100);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.has_rows("g", "pods", 100).await;
    hub.in_sync("g").await;
    ghost.send("ADDED", 200, 1_000_001);
    ghost.send("DELETED", 5, 1_000_002);
    ghost.send("ADDED", 201, 1_000_003);
    hub.has_rows("g", "pods", 101).await;
    let hub = hub.crash().await;
    hub.ready("g").await;
    assert_eq!(hub.rows("g", "", "pods"), 101);
    // It is down for a while.
    ghost.set(Mood::Down);
    hub.until("it is not reachable", || async {
        hub.condition("g", "ClusterHealthy").await.1 == "NotReachable"
    })
    .await;
    assert_eq!(
        hub.condition("g", "Ready").await,
        ("False".to_owned(), "NotReady".to_owned())
    );
    assert_eq!(hub.rows("g", "", "pods"), 101, "rows stay");
    ghost.set(Mood::Good);
    hub.ready("g").await;
    assert_eq!(ghost.state.lock().lists, 1);
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_withdrawn_because_discovery_fails() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.in_sync("g").await;
    let types = || hub.fleet.fleet().members["g"].types.len();
    assert_eq!(types(), 3);
    // Discovery fails, says nothing, or says that it is not complete. It is asked every 400 ms here.
    let bad = [
        Err(500),
        Ok(value!({"kind": "Nonsense"})),
        Ok(groups(&[("apps", "other", "Other", "Stale")])),
    ];
    for answer in bad {
        ghost.state.lock().groups = answer;
        for _ in 0..3 {
            hub.apply(
                "g",
                value!([{"group": "", "resources": ["pods"]}, {"group": "*", "resources": ["*"]}]),
            )
            .await;
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        }
        let kept = hub.fleet.fleet().members["g"]
            .types
            .iter()
            .any(|one| one.resource == "deployments");
        assert!(kept, "the type was withdrawn");
    }
    // A complete answer without the type counts, if it stays so.
    ghost.state.lock().groups = Ok(groups(&[("batch", "jobs", "Job", "Current")]));
    hub.until("the type is gone", || async {
        let fleet = hub.fleet.fleet();
        let types = &fleet.members["g"].types;
        types.iter().all(|one| one.resource != "deployments")
            && types.iter().any(|one| one.resource == "jobs")
    })
    .await;
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_and_members_leave_with_their_rows() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.has_rows("g", "pods", 10).await;
    hub.apply(
        "g",
        value!([{"group": "apps", "resources": ["deployments"]}]),
    )
    .await;
    hub.has_rows("g", "pods", 0).await;
    assert_eq!(hub.rows("g", "", "namespaces"), 0);
    hub.apply("g", value!([{"group": "", "resources": ["pods"]}]))
        .await;
    hub.has_rows("g", "pods", 10).await;
    let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters/g";
    hub.client
        .delete(path, &value!({}))
        .await
        .expect("a PediaCluster can be deleted");
    hub.until("the object is gone", || async {
        hub.cluster("g").await.is_err()
    })
    .await;
    // Rows go first.
    assert_eq!(hub.rows("g", "", "pods"), 0);
    assert!(hub.fleet.fleet().members.is_empty());
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_cluster_under_the_same_name_is_listed_again() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.has_rows("g", "pods", 10).await;
    hub.in_sync("g").await;
    ghost.set(Mood::Down);
    hub.until("it is not reachable", || async {
        hub.condition("g", "ClusterHealthy").await.1 == "NotReachable"
    })
    .await;
    {
        let mut state = ghost.state.lock();
        state.uid = "system-2".to_owned();
        state.pods = 7;
    }
    ghost.set(Mood::Good);
    hub.has_rows("g", "pods", 7).await;
    assert_eq!(ghost.state.lock().lists, 2);
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_lead_has_no_members() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.in_sync("g").await;
    hub.leads.send_replace(false);
    hub.until("it has no members", || async {
        hub.fleet.fleet().members.is_empty()
    })
    .await;
    let connected = hub.connections.load(Ordering::Relaxed);
    hub.leads.send_replace(true);
    hub.until("it leads again", || async {
        hub.fleet.fleet().members.contains_key("g")
    })
    .await;
    hub.until("it connects again", || async {
        hub.connections.load(Ordering::Relaxed) > connected
    })
    .await;
    hub.in_sync("g").await;
    assert_eq!(ghost.state.lock().lists, 1, "the watch was resumed");
    assert!(hub.parts().table.get("g").is_some());
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_another_shard_keeps_its_rows_and_its_profile() {
    let hub = Hub::start_limited(|settings| settings.sharding_name = "here".to_owned()).await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.has_rows("g", "pods", 10).await;
    hub.in_sync("g").await;
    let profile =
        "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/clusterpedia-system/clusterprofiles/g";
    let published = || async {
        let get = hub
            .client
            .request(http::Method::GET, profile, "application/json", None);
        get.await.is_ok()
    };
    hub.until("the profile is published", published).await;
    let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters/g";
    let client = &hub.client;
    let shard = |name: &'static str| async move {
        let patch = value!({"spec": {"shardingName": name}});
        let changed = client.merge(path, &patch).await;
        changed.expect("a PediaCluster can be changed");
    };
    shard("there").await;
    hub.until("the session ended", || async {
        hub.fleet.fleet().members.is_empty()
    })
    .await;
    // The other server writes the status from here on, and this one leaves it alone.
    let status = value!({"status": {"shardingName": "there"}});
    let written = hub.client.merge(&format!("{path}/status"), &status).await;
    written.expect("the status can be written");
    ghost.send("ADDED", 200, 1_000_001);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(hub.rows("g", "", "pods"), 10, "rows stay as they are");
    assert!(published().await, "the profile stays");
    let cluster = hub.cluster("g").await.expect("the object is there");
    let name = cluster.at(&["status", "shardingName"]);
    assert_eq!(name.and_then(|name| name.as_str()), Some("there"));
    // It comes back, and the watch goes on where it ended.
    shard("here").await;
    hub.has_rows("g", "pods", 10).await;
    hub.in_sync("g").await;
    assert_eq!(ghost.state.lock().lists, 1);
    // Another server removes the member: this one does not release it.
    shard("there").await;
    hub.until("the session ended", || async {
        hub.fleet.fleet().members.is_empty()
    })
    .await;
    hub.client
        .delete(path, &value!({}))
        .await
        .expect("a PediaCluster can be deleted");
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let cluster = hub.cluster("g").await.expect("the other server holds it");
    let finalizers = cluster.at(&["metadata", "finalizers"]);
    assert!(finalizers.is_some(), "{cluster:?}");
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_says_so() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.join("g", &ghost).await;
    hub.ready("g").await;
    hub.in_sync("g").await;
    hub.fleet.stop().await;
    let condition = hub.condition("g", "SynchroRunning").await;
    assert_eq!(condition, ("False".to_owned(), "Shutdown".to_owned()));
    let cluster = hub.cluster("g").await.expect("the object is there");
    let text = cluster.to_json();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("\"status\":\"Stop\""), "{text}");
    assert!(!text.contains("\"status\":\"Syncing\""), "{text}");
    // It goes on at the next start.
    let hub = hub.crash().await;
    hub.ready("g").await;
    let condition = hub.condition("g", "SynchroRunning").await;
    assert_eq!(condition, ("True".to_owned(), "Running".to_owned()));
    assert_eq!(ghost.state.lock().lists, 1);
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selector_of_namespaces_follows_their_labels() {
    // Discovery does not come to its help.
    let hub = Hub::start_limited(|settings| {
        settings.discovery_interval = std::time::Duration::from_secs(3600);
    })
    .await;
    let ghost = Ghost::new(10);
    ghost.name("default", false);
    hub.join("g", &ghost).await;
    hub.apply("g", value!([{"group": "", "resources": ["pods"]}]))
        .await;
    hub.has_rows("g", "pods", 10).await;
    let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters/g";
    let annotations = value!({"fleet.bareboat.dev/sync": "{namespaceSelector: sync=yes}"});
    let patch = value!({"metadata": {"annotations": annotations}});
    let changed = hub.client.merge(path, &patch).await;
    changed.expect("a PediaCluster can be changed");
    hub.has_rows("g", "pods", 0).await;
    ghost.name("default", true);
    hub.has_rows("g", "pods", 10).await;
    let types = &hub.fleet.fleet().members["g"].types;
    let names: Vec<&str> = types.iter().map(|one| one.resource.as_str()).collect();
    assert_eq!(names, ["pods"], "namespaces are not shown");
    // Other namespaces make no difference.
    let lists = ghost.state.lock().lists;
    ghost.name("other", false);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(ghost.state.lock().lists, lists);
    ghost.name("default", false);
    hub.has_rows("g", "pods", 0).await;
    hub.fleet.stop().await;
}
