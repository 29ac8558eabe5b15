//! Storage failures: a restored backup, a damaged object, a full disk.

use crate::process::run;
use crate::server::{Home, bareboat};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use serde_json::{Value, json};
use std::path::Path;

async fn maps(home: &Home) -> Api<ConfigMap> {
    Api::namespaced(home.client().await, "default")
}

fn map(name: &str, content: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "p": content } }))
        .unwrap()
}

async fn send(home: &Home, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body.as_bytes().to_vec())
        .unwrap();
    match home.client().await.request::<Value>(request).await {
        Ok(value) => (200, value),
        Err(kube::Error::Api(status)) => (status.code, serde_json::to_value(&*status).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

fn sqlite(path: &Path, statement: &str) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch(statement).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_backup_makes_every_client_list_again() {
    let home = Home::new();
    let server = home.serve();
    let maps_before = maps(&home).await;
    maps_before
        .create(&PostParams::default(), &map("kept", "1"))
        .await
        .unwrap();
    let backup = home.path().join("backup.db");
    sqlite(
        &home.data().join("state.db"),
        &format!("VACUUM INTO '{}'", backup.display()),
    );
    let lost = maps_before
        .create(&PostParams::default(), &map("lost", "1"))
        .await
        .unwrap();
    let lost = lost.metadata.resource_version.unwrap();
    // A running server cannot be restored.
    let mut command = bareboat(["restore"]);
    command.arg(&backup).arg("--data-dir").arg(home.data());
    let refused = run(&mut command, "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.all());
    assert!(server.stop().0.success());
    let restored = run(&mut command, "");
    assert!(restored.status.success(), "{}", restored.all());
    assert!(home.data().join("state.db.before-restore").is_file());

    let _server = home.serve();
    let maps = maps(&home).await;
    assert!(maps.get("kept").await.is_ok());
    assert!(maps.get_opt("lost").await.unwrap().is_none());
    // New changes pass the lost revision; a client that knows it must not continue from it.
    for n in 0..5 {
        let made = maps
            .create(&PostParams::default(), &map(&format!("new{n}"), "1"))
            .await
            .unwrap();
        let version: u64 = made.metadata.resource_version.unwrap().parse().unwrap();
        assert!(version > lost.parse::<u64>().unwrap());
    }
    let stream = maps.watch(&WatchParams::default(), &lost).await;
    let gone = match stream {
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
        Ok(stream) => {
            use futures_util::StreamExt as _;
            match std::pin::pin!(stream).next().await {
                Some(Ok(kube::core::WatchEvent::Error(status))) => status.code,
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(gone, 410);
}

#[test]
fn an_invalid_backup_is_refused_and_nothing_is_lost() {
    let home = Home::new();
    home.serve().stop();
    let before = std::fs::read(home.data().join("state.db")).unwrap();
    let notes = home.path().join("notes.txt");
    std::fs::write(&notes, "not a database, just a note. ".repeat(100)).unwrap();
    for backup in [&notes, &home.path().join("none.db")] {
        let mut command = bareboat(["restore"]);
        command.arg(backup).arg("--data-dir").arg(home.data());
        let refused = run(&mut command, "");
        assert_eq!(refused.status.code(), Some(1), "{}", refused.all());
        assert!(refused.stderr.starts_with("error: "), "{}", refused.all());
    }
    assert_eq!(std::fs::read(home.data().join("state.db")).unwrap(), before);
    assert!(!home.data().join("state.db.restoring").exists());
    home.serve();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_object_is_a_clear_error_and_can_be_deleted() {
    let home = Home::new();
    let server = home.serve();
    for name in ["damaged", "sound"] {
        maps(&home)
            .await
            .create(&PostParams::default(), &map(name, "content"))
            .await
            .unwrap();
    }
    assert!(server.stop().0.success());
    // Flips one byte, as a faulty disk would.
    let path = home.data().join("state.db");
    sqlite(
        &path,
        "UPDATE log SET value = CAST(replace(CAST(value AS TEXT), '\"p\":\"content\"', '\"p\":\"cont\\nnt\"') AS BLOB)
         WHERE key = 'default/damaged'",
    );
    let server = home.serve();
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let one = format!("{PATH}/damaged");
    for method in ["GET", "DELETE"] {
        let (code, status) = send(&home, method, &one, "").await;
        assert_eq!(code, 500, "{method}: {status}");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains("corrupt object, Key: default/damaged"),
            "{message}"
        );
        assert!(message.contains("checksum"), "{message}");
    }
    let (code, status) = send(&home, "PATCH", &one, "{}").await;
    assert!(code >= 400, "{status}");
    let (code, status) = send(&home, "GET", PATH, "").await;
    assert_eq!(code, 500, "{status}");
    assert_eq!(status["reason"], "StorageReadError");
    let causes = status["details"]["causes"].to_string();
    assert!(causes.contains("default/damaged") && !causes.contains("default/sound"));
    // Other objects are not affected.
    assert!(maps(&home).await.get("sound").await.is_ok());

    const IGNORE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let body = json!({ IGNORE: true, "gracePeriodSeconds": 0 }).to_string();
    let (code, status) = send(&home, "DELETE", &one, &body).await;
    assert_eq!(code, 422, "{status}");
    let body = json!({ IGNORE: true }).to_string();
    let (code, status) = send(&home, "DELETE", &one, &body).await;
    assert_eq!((code, &status["status"]), (200, &json!("Success")));
    let listed = maps(&home)
        .await
        .list(&ListParams::default())
        .await
        .unwrap();
    assert!(
        listed
            .items
            .iter()
            .any(|map| map.metadata.name.as_deref() == Some("sound"))
    );
    let (_, log) = server.stop();
    assert!(log.contains("a stored object is damaged"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_removed_ends_the_server() {
    let home = Home::new();
    let mut server = home.serve();
    let maps = maps(&home).await;
    maps.create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    std::fs::remove_dir_all(home.data()).unwrap();
    let error = maps
        .create(&PostParams::default(), &map("b", "1"))
        .await
        .unwrap_err();
    // The answer is that the outcome is unknown, unless the server was gone before it arrived.
    if let kube::Error::Api(status) = &error {
        let reported = status
            .message
            .contains("outcome of this write is not known")
            || status.message.contains("nothing was written");
        assert!(reported, "{}", status.message);
    }
    crate::process::eventually("the end of the server", || {
        (!server.is_alive()).then_some(())
    });
}
