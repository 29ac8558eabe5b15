//! Owner search in one member and in several.

use crate::rig::{P, Rig, deployment, pod};
use bareboat::api::{Value, value};

fn owned(mut object: Value, kind: &str, name: &str, uid: &str) -> Value {
    let owners = value!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    object
        .make_object()
        .object_mut("metadata")
        .insert("ownerReferences", owners);
    object
}

async fn filled() -> Rig {
    let rig = Rig::start().await;
    for cluster in ["c1", "c2"] {
        rig.put(cluster, deployment("default", "web", 1));
        let set = value!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"namespace": "default", "name": "web-1"}});
        let uid = format!("{cluster}-Deployment-default-web");
        rig.put(cluster, owned(set, "Deployment", "web", &uid));
        let uid = format!("{cluster}-ReplicaSet-default-web-1");
        rig.put(
            cluster,
            owned(
                pod("default", "web-1-x", "Running"),
                "ReplicaSet",
                "web-1",
                &uid,
            ),
        );
        rig.put(cluster, pod("default", "alone", "Running"));
    }
    rig
}

#[tokio::test]
async fn descendants_of_one_cluster_are_found() {
    let rig = filled().await;
    let pods = format!("{P}/clusters/c1/api/v1/namespaces/default/pods");
    for query in [
        "ownerName=web&ownerGR=deployments.apps&ownerSeniority=1",
        "ownerName=web&ownerSeniority=1",
        "ownerUID=c1-Deployment-default-web&ownerSeniority=1",
        "labelSelector=search.clusterpedia.io/owner-name%3Dweb,search.clusterpedia.io/owner-seniority%3D1",
        "ownerUID=c1-ReplicaSet-default-web-1",
    ] {
        let found = rig.get(&format!("{pods}?{query}")).await.names();
        assert_eq!(found, ["c1/default/web-1-x"], "{query}");
    }
    for query in [
        "ownerName=web&ownerGR=deployments.apps",
        "ownerUID=c1-Deployment-default-web",
        "ownerName=web&ownerGR=jobs.batch&ownerSeniority=1",
        "ownerName=nothing",
    ] {
        let found = rig.get(&format!("{pods}?{query}")).await.names();
        assert!(found.is_empty(), "{query}: {found:?}");
    }
}

#[tokio::test]
async fn descendants_of_several_clusters_are_found() {
    let rig = filled().await;
    let path = format!("{P}/api/v1/pods?ownerName=web&ownerGR=deployments.apps&ownerSeniority=1");
    let found = rig.get(&path).await.names();
    assert_eq!(found, ["c1/default/web-1-x", "c2/default/web-1-x"]);
}
