//! Backups of running servers, restores into every engine, planned moves, and epochs.

use crate::etcd::Member;
use crate::mariadb;
use crate::postgres::Cluster;
use crate::process::{Output, run};
use crate::server::{Home, bareboat};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) async fn maps(home: &Home) -> Api<ConfigMap> {
    Api::namespaced(home.client().await, "default")
}

/// Creates a config map, and returns its resourceVersion.
pub(crate) async fn create(maps: &Api<ConfigMap>, name: &str) -> String {
    let map = json!({ "metadata": { "name": name }, "data": { "a": "b" } });
    let map = serde_json::from_value(map).unwrap();
    let made = maps.create(&PostParams::default(), &map).await.unwrap();
    made.metadata.resource_version.unwrap()
}

/// Runs a command on a thread that may wait.
pub(crate) fn says(arguments: &[&str]) -> Output {
    tokio::task::block_in_place(|| run(&mut bareboat(arguments), ""))
}

pub(crate) fn succeeds(arguments: &[&str]) -> Output {
    let output = says(arguments);
    assert!(output.status.success(), "{}", output.all());
    output
}

/// Makes a backup of a store; returns what is in it.
fn backup(storage: &str, file: &Path) -> Value {
    let file = file.to_str().unwrap();
    let made = succeeds(&["backup", "--storage", storage, file, "-o", "json"]);
    serde_json::from_str(&made.stdout).unwrap()
}

