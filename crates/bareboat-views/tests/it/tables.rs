//! Tables: the first column is the cluster, the others are those of the kind.

use crate::rig::{P, Rig, TABLE, deployment, member, pod, synced};
use bareboat::api::value;
use std::sync::Arc;

fn columns(table: &serde_json::Value) -> Vec<String> {
    let columns = table["columnDefinitions"]
        .as_array()
        .expect("columns")
        .iter();
    columns
        .filter_map(|one| one["name"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn built_in_kinds_have_their_columns() {
    let rig = Rig::start().await;
    rig.put("c1", deployment("a", "web", 3));
    let headers = [("accept", TABLE)];
    let path = format!("{P}/apis/apps/v1/deployments");
    let table = rig
        .send("GET", &path, "", &headers)
        .await
        .expect(200)
        .json();
    assert_eq!(
        columns(&table)[..6],
        ["Cluster", "Name", "Ready", "Up-to-date", "Available", "Age"]
    );
    let cells = table["rows"][0]["cells"].as_array().expect("cells").clone();
    assert_eq!(
        &cells[..5],
        [
            serde_json::json!("c1"),
            serde_json::json!("web"),
            serde_json::json!("3/3"),
            serde_json::json!(3),
            serde_json::json!(3),
        ]
    );
    let object = &table["rows"][0]["object"];
    assert_eq!(object["kind"], "PartialObjectMetadata");
    let one = format!("{P}/clusters/c1/apis/apps/v1/namespaces/a/deployments/web");
    let table = rig.send("GET", &one, "", &headers).await.expect(200).json();
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn custom_kinds_have_the_columns_of_their_definition() {
    let rig = Rig::start().await;
    let definition = value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.example.com"},
        "spec": {"group": "sea.example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "additionalPrinterColumns": [{"name": "Sails", "type": "integer", "jsonPath": ".spec.sails"}],
            }]},
    });
    let mut boats = synced("sea.example.com", "v1", "boats", "Boat");
    boats.definition = Some(Arc::new(definition));
    let mut c4 = member("c4");
    c4.types.push(Arc::new(boats));
    rig.join(c4);
    rig.put(
        "c4",
        value!({"apiVersion": "sea.example.com/v1", "kind": "Boat",
        "metadata": {"name": "x", "namespace": "a"}, "spec": {"sails": 3}}),
    );
    let headers = [("accept", TABLE)];
    let path = format!("{P}/apis/sea.example.com/v1/boats");
    let table = rig
        .send("GET", &path, "", &headers)
        .await
        .expect(200)
        .json();
    assert_eq!(columns(&table), ["Cluster", "Name", "Sails"]);
    assert_eq!(table["rows"][0]["cells"], serde_json::json!(["c4", "x", 3]));
}

#[tokio::test]
async fn control_characters_do_not_reach_terminals() {
    let rig = Rig::start().await;
    let mut evil = pod("a", "x", "Running");
    evil.make_object()
        .object_mut("status")
        .insert("reason", value!("\u{1b}[2Jgone"));
    rig.put("c1", evil);
    let headers = [("accept", TABLE)];
    let table = rig
        .send("GET", &format!("{P}/api/v1/pods"), "", &headers)
        .await
        .expect(200)
        .json();
    let cells = table["rows"][0]["cells"].as_array().expect("cells").clone();
    let texts = cells.iter().filter_map(|cell| cell.as_str());
    assert!(
        texts.clone().any(|text| text.contains("[2Jgone")),
        "{cells:?}"
    );
    assert!(
        !texts.clone().any(|text| text.contains('\u{1b}')),
        "{cells:?}"
    );
}
