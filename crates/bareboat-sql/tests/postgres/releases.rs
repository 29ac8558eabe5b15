//! Tests of two releases on one store: the tables of the first release, and a server of the first release that still
//! writes to them. Its tables and statements are kept here as they were.

use std::time::Duration;

use bareboat_sql::Postgres;
use bareboat_storage::{Batch, Digest, Mark, Record, Value, WatchSpec, Write};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use super::cluster::shared;
use super::{number, object, open};

const TABLES: &str = include_str!("format-1.sql");
const MARK: &str = "SELECT b.last, b.digest, b.epoch, m.epoch, m.floor FROM meta m,
    (SELECT last, digest, epoch FROM batch ORDER BY first DESC LIMIT 1) b";
const APPEND: &str =
    "SELECT append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
const TAIL: &str = "SELECT b.first, b.last, b.digest, b.epoch, l.rev, l.prev, l.cluster, l.resource, l.key, l.actor, l.value
    FROM (SELECT *, sum(bytes) OVER (ORDER BY first) AS total FROM
        (SELECT * FROM batch WHERE first > $1 ORDER BY first LIMIT 256) next) b
    LEFT JOIN log l ON l.rev BETWEEN b.first AND b.last
    WHERE b.total - b.bytes < 8388608 ORDER BY b.first, l.rev";

/// A server of the first release.
struct Older {
    client: Client,
    lock: i32,
    writer: u128,
    appended: u128,
}

impl Older {
    async fn connect(port: u16, schema: &str) -> Self {
        let address = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        let path = format!("SET search_path TO \"{schema}\"");
        client.batch_execute(&path).await.unwrap();
        let oid = "SELECT oid FROM pg_namespace WHERE nspname = $1";
        let oid: u32 = client.query_one(oid, &[&schema]).await.unwrap().get(0);
        Self {
            client,
            lock: oid as i32,
            writer: 0x0dd << 64,
            appended: 0,
        }
    }

    async fn mark(&self) -> Mark {
        let row = self.client.query_one(MARK, &[]).await.unwrap();
        let digest: &[u8] = row.get(1);
        Mark {
            last: row.get::<_, i64>(0) as u64,
            epoch: row.get::<_, i64>(3) as u64,
            digest: Digest(digest.try_into().unwrap()),
        }
    }

    /// Appends one object after `base`; returns what the function answers.
    async fn append(&mut self, base: &Mark, key: &str, n: u64) -> i64 {
        self.appended += 1;
        let record = Record {
            revision: base.last + 1,
            prev: 0,
            cluster: "".into(),
            resource: "core/configmaps".into(),
            key: key.into(),
            actor: None,
            value: Some(Value::new(object(n))),
        };
        let batch = Batch {
            id: self.writer | self.appended,
            writer: self.writer,
            records: vec![record],
        };
        let end = batch.end(base);
        let channel = format!("bareboat_{}", self.lock as u32);
        let object = object(n);
        let (values, actors): (Vec<Option<&[u8]>>, Vec<Option<&str>>) =
            (vec![Some(&object)], vec![None]);
        let (prevs, clusters) = (vec![0i64], vec![""]);
        let (resources, keys) = (vec!["core/configmaps"], vec![key]);
        let (base_last, epoch, size) = (base.last as i64, base.epoch as i64, 100i64);
        let (id, writer) = (Uuid::from_u128(batch.id), Uuid::from_u128(batch.writer));
        let (was, is) = (&base.digest.0[..], &end.digest.0[..]);
        let parameters: [&(dyn ToSql + Sync); 15] = [
            &self.lock, &channel, &base_last, &was, &epoch, &id, &writer, &is, &size, &prevs,
            &clusters, &resources, &keys, &actors, &values,
        ];
        let answer = self.client.query_one(APPEND, &parameters).await;
        answer.unwrap().get(0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_the_first_release_shares_its_store() {
    let cluster = shared();
    let schema = "first_release";
    let tables = format!("CREATE SCHEMA {schema}; SET search_path TO {schema}; {TABLES}");
    cluster.ask(&tables).unwrap();
    let mut older = Older::connect(cluster.port, schema).await;
    let base = older.mark().await;
    assert_eq!(older.append(&base, "a/0", 0).await, 0);
    // The present release opens the store that the first one made.
    let store = open(&cluster.url(cluster.port, schema));
    let resource = store.resource("core/configmaps");
    assert_eq!(number(resource.get("a/0").unwrap().json()), 0);
    let mut watcher = resource.watch(WatchSpec::all(store.visible())).unwrap();
    for n in 1..20 {
        let base = older.mark().await;
        let key = format!("a/{n}");
        if n % 2 == 0 {
            assert_eq!(older.append(&base, &key, n).await, 0);
        } else {
            let write = Write::create(&resource, key.clone(), object(n));
            store.commit(write).await.unwrap();
            // The older server was too late, and learns what it missed.
            let moved = older.append(&base, "a/late", n).await;
            assert_eq!(moved, base.last as i64 + 1);
            let missed = older
                .client
                .query(TAIL, &[&(base.last as i64)])
                .await
                .unwrap();
            assert_eq!(missed[0].get::<_, &str>(8), key);
        }
        let events = watcher.next_batch(9).await.unwrap();
        assert_eq!((events[0].key(), events[0].rev), (&*key, base.last + 1));
    }
    // The present release compacts and begins an epoch; the older one notices.
    store.compact(store.visible()).await.unwrap();
    let base = older.mark().await;
    assert_eq!(older.append(&base, "a/20", 20).await, 0);
    let old = older.mark().await;
    let epoch = format!(
        "SET search_path TO {schema}; SELECT epoch_v1({}, 'c', 1, 0, 'restore', '00000001')",
        older.lock
    );
    cluster.ask(&epoch).unwrap();
    assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
    assert!(older.append(&old, "a/lost", 1).await != 0);
    assert_eq!(older.mark().await.epoch, 2);
    assert_eq!(resource.len(), 21);
    store.close().await;
}

/// A change of a table or function of format 1 would not reach the stores that exist: it needs another name, or another
/// format.
#[test]
fn tables_of_a_new_store_are_those_of_its_format() {
    let cluster = shared();
    let tables = format!("CREATE SCHEMA pinned; SET search_path TO pinned; {TABLES}");
    cluster.ask(&tables).unwrap();
    drop(Postgres::open(&cluster.url(cluster.port, "created")).unwrap());
    let shape = |schema: &str| {
        let functions = format!(
            "SELECT string_agg(proname || ' ' || pg_get_function_arguments(oid) || prosrc, E'\n' ORDER BY proname)
             FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace"
        );
        let columns = format!(
            "SELECT string_agg(concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default), E'\n'
                ORDER BY table_name, ordinal_position)
             FROM information_schema.columns WHERE table_schema = '{schema}'"
        );
        let format = format!("SELECT format FROM {schema}.meta");
        [functions, columns, format].map(|question| cluster.ask(&question).unwrap())
    };
    let (created, pinned) = (shape("created"), shape("pinned"));
    for (created, pinned) in created.iter().zip(&pinned) {
        assert_eq!(created, pinned);
    }
}