pub(crate) fn sqlite(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Returns the first event of a watch from a version, or the code of its error.
async fn first_event(maps: &Api<ConfigMap>, version: &str) -> Result<String, u16> {
    use futures_util::StreamExt as _;
    let code = |status: &kube::core::Status| Err(status.code);
    match maps.watch(&WatchParams::default(), version).await {
        Err(kube::Error::Api(status)) => code(&status),
        Err(error) => panic!("{error}"),
        Ok(stream) => match std::pin::pin!(stream).next().await {
            Some(Ok(WatchEvent::Error(status))) => code(&status),
            Some(Ok(WatchEvent::Added(map))) => Ok(map.metadata.name.unwrap()),
            other => panic!("{other:?}"),
        },
    }
}

/// The engines that can be started here.
pub(crate) struct Engines {
    postgres: Option<Cluster>,
    mariadb: Option<mariadb::Cluster>,
    etcd: Option<Member>,
}

impl Engines {
    pub(crate) fn start() -> Engines {
        let engines = tokio::task::block_in_place(|| Engines {
            postgres: Cluster::start(&[]),
            mariadb: mariadb::Cluster::start(&[]),
            etcd: Member::start(&[]),
        });
        let found = engines.fresh().len();
        let strict = std::env::var("CI").as_deref() == Ok("true");
        assert!(!strict || found == 3, "only {found} engines are there");
        engines
    }

    /// The address of an empty store in each.
    pub(crate) fn fresh(&self) -> Vec<String> {
        let mut all: Vec<String> = self.postgres.iter().map(Cluster::fresh).collect();
        all.extend(self.mariadb.iter().map(mariadb::Cluster::fresh));
        all.extend(self.etcd.iter().map(Member::fresh));
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_the_same_in_every_engine() {
    let home = Home::new();
    let server = home.serve();
    let all = maps(&home).await;
    for n in 0..20 {
        create(&all, &format!("m-{n}")).await;
    }
    let state = sqlite(&home.data().join("state.db"));
    // The server runs.
    let file = home.path().join("first.backup");
    let made = backup(&state, &file);
    assert!(
        made["objects"]["core/configmaps"].as_u64() >= Some(20),
        "{made}"
    );
    let engines = Engines::start();
    let mut stores = engines.fresh();
    stores.push(sqlite(&home.path().join("copy.db")));
    let mut last = file;
    // From each to the next one, with all revisions and the history.
    for (at, store) in stores.iter().enumerate() {
        let from = last.to_str().unwrap().to_owned();
        let restore = [
            "restore",
            "--from",
            &from,
            "--storage",
            store,
            "--keep-epoch",
        ];
        let restored = succeeds(&restore);
        assert!(restored.stdout.contains("read back"), "{}", restored.all());
        last = home.path().join(format!("{at}.backup"));
        let again = backup(store, &last);
        assert_eq!(again, made, "{store}");
        // It is not empty any more.
        let refused = says(&restore);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.all());
        assert!(refused.stderr.contains("--replace"), "{}", refused.all());
        let replace = [&restore[..], &["--replace"]].concat();
        succeeds(&replace);
    }
    assert!(tokio::task::block_in_place(|| server.stop()).0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_move_ends_no_watch() {
    let home = Home::new();
    let server = home.serve();
    let all = maps(&home).await;
    let first = create(&all, "first").await;
    create(&all, "second").await;
    let old = sqlite(&home.data().join("state.db"));
    let engines = Engines::start();
    let mut stores = engines.fresh();
    stores.push(sqlite(&home.path().join("moved.db")));
    // A server that runs has the file locked.
    let refused = says(&[
        "restore",
        "--from",
        &old,
        "--storage",
        &stores[0],
        "--keep-epoch",
    ]);
    assert!(refused.stderr.contains("in use"), "{}", refused.all());
    tokio::task::block_in_place(|| server.stop());
    for store in stores {
        succeeds(&[
            "restore",
            "--from",
            &old,
            "--storage",
            &store,
            "--keep-epoch",
        ]);
        let moved = Home::with(&["--storage", &store]);
        let server = moved.serve();
        let all = maps(&moved).await;
        assert_eq!(
            first_event(&all, &first).await,
            Ok("second".to_owned()),
            "{store}"
        );
        let next = create(&all, "third").await;
        assert!(next.parse::<u64>().unwrap() > first.parse().unwrap());
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_every_client_lists_again() {
    let home = Home::new();
    let server = home.serve();
    let all = maps(&home).await;
    let kept = create(&all, "kept").await;
    let file = home.path().join("a.backup");
    let data = home.data();
    let data = data.to_str().unwrap();
    succeeds(&["backup", "--data-dir", data, file.to_str().unwrap()]);
    let refused = says(&["backup", "--data-dir", data, file.to_str().unwrap()]);
    assert!(refused.stderr.contains("exists"), "{}", refused.all());
    let lost = create(&all, "lost").await;
    tokio::task::block_in_place(|| server.stop());
    let restore = [
        "restore",
        "--data-dir",
        data,
        "--from",
        file.to_str().unwrap(),
    ];
    let refused = says(&restore);
    assert!(refused.stderr.contains("--replace"), "{}", refused.all());
    // One flipped bit is noticed, and nothing is changed.
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = home.path().join("damaged.backup");
    std::fs::write(&damaged, &bytes).unwrap();
    let damaged = damaged.to_str().unwrap();
    let refused = says(&[
        "restore",
        "--data-dir",
        data,
        "--from",
        damaged,
        "--replace",
    ]);
    assert!(refused.stderr.contains("checksum"), "{}", refused.all());
    succeeds(&[&restore[..], &["--replace"]].concat());
    assert!(home.data().join("state.db.before-restore").is_file());
    let server = home.serve();
    let all = maps(&home).await;
    assert!(all.get("kept").await.is_ok());
    assert!(all.get_opt("lost").await.unwrap().is_none());
    for version in [&kept, &lost] {
        assert_eq!(first_event(&all, version).await, Err(410), "{version}");
    }
    // The same for a file that was restored by other means.
    let known = create(&all, "known").await;
    let refused = says(&["epoch", "--data-dir", data]);
    assert!(refused.stderr.contains("in use"), "{}", refused.all());
    tokio::task::block_in_place(|| server.stop());
    let begun = succeeds(&["epoch", "--data-dir", data]);
    assert!(begun.stdout.contains("epoch 2"), "{}", begun.all());
    let _server = home.serve();
    let all = maps(&home).await;
    assert!(all.get("known").await.is_ok());
    assert_eq!(first_event(&all, &known).await, Err(410));
}

#[tokio::test(flavor = "multi_thread")]
async fn running_servers_notice_another_epoch() {
    let Some(cluster) = tokio::task::block_in_place(|| Cluster::start(&[])) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "PostgreSQL is missing"
        );
        return eprintln!("skipped: PostgreSQL is not installed");
    };
    let url = cluster.fresh();
    let home = Home::with(&["--storage", &url]);
    let _server = home.serve();
    let all = maps(&home).await;
    let known = create(&all, "known").await;
    // Named by the file of the server's settings.
    let config = home.path().join("config.yaml");
    std::fs::write(&config, format!("storage: {url}\nretainFor: 1h\n")).unwrap();
    succeeds(&["epoch", "--config", config.to_str().unwrap()]);
    let next = create(&all, "next").await;
    assert!(next.parse::<u64>().unwrap() > known.parse::<u64>().unwrap() + (1 << 20));
    assert_eq!(first_event(&all, &known).await, Err(410));
    assert!(all.get("known").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let home = Home::new();
    let server = home.serve();
    let all = maps(&home).await;
    for n in 0..5 {
        create(&all, &format!("m-{n}")).await;
    }
    let data = home.data();
    let doctor = ["doctor", "--data-dir", data.to_str().unwrap(), "-o", "json"];
    // The server runs.
    let healthy: Value = serde_json::from_str(&succeeds(&doctor).stdout).unwrap();
    assert_eq!(healthy["findings"], json!([]), "{healthy}");
    assert!(healthy["batches"].as_u64() > Some(0), "{healthy}");
    let resources = healthy["resources"].as_array().unwrap();
    let maps = resources
        .iter()
        .find(|one| one["resource"] == "core/configmaps");
    assert!(maps.unwrap()["objects"].as_u64() >= Some(5), "{healthy}");
    assert!(healthy["historySeconds"].as_u64() < Some(600), "{healthy}");
    let namespaces = healthy["namespaces"].to_string();
    assert!(namespaces.contains(r#""namespace":"default""#), "{healthy}");
    assert!(healthy["mostChanged"][0]["revisions"].as_u64() > Some(1));
    let swept = healthy["settings"].to_string();
    assert!(swept.contains("up to revision"), "{healthy}");
    let text = succeeds(&doctor[..3]);
    assert!(
        text.stdout.contains("Nothing looks wrong"),
        "{}",
        text.all()
    );
    tokio::task::block_in_place(|| server.stop());
    // Each damage is found, in a copy of the file.
    let mut copies = 0;
    for (damage, words) in [
        (
            "UPDATE log SET value = CAST('{}' AS BLOB) WHERE key = 'default/m-1'",
            "default/m-1",
        ),
        (
            "UPDATE log SET key = 'default/other' WHERE key = 'default/m-1'",
            "damaged",
        ),
        ("DELETE FROM log WHERE key = 'default/m-2'", "missing"),
        (
            "UPDATE log SET digest = x'00000000000000000000000000000001' WHERE key = 'default/m-3'",
            "digest",
        ),
    ] {
        copies += 1;
        let copy = home.path().join(format!("copy-{copies}.db"));
        std::fs::copy(data.join("state.db"), &copy).unwrap();
        let file = rusqlite::Connection::open(&copy).unwrap();
        assert_eq!(file.execute(damage, []).unwrap(), 1, "{damage}");
        drop(file);
        let store = sqlite(&copy);
        let found = says(&["doctor", "--storage", &store, "-o", "json"]);
        assert_eq!(found.status.code(), Some(1), "{}", found.all());
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        let findings = report["findings"].to_string();
        assert!(findings.contains(words), "{damage}: {findings}");
        assert!(findings.contains("restore"), "{damage}: {findings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_values_stay_encrypted_in_a_backup() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    succeeds(&["init-shared", keys.to_str().unwrap()]);
    let refused = says(&["init-shared", keys.to_str().unwrap()]);
    assert!(refused.stderr.contains("not empty"), "{}", refused.all());
    let encryption = keys.join("encryption.yaml");
    let flags = ["--encryption-provider-config", encryption.to_str().unwrap()];
    let home = Home::with(&flags).sharing(&keys);
    let server = home.serve();
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "plain-words" } });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let secrets: Api<Secret> = Api::namespaced(home.client().await, "default");
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let file = dir.path().join("a.backup");
    backup(&sqlite(&home.data().join("state.db")), &file);
    tokio::task::block_in_place(|| server.stop());
    let mut unpack = std::process::Command::new("gzip");
    let text = run(unpack.arg("-dc").arg(&file), "").stdout;
    // Every value of this key begins with bareboat:enc:secretbox:v1:key1:
    assert!(text.contains(r#""base64":"YmFyZWJvYXQ6ZW5jOnNlY3JldGJveDp2"#));
    assert!(text.contains("core/secrets") && !text.contains("cGxhaW4td29yZHM="));
    // With the same keys it is read again.
    let other = Home::with(&flags).sharing(&keys);
    let data = other.data();
    let restore = ["restore", "--data-dir", data.to_str().unwrap(), "--from"];
    succeeds(&[&restore[..], &[file.to_str().unwrap()]].concat());
    let _server = other.serve();
    let secrets: Api<Secret> = Api::namespaced(other.client().await, "default");
    let data = secrets.get("s").await.unwrap().data.unwrap();
    assert_eq!(data["a"].0, b"plain-words");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_continues_another_in_every_engine() {
    let engines = Engines::start();
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let mut stores = engines.fresh();
    stores.push(sqlite(&files.path().join("state.db")));
    for (at, store) in stores.iter().enumerate() {
        let home = Home::with(&["--storage", store]);
        let server = home.serve();
        let all = maps(&home).await;
        create(&all, "first").await;
        let (whole, second) = (file(&format!("{at}-a")), file(&format!("{at}-b")));
        backup(store, Path::new(&whole));
        create(&all, "second").await;
        let since = ["backup", "--storage", store, "--since", &whole, &second];
        let made = succeeds(&since);
        assert!(made.stdout.contains("changes up to"), "{}", made.all());
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
        let target = sqlite(&files.path().join(format!("{at}.db")));
        let alone = says(&["restore", "--from", &second, "--storage", &target]);
        assert!(alone.stderr.contains("given before it"), "{}", alone.all());
        succeeds(&["restore", &whole, &second, "--storage", &target]);
        let home = Home::with(&["--storage", &target]);
        let server = home.serve();
        let all = maps(&home).await;
        for name in ["first", "second"] {
            assert!(all.get(name).await.is_ok(), "{store}: {name}");
        }
        assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_address_makes_no_store() {
    let engines = Engines::start();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("none.backup");
    for store in engines.fresh() {
        for arguments in [
            &["backup", "--storage", &store, file.to_str().unwrap()][..],
            &["doctor", "--storage", &store],
            &["doctor", "--repair", "--storage", &store],
            &["epoch", "--storage", &store],
            &["history", "configmaps", "--at", "1", "--storage", &store],
        ] {
            let refused = says(arguments);
            assert_eq!(refused.status.code(), Some(1), "{}", refused.all());
            assert!(
                refused.stderr.contains("there is no store"),
                "{}",
                refused.all()
            );
        }
    }
    assert!(!file.exists());
}
