//! Tests of the tables as people see them, and of server settings that are refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bareboat_rig::proxy::{Cut, Proxy};
use bareboat_sql::{Postgres, SqlError};
use bareboat_storage::{Backend as _, Store, StoreOptions, Write};

use super::cluster::{Cluster, shared};
use super::{object, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_can_be_queried() {
    let cluster = shared();
    let store = open(&cluster.url(cluster.port, "tables_live"));
    let pods = store.resource("core/pods");
    for (key, n) in [("shop/web", 1), ("shop/db", 2)] {
        let write = Write::create(&pods, key, object(n));
        store.commit(write).await.unwrap();
    }
    let found = pods.get("shop/db").unwrap();
    store
        .commit(Write::replace(&pods, &found, object(3)))
        .await
        .unwrap();
    let zero = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"n":"\u0000"}"#;
    let write = Write::create(&pods, "shop/odd", zero.into());
    store.commit(write).await.unwrap();
    // Encrypted values are stored in this form.
    cluster
        .ask("INSERT INTO tables_live.log VALUES (1, 0, '', 'core/secrets', 'a/b', NULL, '\\x6261ff')")
        .unwrap();
    let query = "SELECT string_agg(resource || ' ' || namespace || ' ' || name || ' ' || coalesce(object->>'n', '-'), ',' ORDER BY rev)
        FROM tables_live.live";
    let expected =
        "core/secrets a b -,core/pods shop web 1,core/pods shop db 3,core/pods shop odd -";
    assert_eq!(cluster.ask(query).as_deref(), Some(expected));
    let times = "SELECT count(*) FROM tables_live.batch WHERE at > now() - interval '1 minute' AND length(digest) = 16";
    assert_eq!(cluster.ask(times).as_deref(), Some("5"));
    store.close().await;
}

