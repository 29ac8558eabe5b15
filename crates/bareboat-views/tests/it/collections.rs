//! Collection resources: fixed ones and stored ones.

use crate::rig::{Rig, TABLE, deployment, pod};
use bareboat::api::value;
use std::collections::HashSet;

const C: &str = "/apis/clusterpedia.io/v1beta1/collectionresources";

async fn filled() -> Rig {
    let rig = Rig::start().await;
    rig.put("c1", deployment("a", "web", 1));
    rig.put("c1", value!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": "a", "name": "agent"}, "spec": {}}));
    rig.put("c2", value!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "a", "name": "db"}, "spec": {}}));
    rig.put("c2", pod("a", "x", "Running"));
    rig
}

fn kinds(body: &serde_json::Value) -> HashSet<String> {
    let items = body["items"].as_array().expect("items").iter();
    items
        .filter_map(|item| item["kind"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn fixed_collections_are_listed_and_read() {
    let rig = filled().await;
    let list = rig.get(C).await.expect(200).json();
    assert_eq!(list["kind"], "CollectionResourceList");
    let names: Vec<&str> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["any", "workloads", "kuberesources"]);
    let workloads = rig.get(&format!("{C}/workloads")).await.expect(200).json();
    assert_eq!(workloads["kind"], "CollectionResource");
    assert_eq!(workloads["resourceTypes"].as_array().map(Vec::len), Some(3));
    let expected = ["Deployment", "DaemonSet", "StatefulSet"].map(str::to_owned);
    assert_eq!(kinds(&workloads), HashSet::from(expected));
    let first = rig
        .get(&format!("{C}/workloads?limit=2&withRemainingCount=true"))
        .await
        .expect(200)
        .json();
    assert_eq!(first["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(first["remainingItemCount"], 1);
    let token = first["continue"].as_str().expect("a token");
    let second = rig
        .get(&format!("{C}/workloads?limit=2&continue={token}"))
        .await
        .expect(200)
        .json();
    assert_eq!(second["items"].as_array().map(Vec::len), Some(1));
    assert!(second["continue"].is_null());
    let all = rig
        .get(&format!("{C}/kuberesources"))
        .await
        .expect(200)
        .json();
    assert!(kinds(&all).contains("Pod"));
    rig.get(&format!("{C}/nothing")).await.expect(404);
}

#[tokio::test]
async fn any_needs_groups_or_resources() {
    let rig = filled().await;
    let refused = rig.get(&format!("{C}/any")).await.expect(400);
    assert_eq!(
        refused.message(),
        "url query - `groups` or `resources` is required"
    );
    let found = rig
        .get(&format!(
            "{C}/any?groups=apps&resources=/pods&onlyMetadata=true"
        ))
        .await;
    let found = found.expect(200).json();
    assert_eq!(kinds(&found).len(), 4);
    for item in found["items"].as_array().expect("items") {
        assert!(item["spec"].is_null(), "{item}");
    }
    let core = rig
        .get(&format!("{C}/any?groups="))
        .await
        .expect(200)
        .json();
    assert_eq!(kinds(&core), HashSet::from(["Pod".to_owned()]));
    let one = rig
        .get(&format!(
            "{C}/any?resources=apps/v1/deployments&clusters=c1"
        ))
        .await;
    assert_eq!(
        kinds(&one.expect(200).json()),
        HashSet::from(["Deployment".to_owned()])
    );
}

#[tokio::test]
async fn tables_have_columns_of_their_own() {
    let rig = filled().await;
    let headers = [("accept", TABLE)];
    let columns = |table: &serde_json::Value| -> Vec<String> {
        let columns = table["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter();
        columns
            .filter_map(|one| one["name"].as_str().map(str::to_owned))
            .collect()
    };
    let table = rig
        .send("GET", &format!("{C}/workloads"), "", &headers)
        .await
        .expect(200)
        .json();
    assert_eq!(
        columns(&table),
        [
            "Cluster",
            "Group",
            "Version",
            "Kind",
            "Namespace",
            "Name",
            "Age"
        ]
    );
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(3));
    let cells = table["rows"][0]["cells"].as_array().expect("cells").clone();
    assert_eq!(&cells[..3], ["c1", "apps", "v1"]);
    let list = rig.send("GET", C, "", &headers).await.expect(200).json();
    assert_eq!(columns(&list), ["Name", "Resources"]);
}

#[tokio::test]
async fn collections_can_be_stored() {
    let rig = filled().await;
    let own = r#"{"apiVersion": "clusterpedia.io/v1beta1", "kind": "CollectionResource", "metadata": {"name": "mine"},
        "resourceTypes": [{"group": "", "resource": "pods"}, {"group": "apps", "version": "v1", "resource": "deployments"}]}"#;
    rig.send("POST", C, own, &[]).await.expect(201);
    let found = rig.get(&format!("{C}/mine")).await.expect(200).json();
    assert_eq!(
        kinds(&found),
        HashSet::from(["Pod", "Deployment"].map(str::to_owned))
    );
    let list = rig.get(C).await.expect(200).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(4));
    rig.send("DELETE", &format!("{C}/mine"), "", &[])
        .await
        .expect(200);
    rig.get(&format!("{C}/mine")).await.expect(404);
}
