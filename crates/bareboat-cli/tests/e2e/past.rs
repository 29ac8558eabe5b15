//! The past of a store, and what `bareboat doctor` knows about its servers, on every engine.

use crate::backups::{Engines, create, maps, says, sqlite, succeeds};
use crate::server::Home;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// Returns what identifies an object and its state.
fn content(map: Value) -> Value {
    let metadata = &map["metadata"];
    let [name, uid, version] = ["name", "uid", "resourceVersion"].map(|field| &metadata[field]);
    json!([name, uid, version, map["data"]])
}

#[tokio::test(flavor = "multi_thread")]
async fn history_at_a_time_is_the_state_of_that_time() {
    let engines = Engines::start();
    let files = tempfile::tempdir().unwrap();
    let mut stores = engines.fresh();
    stores.push(sqlite(&files.path().join("state.db")));
    for store in &stores {
        let home = Home::with(&["--storage", store]);
        let server = home.serve();
        let all = maps(&home).await;
        // A controller writes this one into every namespace; nothing else does.
        let deadline = std::time::Instant::now() + crate::process::PATIENCE;
        while all.get_opt("kube-root-ca.crt").await.unwrap().is_none() {
            assert!(std::time::Instant::now() < deadline, "no controller works");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let mut recorded = Vec::new();
        for round in 0..3 {
            create(&all, &format!("m-{round}")).await;
            if round == 2 {
                all.delete("m-0", &Default::default()).await.unwrap();
            }
            // One object changes in every round.
            let patch = Patch::Merge(json!({"data": {"round": round.to_string()}}));
            let changing = PatchParams::apply("test");
            let created = round == 0;
            match created {
                true => drop(create(&all, "changing").await),
                false => drop(all.patch("changing", &changing, &patch).await.unwrap()),
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let list = all.list(&Default::default()).await.unwrap();
            let objects: Vec<Value> = list.iter().map(|map| json!(map)).map(content).collect();
            recorded.push((jiff::Timestamp::now().to_string(), objects));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for (time, objects) in recorded {
            let shown = succeeds(&[
                "history",
                "configmaps",
                "-n",
                "default",
                "--at",
                &time,
                "--storage",
                store,
                "-o",
                "json",
            ]);
            let list: Value = serde_json::from_str(&shown.stdout).unwrap();
            let items = list["items"].as_array().unwrap();
            let found: Vec<Value> = items.iter().cloned().map(content).collect();
            assert_eq!(found, objects, "{store} at {time}");
        }
        let future = says(&[
            "history",
            "configmaps",
            "--at",
            "999999999",
            "--storage",
            store,
        ]);
        assert!(future.stderr.contains("not reached"), "{}", future.all());
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_lists_servers_and_repairs() {
    let engines = Engines::start();
    for store in engines.fresh() {
        // A server on loopback is no endpoint for others.
        let home = Home::with(&[
            "--storage",
            &store,
            "--retain-for",
            "1s",
            "--advertise-address",
            "192.0.2.7",
        ]);
        let address = home.address().replace("127.0.0.1", "192.0.2.7");
        let server = home.serve();
        let all = maps(&home).await;
        for n in 0..30 {
            create(&all, &format!("m-{n}")).await;
        }
        let deadline = std::time::Instant::now() + crate::process::PATIENCE;
        loop {
            let shown = says(&["doctor", "--storage", &store, "-o", "json"]);
            let found: Value = serde_json::from_str(&shown.stdout).unwrap();
            if found["servers"][0]["address"] == *address && found["leader"] != "" {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{}", shown.all());
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        let shown = succeeds(&["doctor", "--repair", "--storage", &store]);
        assert!(shown.stdout.contains("repaired   swept"), "{}", shown.all());
        assert!(shown.stdout.contains(&address), "{}", shown.all());
        create(&all, "after").await;
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    }
}
