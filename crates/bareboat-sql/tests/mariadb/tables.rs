//! Tests of the tables as people see them, of server settings that are refused, and of the cost of waiting.

use std::sync::Arc;
use std::time::Duration;

use bareboat_rig::proxy::{Cut, Proxy};
use bareboat_sql::{Mysql, SqlError};
use bareboat_storage::{Appended, Backend as _, Batch, Record, Store, StoreOptions, Value, Write};

use super::cluster::{Cluster, shared};
use super::{object, open};

fn pod(name: &str, node: &str) -> bytes::Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"shop"}}}},"spec":{{"nodeName":"{node}"}}}}"#
    )
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_can_be_queried() {
    let cluster = shared();
    let store = open(&cluster.url(cluster.port, "tables_live"));
    let pods = store.resource("core/pods");
    for (key, node) in [("shop/web", "a"), ("shop/db", "b")] {
        let write = Write::create(&pods, key, pod(key, node));
        store.commit(write).await.unwrap();
    }
    let found = pods.get("shop/db").unwrap();
    store
        .commit(Write::replace(&pods, &found, pod("shop/db", "a")))
        .await
        .unwrap();
    let nodes = store.resource("core/nodes");
    let write = Write::create(&nodes, "a", object(1));
    store.commit(write).await.unwrap();
    // Encrypted values are stored in this form.
    cluster
        .ask("INSERT INTO tables_live.log VALUES (1, 0, '', 'core/secrets', 'a/b', NULL, x'6b38733aff7b')")
        .unwrap();
    let query = "SELECT GROUP_CONCAT(CONCAT_WS(' ', resource, COALESCE(namespace, '-'), name,
        COALESCE(JSON_VALUE(object, '$.spec.nodeName'), '-')) ORDER BY rev) FROM tables_live.live";
    let expected = "core/secrets a b -,core/pods shop web a,core/pods shop db a,core/nodes - a -";
    assert_eq!(cluster.ask(query).as_deref(), Some(expected));
    // The examples of docs/operating.md.
    let page = include_str!("../../../../docs/operating.md");
    let examples = page
        .split("```sql\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let examples: Vec<&str> = examples
        .flat_map(|block| block.split_inclusive(';'))
        .collect();
    let answers: Vec<String> = examples
        .iter()
        .filter(|example| example.contains("JSON_VALUE"))
        .map(|example| {
            cluster
                .ask(&format!("USE tables_live; {example}"))
                .expect(example)
        })
        .collect();
    assert_eq!(answers, ["shop|db\nshop|web", "shop|2"]);
    let times = "SELECT count(*) FROM tables_live.batch
        WHERE at > UTC_TIMESTAMP() - INTERVAL 1 MINUTE AND length(digest) = 16";
    assert_eq!(cluster.ask(times).as_deref(), Some("5"));
    store.close().await;
}

