//! Clusterpedia's table, its indexes and the statements of its storage layer, on the same SQLite with the same memory.

use crate::Result;
use crate::objects::{
    Fleet, KINDS, SIDE_IMAGE, member, name, namespace, node, object, owner, team, tier, uid,
};
use crate::questions::{Engine, Question};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use std::path::Path;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE resources (
        id INTEGER PRIMARY KEY AUTOINCREMENT, \"group\" TEXT NOT NULL, version TEXT NOT NULL, resource TEXT NOT NULL,
        kind TEXT NOT NULL, cluster TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, owner_uid TEXT NOT NULL,
        uid TEXT NOT NULL, resource_version TEXT NOT NULL, object JSON NOT NULL, events JSON, event_resource_versions JSON,
        created_at DATETIME, synced_at DATETIME, deleted_at DATETIME
    );
    CREATE UNIQUE INDEX uni_group_version_resource_cluster_namespace_name
        ON resources (\"group\", version, resource, cluster, namespace, name);
    CREATE INDEX idx_group_version_resource_namespace_name ON resources (\"group\", version, resource, namespace, name);
    CREATE INDEX idx_group_version_resource_name ON resources (\"group\", version, resource, name);
    CREATE INDEX idx_cluster ON resources (cluster);
";

pub(crate) fn fill(directory: &Path, fleet: &Fleet) -> Result<()> {
    let mut connection = Connection::open(directory.join("resources.db"))?;
    connection.execute_batch(SCHEMA)?;
    for cluster in 0..fleet.members {
        // The original commits every row; one transaction for each member spares the time of a million commits.
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare(
                "INSERT INTO resources (\"group\", version, resource, kind, cluster, namespace, name, owner_uid, uid,
                     resource_version, object, created_at, synced_at)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '2024-01-01 00:00:00', '2024-01-01 00:00:00')",
            )?;
            for number in 0..fleet.objects {
                let (group, version, resource, kind) = KINDS[number % KINDS.len()];
                let body = String::from_utf8(object(cluster, number).to_json())?;
                insert.execute(params![
                    group,
                    version,
                    resource,
                    kind,
                    member(cluster),
                    namespace(number),
                    name(number),
                    owner(number).map_or(String::new(), |owner| uid(cluster, owner)),
                    uid(cluster, number),
                    (number + 1).to_string(),
                    body,
                ])?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
}

/// The table, open.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    /// At its start the original reads the version of every object of each member.
    pub(crate) fn open(directory: &Path) -> Result<Sqlite> {
        let connection = Connection::open(directory.join("resources.db"))?;
        connection.execute_batch("PRAGMA cache_size = -65536")?;
        {
            let sql = "SELECT cluster, namespace, name, resource_version FROM resources";
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                std::hint::black_box(row.get::<_, String>(2)?);
            }
        }
        Ok(Sqlite(connection))
    }

    fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Option<usize>> {
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            std::hint::black_box(row.get::<_, String>(0)?);
            found += 1;
        }
        Ok(Some(found))
    }

    fn pods(&self, condition: &str, value: Option<String>) -> Result<Option<usize>> {
        let sql = format!(
            "SELECT object FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods' {condition} LIMIT 500"
        );
        self.rows(&sql, value.map(Value::Text).into_iter().collect())
    }

    fn count(&self, condition: &str) -> Result<Option<usize>> {
        let sql = format!("SELECT count(*) FROM resources {condition}");
        let count: i64 = self.0.query_row(&sql, [], |row| row.get(0))?;
        Ok(Some(usize::try_from(count)?))
    }
}

impl Engine for Sqlite {
    fn ask(&mut self, question: Question, round: usize, members: usize) -> Result<Option<usize>> {
        let label =
            |key: &str| format!("AND JSON_EXTRACT(object, '$.metadata.labels.\"{key}\"') = ?");
        match question {
            Question::Get => {
                let number = round % 900 * 10;
                let sql = "SELECT object FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods'
                     AND cluster = ? AND namespace = ? AND name = ?";
                let place = [member(round % members), namespace(number), name(number)];
                self.rows(sql, place.map(Value::Text).to_vec())
            }
            Question::Page => self.pods("", None),
            Question::IndexedLabel | Question::RareLabel => {
                self.pods(&label("team"), Some(team(0, round * 370)))
            }
            Question::FrequentLabel => self.pods(&label("tier"), Some(tier(round).to_owned())),
            Question::DeclaredField => {
                let node = node(round % members, round * 1000 % 9000);
                self.pods(
                    "AND JSON_EXTRACT(object, '$.\"spec\".\"nodeName\"') = ?",
                    Some(node),
                )
            }
            // It refuses lists; a field of objects costs it as much. It judges every object, whatever the text.
            Question::Field | Question::FieldInEveryBody => {
                let sql = "AND JSON_EXTRACT(object, '$.\"spec\".\"hostname\"') = ?";
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
                let sql = "SELECT object FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods' AND cluster = ?1
                     AND owner_uid IN (SELECT uid FROM resources WHERE cluster = ?1 AND owner_uid IN (
                         SELECT uid FROM resources WHERE cluster = ?1 AND \"group\" = 'apps' AND resource = 'deployments' AND name = ?2))";
                let owner = name(round % 90 * 100 + 5);
                let values = [member(round % members), owner];
                self.rows(sql, values.map(Value::Text).to_vec())
            }
            // It has no counts by value, and searches owners in one cluster only.
            Question::Summary | Question::SummaryAll | Question::OwnerInAll => Ok(None),
        }
    }
}
