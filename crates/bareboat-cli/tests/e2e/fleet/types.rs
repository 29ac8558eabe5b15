//! Types come and go: rules of the PediaCluster, definitions of the member, discovery.

use super::{Fleet, condition, kubeconfig, sync_conditions};
use crate::kubectl::fixtures::{FOOS, define};
use serde_json::json;

#[test]
fn a_type_that_is_not_wanted_any_more_is_removed() {
    let Some(fleet) = Fleet::joined(1) else {
        return;
    };
    let member = &fleet.members[0];
    member.gives("create configmap one --from-literal a=b");
    fleet.shows_until(
        "--context clusterpedia get configmaps -n default",
        |output| output.stdout.contains("one"),
    );
    let spec = json!({
        "kubeconfig": kubeconfig(member, None),
        "syncResources": [{"group": "apps", "resources": ["deployments"]}],
    });
    fleet.apply("c1", spec, json!({}));
    let gone = fleet.shows_until(
        "get --raw /apis/clusterpedia.io/v1beta1/resources/api/v1/configmaps",
        |output| !output.status.success(),
    );
    assert!(
        gone.stderr.contains("NotFound") || gone.stderr.contains("not find"),
        "{}",
        gone.all()
    );
    let cluster = fleet.until("c1", |cluster| sync_conditions(cluster).len() == 1);
    assert_eq!(sync_conditions(&cluster)[0].0, "deployments");
    // The member leaves: its rows go first, then the object.
    fleet.hub.gives("delete pediacluster c1 --timeout 240s");
    let list = fleet.refuses("/apis/apps/v1/deployments");
    assert!(
        list.contains("NotFound") || list.contains("not find"),
        "{list}"
    );
    let profiles = "get clusterprofiles -n clusterpedia-system -o name";
    fleet.hub.until_no_more(profiles, "c1");
}

#[test]
fn custom_kinds_are_followed() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    let spec = json!({
        "kubeconfig": kubeconfig(member, None), "syncAllCustomResources": true,
        "syncResources": [{"group": "", "resources": ["configmaps"]}],
    });
    fleet.apply("c1", spec, json!({}));
    fleet.synced("c1");
    fleet.contexts();
    define(member, FOOS, "foos.samplecontroller.k8s.io");
    member.gives_for(
        "apply -f -",
        "{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: first}, spec: {deploymentName: x, replicas: 1}}",
    );
    let shown = fleet.shows_until("--context clusterpedia get foos -n default", |output| {
        output.stdout.contains("first")
    });
    let heading: Vec<&str> = shown
        .stdout
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(heading[..2], ["CLUSTER", "NAME"], "{}", shown.all());
    member.gives("delete crd foos.samplecontroller.k8s.io --wait=false");
    fleet.shows_until("--context clusterpedia get foos -n default", |output| {
        !output.status.success()
    });
    assert_eq!(condition(&fleet.synced("c1"), "Ready").0, "True");
}

#[test]
fn types_of_a_shared_list_are_synced() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    let spec = json!({
        "kubeconfig": kubeconfig(member, None), "syncResources": [], "syncResourcesRefName": "common",
    });
    fleet.apply("c1", spec, json!({}));
    let missing = fleet.until("c1", |cluster| {
        let conditions = cluster["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions.iter().any(|one| {
            one["message"]
                .as_str()
                .unwrap_or("")
                .contains("no ClusterSyncResources common")
        })
    });
    assert_eq!(condition(&missing, "Validated").0, "True");
    let list = json!({
        "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "ClusterSyncResources",
        "metadata": {"name": "common"}, "spec": {"syncResources": [{"group": "", "resources": ["Pod", "secrets"]}]},
    });
    fleet.hub.gives_for("apply -f -", &list.to_string());
    let cluster = fleet.until("c1", |cluster| {
        let types = sync_conditions(cluster);
        types.len() == 2 && types.iter().all(|(_, status)| status == "Syncing")
    });
    let types: Vec<String> = sync_conditions(&cluster)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(types, ["pods", "secrets"]);
}

#[test]
fn the_annotation_chooses_objects_and_fields() {
    let Some(fleet) = Fleet::new(1) else {
        return;
    };
    let member = &fleet.members[0];
    member.gives("create namespace other");
    member.gives("create configmap kept --from-literal a=b");
    member.gives("create configmap dropped --from-literal a=b");
    member.gives("create configmap elsewhere -n other --from-literal a=b");
    let spec = || {
        json!({
            "kubeconfig": kubeconfig(member, None), "syncResources": [{"group": "", "resources": ["configmaps"]}],
        })
    };
    let options =
        "{namespaces: [default], keep: 'object.metadata.name != \"dropped\"', trim: [data]}";
    fleet.apply("c1", spec(), json!({"fleet.bareboat.dev/sync": options}));
    fleet.synced("c1");
    let list = fleet.raw("/api/v1/configmaps");
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"kept") && !names.contains(&"dropped") && !names.contains(&"elsewhere"),
        "{names:?}"
    );
    assert!(
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item.get("data").is_none()),
        "{list:#}"
    );
    // Without the annotation everything is listed again.
    fleet.apply("c1", spec(), json!({}));
    let begun = std::time::Instant::now();
    loop {
        let list = fleet.raw("/api/v1/configmaps");
        let text = list.to_string();
        if text.contains("elsewhere") && text.contains("dropped") && text.contains("\"data\"") {
            break;
        }
        assert!(begun.elapsed() < crate::process::PATIENCE, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let bad = super::pedia_cluster(
        "c2",
        spec(),
        json!({"fleet.bareboat.dev/sync": "{keep: '1 +'}"}),
    );
    fleet.hub.refuses_for(
        "create -f -",
        &bad.to_string(),
        &["fleet.bareboat.dev/sync", "keep"],
    );
}
