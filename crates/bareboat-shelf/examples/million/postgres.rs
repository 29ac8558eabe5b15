//! Clusterpedia's table, its indexes and the statements of its storage layer on PostgreSQL.

use crate::Result;
use crate::objects::{
    Fleet, KINDS, SIDE_IMAGE, member, name, namespace, node, object, owner, team, tier, uid,
};
use crate::questions::{Engine, Question};
use bytes::BytesMut;
use futures_util::SinkExt as _;
use std::fmt::Write as _;
use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

const SCHEMA: &str = "
    CREATE TABLE resources (
        id BIGSERIAL PRIMARY KEY, \"group\" VARCHAR(63) NOT NULL, version VARCHAR(15) NOT NULL, resource VARCHAR(63) NOT NULL,
        kind VARCHAR(63) NOT NULL, cluster VARCHAR(253) NOT NULL, namespace VARCHAR(253) NOT NULL, name VARCHAR(253) NOT NULL,
        owner_uid VARCHAR(36) NOT NULL, uid VARCHAR(36) NOT NULL, resource_version VARCHAR(30) NOT NULL, object JSONB NOT NULL,
        events JSONB, event_resource_versions JSONB, created_at TIMESTAMPTZ, synced_at TIMESTAMPTZ, deleted_at TIMESTAMPTZ
    );
    CREATE UNIQUE INDEX uni_group_version_resource_cluster_namespace_name
        ON resources (\"group\", version, resource, cluster, namespace, name);
    CREATE INDEX idx_group_version_resource_namespace_name ON resources (\"group\", version, resource, namespace, name);
    CREATE INDEX idx_group_version_resource_name ON resources (\"group\", version, resource, name);
    CREATE INDEX idx_cluster ON resources (cluster);
";

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).enable_all().build()?)
}

/// Fills the table, and returns its size in MB. Rows are copied; the original inserts and commits each.
pub(crate) fn fill(url: &str, fleet: &Fleet) -> Result<i64> {
    runtime()?.block_on(async {
        let client = connect(url).await?;
        client.batch_execute(SCHEMA).await?;
        for cluster in 0..fleet.members {
            let sql = "COPY resources (\"group\", version, resource, kind, cluster, namespace, name, owner_uid, uid,
                 resource_version, object, created_at, synced_at) FROM STDIN";
            let mut sink = Box::pin(client.copy_in(sql).await?);
            for number in 0..fleet.objects {
                let (group, version, resource, kind) = KINDS[number % KINDS.len()];
                let body = String::from_utf8(object(cluster, number).to_json())?;
                let owner = owner(number).map_or(String::new(), |owner| uid(cluster, owner));
                let mut line = BytesMut::with_capacity(body.len() + 300);
                // Nothing in these objects needs an escape.
                writeln!(
                    line,
                    "{group}\t{version}\t{resource}\t{kind}\t{}\t{}\t{}\t{owner}\t{}\t{}\t{body}\t2024-01-01 00:00:00\t2024-01-01 00:00:00",
                    member(cluster), namespace(number), name(number), uid(cluster, number), number + 1,
                )?;
                sink.send(line.freeze()).await?;
            }
            sink.as_mut().finish().await?;
        }
        client.batch_execute("VACUUM ANALYZE resources").await?;
        let row = client
            .query_one("SELECT pg_total_relation_size('resources') / 1048576", &[])
            .await?;
        Ok(row.get(0))
    })
}

/// The table, open.
pub(crate) struct Postgres {
    runtime: Runtime,
    client: Client,
}

impl Postgres {
    /// At its start the original reads the version of every object of each member.
    pub(crate) fn open(url: &str) -> Result<Postgres> {
        let runtime = runtime()?;
        let client = runtime.block_on(connect(url))?;
        let sql =
            "SELECT cluster, namespace, name, resource_version FROM resources WHERE cluster = $1";
        let names: Vec<String> = runtime
            .block_on(client.query("SELECT DISTINCT cluster FROM resources", &[]))?
            .iter()
            .map(|row| row.get(0))
            .collect();
        for name in names {
            std::hint::black_box(runtime.block_on(client.query(sql, &[&name]))?);
        }
        Ok(Postgres { runtime, client })
    }

    fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Option<usize>> {
        let rows = self.runtime.block_on(self.client.query(sql, values))?;
        Ok(Some(rows.len()))
    }

    fn pods(&self, condition: &str, value: Option<String>) -> Result<Option<usize>> {
        let sql = format!(
            "SELECT object::text FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods' {condition} LIMIT 500"
        );
        let values = value.iter().map(|value| value as &(dyn ToSql + Sync));
        self.rows(&sql, &values.collect::<Vec<_>>())
    }

    fn count(&self, condition: &str) -> Result<Option<usize>> {
        let sql = format!("SELECT count(*) FROM resources {condition}");
        let row = self.runtime.block_on(self.client.query_one(&sql, &[]))?;
        Ok(Some(usize::try_from(row.get::<_, i64>(0))?))
    }
}

impl Engine for Postgres {
    fn ask(&mut self, question: Question, round: usize, members: usize) -> Result<Option<usize>> {
        let label = |key: &str| format!("AND object -> 'metadata' -> 'labels' ->> '{key}' = $1");
        match question {
            Question::Get => {
                let number = round % 900 * 10;
                let sql = "SELECT object::text FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods'
                     AND cluster = $1 AND namespace = $2 AND name = $3";
                let (cluster, namespace) = (member(round % members), namespace(number));
                self.rows(sql, &[&cluster, &namespace, &name(number)])
            }
            Question::Page => self.pods("", None),
            Question::IndexedLabel | Question::RareLabel => {
                self.pods(&label("team"), Some(team(0, round * 370)))
            }
            Question::FrequentLabel => self.pods(&label("tier"), Some(tier(round).to_owned())),
            Question::DeclaredField => {
                let node = node(round % members, round * 1000 % 9000);
                self.pods("AND object -> 'spec' ->> 'nodeName' = $1", Some(node))
            }
            // It refuses lists; a field of objects costs it as much. It judges every object, whatever the text.
            Question::Field | Question::FieldInEveryBody => {
                let sql = "AND object -> 'spec' ->> 'hostname' = $1";
                let text = match question {
                    Question::Field => "nothing",
                    _ => SIDE_IMAGE,
                };
                self.pods(sql, Some(text.to_owned()))
            }
            Question::CountPods => {
                self.count("WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods'")
            }
            Question::CountAll => self.count(""),
            Question::OwnerInOne => {
                let sql = "SELECT object::text FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods'
                     AND cluster = $1 AND owner_uid IN (SELECT uid FROM resources WHERE cluster = $1 AND owner_uid IN (
                         SELECT uid FROM resources WHERE cluster = $1 AND \"group\" = 'apps' AND resource = 'deployments' AND name = $2))";
                let owner = name(round % 90 * 100 + 5);
                self.rows(sql, &[&member(round % members), &owner])
            }
            // It has no counts by value, and searches owners in one cluster only.
            Question::Summary | Question::SummaryAll | Question::OwnerInAll => Ok(None),
        }
    }
}
