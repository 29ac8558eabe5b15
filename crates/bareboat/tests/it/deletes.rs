//! Deletes: preconditions, finalizers, collections.

use crate::support::*;
use bareboat_testing::TestServer;

#[tokio::test]
async fn deletes_check_preconditions() {
    let server = TestServer::start().await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201).json();
    let at = format!("{MAPS}/a");
    let cases = [
        json!({"preconditions": {"uid": "0c3f4ab0-57fa-4a02-9b6a-000000000000"}}),
        json!({"preconditions": {"resourceVersion": "1"}}),
    ];
    for options in cases {
        assert_eq!(
            server
                .delete_with(&at, &options)
                .await
                .expect(409)
                .status()
                .1,
            "Conflict"
        );
    }
    for bad in [
        json!({"propagationPolicy": "Sideways"}),
        json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
        json!({"dryRun": ["Some"]}),
    ] {
        assert_eq!(
            server.delete_with(&at, &bad).await.expect(422).status().1,
            "Invalid"
        );
    }
    server
        .delete_with(&at, &json!({"dryRun": ["All"]}))
        .await
        .expect(200);
    server.get(&at).await.expect(200);
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "apps/v1",
        "preconditions": {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]},
    });
    let gone = server.delete_with(&at, &options).await.expect(200).json();
    assert_eq!(
        (text(&gone["kind"]), text(&gone["status"])),
        ("Status", "Success")
    );
    assert_eq!(gone["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(gone["details"]["kind"], "configmaps");
    server.delete(&at).await.expect(404);
}

#[tokio::test]
async fn finalizers_keep_an_object_until_they_are_removed() {
    let server = TestServer::builder().without_controllers().start().await;
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    server.post(MAPS, &object).await.expect(201);
    let at = format!("{MAPS}/a");
    let held = server.delete(&at).await.expect(200).json();
    assert_eq!(held["kind"], "ConfigMap");
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let again = server.delete(&at).await.expect(200).json();
    assert_eq!(
        again["metadata"]["deletionTimestamp"],
        held["metadata"]["deletionTimestamp"]
    );
    let refused = server.post(MAPS, &object).await.expect(409);
    assert!(
        refused.status().2.starts_with("object is being deleted: "),
        "{}",
        refused.text()
    );
    let more = json!({"metadata": {"finalizers": ["example.com/one", "example.com/two", "example.com/three"]}});
    let refused = server.patch(&at, MERGE, &more).await.expect(422);
    assert!(
        refused
            .status()
            .2
            .contains("no new finalizers can be added if the object is being deleted")
    );
    let fewer = json!({"metadata": {"finalizers": ["example.com/two"]}});
    server.patch(&at, MERGE, &fewer).await.expect(200);
    server.get(&at).await.expect(200);
    let mut watch = server.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(watch.brief().await, "ADDED a");
    let last = server
        .patch(&at, MERGE, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    assert_eq!(last.json()["metadata"]["name"], "a");
    assert_eq!(watch.brief().await, "DELETED a");
    server.get(&at).await.expect(404);

    server.post(MAPS, &config_map("b")).await.expect(201);
    let held = server
        .delete_with(
            &format!("{MAPS}/b"),
            &json!({"propagationPolicy": "Foreground"}),
        )
        .await
        .expect(200);
    assert_eq!(
        held.json()["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    server.post(MAPS, &config_map("c")).await.expect(201);
    let held = server
        .delete(&format!("{MAPS}/c?propagationPolicy=Orphan"))
        .await
        .expect(200);
    assert_eq!(held.json()["metadata"]["finalizers"], json!(["orphan"]));
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let server = TestServer::start().await;
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"l": label});
        server.post(MAPS, &object).await.expect(201);
    }
    let gone = server
        .delete(&format!("{MAPS}?labelSelector=l%3Dx&dryRun=All"))
        .await
        .expect(200);
    assert_eq!(gone.names(), ["a", "c"]);
    assert_eq!(server.get(MAPS).await.names().len(), 3);
    let gone = server
        .delete(&format!("{MAPS}?labelSelector=l%3Dx"))
        .await
        .expect(200);
    assert_eq!(gone.json()["kind"], "ConfigMapList");
    assert_eq!(gone.names(), ["a", "c"]);
    assert_eq!(server.get(MAPS).await.names(), ["b"]);
    server.delete("/api/v1/configmaps").await.expect(405);
}