fn pod(name: &str, node: &str) -> bytes::Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"shop"}}}},"spec":{{"nodeName":"{node}"}}}}"#
    )
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queries_of_the_documentation_work() {
    let cluster = shared();
    let store = open(&cluster.url(cluster.port, "tables_examples"));
    let pods = store.resource("core/pods");
    for (name, node) in [("web", "a"), ("db", "a"), ("job", "b")] {
        let write = Write::create(&pods, format!("shop/{name}"), pod(name, node));
        store.commit(write).await.unwrap();
    }
    let page = include_str!("../../../../docs/operating.md");
    let blocks = page.split("```sql\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let queries = blocks.flat_map(|block| block.split_inclusive(';'));
    let answers: Vec<String> = queries
        .filter(|query| query.contains("bareboat.live"))
        .map(|query| {
            let query = query.replace("bareboat.live", "tables_examples.live");
            cluster.ask(&query).expect("it is answered")
        })
        .collect();
    assert_eq!(answers, ["shop|db\nshop|web", "shop|3"]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_old_batches_are_deleted() {
    let cluster = shared();
    let backend = Postgres::open(&cluster.url(cluster.port, "tables_old")).unwrap();
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
        .ask("UPDATE tables_old.batch SET at = at - interval '8 days'")
        .unwrap();
    // The floor stays where it is; the last row contains the end of the log.
    store.compact(store.visible()).await.unwrap();
    assert_eq!(cluster.ask(count).as_deref(), Some("1"));
    assert_eq!(pods.len(), 10);
    store.close().await;
}

#[test]
fn a_server_that_loses_writes_is_refused() {
    for setting in ["fsync=off", "full_page_writes=off"] {
        let cluster = Cluster::start(&[setting]).unwrap();
        let url = cluster.fresh();
        let refused = Postgres::open(&url).unwrap_err();
        assert!(matches!(refused, SqlError::Unsafe(_)), "{refused}");
        assert!(refused.to_string().contains(setting), "{refused}");
        Postgres::open(&format!("{url}&unsafe=yes")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_the_role_change_nothing() {
    let cluster = shared();
    cluster
        .ask("CREATE ROLE odd SUPERUSER LOGIN; ALTER ROLE odd SET default_transaction_isolation TO serializable;
              ALTER ROLE odd SET synchronous_commit TO off; ALTER ROLE odd SET default_transaction_read_only TO on")
        .unwrap();
    let url = cluster.url(cluster.port, "tables_role");
    // The first store creates the tables, which a read-only role cannot do.
    open(&url).close().await;
    let odd = url.replace("postgres@", "odd@");
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || drop(Postgres::open(&odd).unwrap()));
    let heard = heard.0.lock().unwrap().clone();
    assert!(
        heard.contains("synchronous_commit is off for this role"),
        "{heard}"
    );
    // Each append notes the settings of its transaction.
    cluster
        .ask("CREATE TABLE tables_role.noted (isolation text, synchronous text);
              CREATE FUNCTION tables_role.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                  INSERT INTO tables_role.noted VALUES
                      (current_setting('transaction_isolation'), current_setting('synchronous_commit'));
                  RETURN NULL; END $$;
              CREATE TRIGGER note AFTER INSERT ON tables_role.batch EXECUTE FUNCTION tables_role.note()")
        .unwrap();
    let stores = [open(&odd), open(&odd)];
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let store = stores[task % 2].clone();
            tokio::spawn(async move {
                let resource = store.resource("core/configmaps");
                for n in 0..25 {
                    let write = Write::create(&resource, format!("{task}-{n}"), object(n));
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
    let noted = "SELECT DISTINCT isolation, synchronous FROM tables_role.noted";
    assert_eq!(cluster.ask(noted).as_deref(), Some("read committed|on"));
}

#[test]
fn an_unreachable_server_is_an_error_without_a_password() {
    let error = Postgres::open("postgres://u:hunter2@127.0.0.1:1/x").unwrap_err();
    let text = format!("{error:?} {error}");
    assert!(!text.contains("hunter2"), "{text}");
    let newer = shared().fresh();
    let schema = newer.rsplit('=').next().unwrap().to_owned();
    let first = Postgres::open(&newer).unwrap();
    assert_eq!(first.mark().unwrap().last, 1);
    drop(first);
    let raise = format!("UPDATE {schema}.meta SET min_writer = 99");
    shared().ask(&raise).unwrap();
    let refused = Postgres::open(&newer).unwrap_err();
    assert!(matches!(refused, SqlError::Newer { found: 99, .. }));
}

#[test]
fn a_creation_that_was_interrupted_is_begun_again() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    let marks: [&[u8]; 5] = [
        b"pg_advisory_xact_lock",
        b"CREATE SCHEMA",
        b"CREATE TABLE",
        b"INSERT INTO meta",
        b"COMMIT",
    ];
    for (n, mark) in marks.iter().enumerate() {
        for (way, cut) in [
            ("request", Cut::Request(mark.to_vec())),
            ("answer", Cut::Answer(mark.to_vec())),
        ] {
            let schema = format!("interrupted_{n}_{way}");
            proxy.cut(cut);
            let failed = Postgres::open(&cluster.url(proxy.port, &schema));
            assert!(proxy.has_cut(), "{}", String::from_utf8_lossy(mark));
            assert!(failed.is_err(), "{}", String::from_utf8_lossy(mark));
            let opened = Postgres::open(&cluster.url(cluster.port, &schema)).unwrap();
            assert_eq!(opened.mark().unwrap().last, 1, "{schema}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_is_stuck_and_dead_rows_are_reported() {
    let cluster = shared();
    let backend = Postgres::open(&cluster.url(cluster.port, "tables_stuck")).unwrap();
    let found = |name: &str| {
        let settings = backend.settings().unwrap();
        let found = settings.into_iter().find(|setting| setting.name == name);
        found.unwrap_or_else(|| panic!("{name} is not shown"))
    };
    assert_eq!(found("swept").advice, None);
    assert_eq!(found("dead rows").advice, None);
    assert_eq!(found("oldest transaction of others").advice, None);
    cluster
        .ask(
            "INSERT INTO tables_stuck.log (rev, prev, resource, key, value)
                SELECT n, 0, 'core/pods', 'k' || n, NULL FROM generate_series(2, 100003) n;
             UPDATE tables_stuck.meta SET floor = 100003",
        )
        .unwrap();
    let stuck = found("swept");
    assert_eq!(stuck.value, "up to revision 1, 100002 records are left");
    assert!(stuck.advice.unwrap().contains("--repair"));
}

/// Collects the warnings of this thread.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<String>>);

impl tracing::Subscriber for Heard {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text<'a>(&'a mut String);
        impl tracing::field::Visit for Text<'_> {
            fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?}\n"));
            }
        }
        event.record(&mut Text(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