#[test]
fn bytes_of_all_kinds_are_kept() {
    let url = shared().fresh();
    let backend = Mysql::open(&url).unwrap();
    let base = backend.mark().unwrap();
    let value: Vec<u8> = (0..=255).collect();
    let record = |at: u64, value: Option<Vec<u8>>| Record {
        revision: base.last + 1 + at,
        prev: 0,
        cluster: "root:ö".into(),
        resource: "core/secrets".into(),
        key: "a/ü'\\\"".into(),
        actor: Some(r#"{"user":"jürgen\\"}"#.into()),
        value: value.map(|value| Value::new(value.into())),
    };
    // A value that is larger than any object, in a batch that is larger than a packet.
    let mut records = vec![
        record(0, Some(value)),
        record(1, None),
        record(2, Some(vec![])),
    ];
    records.extend((3..15).map(|at| record(at, Some(vec![0xff; 2 << 20]))));
    let batch = Batch {
        id: 1,
        writer: 2,
        records,
    };
    let end = batch.end(&base);
    assert_eq!(backend.append(&base, &batch).unwrap(), Appended::Done(end));
    let other = Mysql::open(&url).unwrap();
    let mut found = Vec::new();
    assert_eq!(
        other
            .load(base.last, &mut |record| found.push(record))
            .unwrap(),
        end
    );
    assert_eq!(found, batch.records);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_old_batches_are_deleted() {
    let cluster = shared();
    let backend = Mysql::open(&cluster.url(cluster.port, "tables_old")).unwrap();
    let options = StoreOptions {
        compact_rows: 3,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(backend), options).unwrap();
    let pods = store.resource("core/pods");
    for n in 0..10 {
        let write = Write::create(&pods, format!("{n}"), object(n));
        store.commit(write).await.unwrap();
    }
    let count = "SELECT count(*) FROM tables_old.batch";
    store.compact(store.visible()).await.unwrap();
    assert_eq!(cluster.ask(count).as_deref(), Some("11"));
    cluster
        .ask("UPDATE tables_old.batch SET at = at - INTERVAL 8 DAY")
        .unwrap();
    // The floor stays where it is; the last row contains the end of the log.
    store.compact(store.visible()).await.unwrap();
    assert_eq!(cluster.ask(count).as_deref(), Some("1"));
    assert_eq!(pods.len(), 10);
    store.close().await;
}

#[test]
fn servers_that_lose_writes_are_refused() {
    let cluster = Cluster::start(&["log-bin=binlog", "sync-binlog=1"]).unwrap();
    let url = cluster.fresh();
    let settings = [
        ("innodb_flush_log_at_trx_commit", "2", "1", true),
        ("sync_binlog", "0", "1", true),
        ("binlog_format", "'STATEMENT'", "'MIXED'", false),
        ("max_allowed_packet", "1048576", "16777216", false),
        ("read_only", "1", "0", false),
    ];
    for (name, bad, good, acceptable) in settings {
        cluster.ask(&format!("SET GLOBAL {name} = {bad}")).unwrap();
        let refused = Mysql::open(&url).unwrap_err();
        assert!(matches!(refused, SqlError::Unsafe(_)), "{refused}");
        let expected = format!("{name}={}", bad.trim_matches('\''));
        assert!(refused.to_string().contains(&expected), "{refused}");
        let accepted = Mysql::open(&format!("{url}?unsafe=yes"));
        assert_eq!(accepted.is_ok(), acceptable, "{name}");
        // The examination of a store complains about the same settings.
        if let Ok(engine) = accepted {
            assert_eq!(complaints(&engine), [name]);
        }
        cluster.ask(&format!("SET GLOBAL {name} = {good}")).unwrap();
    }
    assert_eq!(complaints(&Mysql::open(&url).unwrap()), [""; 0]);
    // This value flushes once more than 1.
    let more = "SET GLOBAL innodb_flush_log_at_trx_commit = 3";
    cluster.ask(more).unwrap();
    assert_eq!(complaints(&Mysql::open(&url).unwrap()), [""; 0]);
    // This one cannot be changed while the server runs.
    let torn = Cluster::start(&["skip-innodb-doublewrite"]).unwrap();
    let url = torn.fresh();
    let refused = Mysql::open(&url).unwrap_err();
    assert!(matches!(refused, SqlError::Unsafe(_)), "{refused}");
    assert!(
        refused.to_string().contains("innodb_doublewrite=0"),
        "{refused}"
    );
    let accepted = Mysql::open(&format!("{url}?unsafe=yes")).unwrap();
    assert_eq!(complaints(&accepted), ["innodb_doublewrite"]);
}

/// Returns the names of the settings that an examination complains about.
fn complaints(engine: &Mysql) -> Vec<String> {
    let settings = engine.settings().unwrap().into_iter();
    let wrong = settings.filter(|setting| setting.advice.is_some());
    wrong.map(|setting| setting.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_the_server_change_nothing() {
    let odd = [
        "transaction-isolation=SERIALIZABLE",
        "sql-mode=ANSI,NO_BACKSLASH_ESCAPES",
        "character-set-server=latin1",
        "default-time-zone=+09:00",
        "init-connect=SET autocommit=0",
    ];
    let cluster = Cluster::start(&odd).unwrap();
    cluster
        .ask("CREATE USER odd@'%'; GRANT ALL ON *.* TO odd@'%'; REVOKE SUPER, CONNECTION ADMIN ON *.* FROM odd@'%'")
        .unwrap();
    let url = cluster.fresh().replace("root@", "odd@");
    let stores = [open(&url), open(&url)];
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let store = stores[task % 2].clone();
            tokio::spawn(async move {
                let resource = store.resource("core/configmaps");
                for n in 0..25 {
                    let write = Write::create(&resource, format!("ä{task}-{n}"), object(n));
                    store.commit(write).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for store in &stores {
        assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
        assert_eq!(store.resource("core/configmaps").len(), 100);
        store.close().await;
    }
}

#[test]
fn an_unreachable_server_is_an_error_without_a_password() {
    let error = Mysql::open("mysql://u:hunter2@127.0.0.1:1/x").unwrap_err();
    let text = format!("{error:?} {error}");
    assert!(!text.contains("hunter2"), "{text}");
    let newer = shared().fresh();
    let database = newer.rsplit('/').next().unwrap().to_owned();
    let first = Mysql::open(&newer).unwrap();
    assert_eq!(first.mark().unwrap().last, 1);
    drop(first);
    let raise = format!("UPDATE {database}.meta SET min_writer = 99");
    shared().ask(&raise).unwrap();
    let refused = Mysql::open(&newer).unwrap_err();
    assert!(matches!(refused, SqlError::Newer { found: 99, .. }));
}

#[test]
fn a_creation_that_was_interrupted_is_finished() {
    let cluster = shared();
    let url = cluster.url(cluster.port, "tables_half");
    drop(Mysql::open(&url).unwrap());
    // The state after a crash that follows any statement but the last.
    for gone in [
        "DELETE FROM meta",
        "DROP TABLE meta",
        "DROP VIEW live; DELETE FROM meta",
    ] {
        cluster.ask(&format!("USE tables_half; {gone}")).unwrap();
        let backend = Mysql::open(&url).unwrap();
        assert_eq!(backend.mark().unwrap().last, 1);
        assert_eq!(
            cluster
                .ask("SELECT count(*) FROM tables_half.live")
                .as_deref(),
            Some("0")
        );
        assert_eq!(
            cluster
                .ask("SELECT count(*) FROM tables_half.batch")
                .as_deref(),
            Some("1")
        );
    }
}

/// The connection is lost before or after each statement.
#[test]
fn a_creation_that_was_cut_off_is_finished() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    let marks = [
        "GET_LOCK",
        "EXISTS log",
        "EXISTS batch",
        "EXISTS meta",
        "EXISTS replica",
        "VIEW live",
        "INSERT IGNORE INTO batch",
        "RELEASE_LOCK",
    ];
    for (n, mark) in marks.iter().enumerate() {
        let bytes = mark.as_bytes().to_vec();
        for (way, cut) in [
            ("request", Cut::Request(bytes.clone())),
            ("answer", Cut::Answer(bytes.clone())),
        ] {
            let database = format!("cut_off_{n}_{way}");
            proxy.cut(cut);
            let failed = Mysql::open(&cluster.url(proxy.port, &database));
            assert!(proxy.has_cut(), "{mark}");
            assert!(failed.is_err(), "{mark}");
            let opened = Mysql::open(&cluster.url(cluster.port, &database)).unwrap();
            assert_eq!(opened.mark().unwrap().last, 1, "{database}");
            let count = format!("SELECT count(*) FROM {database}.live");
            assert_eq!(cluster.ask(&count).as_deref(), Some("0"), "{database}");
        }
    }
}
