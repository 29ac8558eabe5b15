//! Clusterpedia's table, its indexes and the statements of its storage layer, on the same SQLite with the same memory.

use crate::objects::{Fleet, KINDS, member, name, namespace, object};
use crate::{Result, median, report, timed};
use rusqlite::{Connection, params};
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
                 VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, '2024-01-01 00:00:00', '2024-01-01 00:00:00')",
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
                    format!("{cluster:08x}-{number:08x}"),
                    number.to_string(),
                    body,
                ])?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
}

pub(crate) fn ask(directory: &Path) -> Result<()> {
    let open = || -> Result<Connection> {
        let connection = Connection::open(directory.join("resources.db"))?;
        connection.execute_batch("PRAGMA cache_size = -65536")?;
        Ok(connection)
    };
    let (took, connection) = timed(open)?;
    report("table: open again", took, "");
    let begun = timed(|| {
        // At its start the original reads the version of every object of each member.
        let mut statement = connection
            .prepare("SELECT namespace, name, resource_version FROM resources WHERE cluster = ?")?;
        let mut rows = 0;
        let members: i64 =
            connection.query_row("SELECT count(DISTINCT cluster) FROM resources", [], |row| {
                row.get(0)
            })?;
        for cluster in 0..usize::try_from(members)? {
            let found = statement.query_map([member(cluster)], |row| row.get::<_, String>(1))?;
            rows += found.count();
        }
        Ok(rows)
    })?;
    report(
        "table: versions read at the start",
        begun.0,
        &format!("{} rows", begun.1),
    );
    let list = |condition: &str, limit: usize, value: &str| -> Result<usize> {
        let sql = format!(
            "SELECT object FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods' AND {condition} LIMIT {limit}"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([value])?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            let _body: String = row.get(0)?;
            found += 1;
        }
        Ok(found)
    };
    median("table: get by name", 1000, |round| {
        let number = round % 900 * 10;
        let mut statement = connection.prepare_cached(
            "SELECT object FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods'
                 AND cluster = ? AND namespace = ? AND name = ?",
        )?;
        let found = statement.query_row(
            params![member(round % 5), namespace(number), name(number)],
            |row| row.get::<_, String>(0),
        );
        Ok(usize::from(found.is_ok()))
    })?;
    median("table: page of 500 over all members", 50, |_| {
        list("? = ''", 500, "")
    })?;
    median("table: label, all Pods", 3, |round| {
        let value = ["front", "middle", "back"][round % 3];
        list(
            "JSON_EXTRACT(object, '$.metadata.labels.\"tier\"') = ?",
            100_000,
            value,
        )
    })?;
    median("table: rare label, all Pods", 3, |round| {
        let value = format!("team-{round}");
        list(
            "JSON_EXTRACT(object, '$.metadata.labels.\"team\"') = ?",
            500,
            &value,
        )
    })?;
    median("table: field, all Pods", 3, |round| {
        let value = format!("node-{round}");
        list("JSON_EXTRACT(object, '$.spec.nodeName') = ?", 500, &value)
    })?;
    median("table: count of a kind", 5, |_| {
        let sql = "SELECT count(*) FROM resources WHERE \"group\" = '' AND version = 'v1' AND resource = 'pods'";
        let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        Ok(usize::try_from(count)?)
    })?;
    Ok(())
}
