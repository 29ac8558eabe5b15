//! Replaces the content of a database by that of another log, and begins the next epoch.

use bareboat_storage::{BackendError, Mark, Record, Refill, Value};
use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::Inner;
use super::schema::{FORMAT, INCOMPLETE, LOCK};
use crate::engine::closed;
use crate::error::sweep_failed;

impl Inner {
    /// Runs an operation on the writer's session, which is dropped after an error.
    fn write<T>(
        &self,
        act: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, BackendError> {
        let mut held = self.writer.get(self)?;
        let Some(connection) = held.as_mut() else {
            return Err(closed());
        };
        let done = self.block(async {
            let client = &mut connection.client;
            client.batch_execute("SET statement_timeout TO 0").await?;
            let done = act(client).await?;
            client
                .batch_execute("SET statement_timeout TO '30s'")
                .await?;
            Ok(done)
        });
        done.map_err(|error: Error| {
            *held = None;
            sweep_failed(error)
        })
    }

    pub(super) fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.write(async |client| match step {
            Refill::Begin => {
                let clear = format!(
                    "BEGIN; SELECT pg_advisory_xact_lock({LOCK}, {});
                     UPDATE meta SET min_writer = {INCOMPLETE}; DELETE FROM log;
                     DELETE FROM batch WHERE first < (SELECT max(first) FROM batch); COMMIT",
                    self.key()
                );
                client.batch_execute(&clear).await
            }
            Refill::State(records) => plant(client, records).await,
            Refill::Start(end) => start(client, &end).await,
            Refill::Finish => {
                let finish = format!("UPDATE meta SET min_writer = {FORMAT}");
                client.batch_execute(&finish).await
            }
        })?;
        if let Refill::Start(end) = step {
            self.restart_at(&end);
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> Result<bool, BackendError> {
        self.write(async |client| {
            let state = "SELECT min_writer FROM meta";
            let row = client.query_one(state, &[]).await?;
            Ok(row.get::<_, i32>(0) != INCOMPLETE)
        })
    }

    pub(super) fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        self.write(async |client| {
            let state = "SELECT epoch, timeline FROM meta";
            let row = client.query_one(state, &[]).await?;
            let (epoch, timeline): (i64, String) = (row.get(0), row.get(1));
            self.begin_epoch(client, epoch, beyond, "restore", &timeline)
                .await
        })?;
        self.mark()
    }
}

/// Inserts records that belong to no batch.
async fn plant(client: &Client, records: &[Record]) -> Result<(), Error> {
    let revs: Vec<i64> = records.iter().map(|one| one.revision as i64).collect();
    let prevs: Vec<i64> = records.iter().map(|one| one.prev as i64).collect();
    let clusters: Vec<&str> = records.iter().map(|one| &*one.cluster).collect();
    let resources: Vec<&str> = records.iter().map(|one| &*one.resource).collect();
    let keys: Vec<&str> = records.iter().map(|one| &*one.key).collect();
    let actors: Vec<Option<&str>> = records.iter().map(|one| one.actor.as_deref()).collect();
    let values: Vec<Option<bytes::Bytes>> = records
        .iter()
        .map(|one| one.value.as_ref().map(Value::to_bytes))
        .collect();
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| value.as_deref()).collect();
    let insert = "INSERT INTO log (rev, prev, cluster, resource, key, actor, value)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[])";
    client
        .execute(
            insert,
            &[
                &revs, &prevs, &clusters, &resources, &keys, &actors, &values,
            ],
        )
        .await
        .map(drop)
}

/// Makes `end` the end and the floor of the log.
async fn start(client: &mut Client, end: &Mark) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute("DELETE FROM batch").await?;
    let (last, epoch) = (end.last as i64, end.epoch as i64);
    let batch = "INSERT INTO batch (first, last, id, writer, epoch, digest, bytes)
        VALUES ($1, $1, $2, $3, $4, $5, 0)";
    transaction
        .execute(
            batch,
            &[
                &last,
                &Uuid::new_v4(),
                &Uuid::nil(),
                &epoch,
                &&end.digest.0[..],
            ],
        )
        .await?;
    let meta = "UPDATE meta SET epoch = $2, floor = $1, swept = $1";
    transaction.execute(meta, &[&last, &epoch]).await?;
    transaction.commit().await
}
