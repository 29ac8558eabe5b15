//! Replaces the content of a database by that of another log, and begins the next epoch.

use bareboat_storage::{BackendError, Mark, Refill};
use mysql_async::Error;
use uuid::Uuid;

use super::Inner;
use super::append::{parameters, rows_at_once, statement};
use super::link::{Connection, silence};
use super::rows::number;
use super::schema::{FORMAT, INCOMPLETE, hex};
use super::tail::newest;
use crate::engine::closed;
use crate::error::sweep_failed;

impl Inner {
    /// Runs an operation on the writer's session, which is dropped after an error.
    fn write<T>(
        &self,
        act: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, BackendError> {
        let mut held = self.writer.get(self)?;
        let Some(link) = held.as_mut() else {
            return Err(closed());
        };
        self.block(act(link)).map_err(|error| {
            *held = None;
            sweep_failed(error)
        })
    }

    pub(super) fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.write(async |link| match step {
            Refill::Begin => {
                let begin = format!("UPDATE meta SET min_writer = {INCOMPLETE} WHERE id = 1");
                link.run(&begin).await?;
                clear(link).await
            }
            Refill::State(records) => {
                let mut rest = records;
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(rows_at_once(rest, link.server.packet / 2));
                    link.first(&statement(now.len()), parameters(now)).await?;
                    rest = later;
                }
                Ok(())
            }
            Refill::Start(end) => start(link, &end).await,
            Refill::Finish => {
                let finish = format!("UPDATE meta SET min_writer = {FORMAT} WHERE id = 1");
                link.run(&finish).await.map(drop)
            }
        })?;
        if let Refill::Start(end) = step {
            self.restart_at(&end);
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> Result<bool, BackendError> {
        self.write(async |link| {
            let state = "SELECT min_writer FROM meta WHERE id = 1";
            let row = link.first(state, ()).await?.ok_or_else(silence)?;
            Ok(number(&row, 0) != INCOMPLETE)
        })
    }

    pub(super) fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        let mark = self.write(async |link| {
            let (mark, _) = newest(link).await?;
            self.begin_epoch(link, mark.epoch, beyond, "restore")
                .await?;
            newest(link).await
        })?;
        self.learn(&mark.0, mark.1)?;
        Ok(mark.0)
    }
}

/// Deletes all records and batches in slices, because the time of one statement is limited.
async fn clear(link: &mut Connection) -> Result<(), Error> {
    for table in ["log", "batch"] {
        let delete = format!("DELETE FROM {table} LIMIT 5000; SELECT ROW_COUNT()");
        loop {
            let row = link.run(&delete).await?.ok_or_else(silence)?;
            if number(&row, 0) == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Makes `end` the end and the floor of the log.
async fn start(link: &mut Connection, end: &Mark) -> Result<(), Error> {
    let (last, epoch, digest) = (end.last, end.epoch, hex(&end.digest.0));
    let (id, writer) = (Uuid::new_v4().simple(), Uuid::nil().simple());
    let start = format!(
        "START TRANSACTION;
         INSERT INTO batch (first, last, id, writer, epoch, digest, bytes, at)
            VALUES ({last}, {last}, x'{id}', x'{writer}', {epoch}, x'{digest}', 0, UTC_TIMESTAMP(6));
         UPDATE meta SET last = {last}, digest = x'{digest}', epoch = {epoch}, floor = {last}, swept = {last} WHERE id = 1;
         COMMIT"
    );
    let started = link.run(&start).await;
    if started.is_err() {
        link.roll_back().await;
    }
    started.map(drop)
}
