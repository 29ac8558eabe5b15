//! Reads of history and state, and compaction.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bareboat_storage::{
    BackendError, ChangePage, LogChange, Mark, PageLimit, Record, Stop, Sweep, Written,
    examine::Setting,
};
use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::Inner;
use super::append::{record, value};
use super::session::{digest_of, mark_of};
use crate::engine::closed;
use crate::error::{read_failed, sweep_failed};

/// The number of changes that one statement reads.
const PAGE: usize = 512;

/// Selects the state at a revision.
const LIVE: &str = "SELECT l.rev, l.prev, l.cluster, l.resource, l.key, l.actor, l.value FROM log l
    WHERE l.rev <= $1 AND ($2::text IS NULL OR l.resource = $2 AND l.cluster = '') AND l.value IS NOT NULL AND l.resource <> ''
        AND NOT EXISTS (SELECT 1 FROM log n WHERE n.prev = l.rev AND n.rev <= $1)
    ORDER BY l.rev";
const LATER: &str = "SELECT rev, prev, cluster, resource, key, actor, value FROM log
    WHERE rev > $1 AND resource <> '' ORDER BY rev";
const CHANGES: &str = "SELECT l.rev, l.prev, l.cluster, l.resource, l.key, l.actor, l.value,
    p.rev, p.prev, p.actor, p.value
    FROM log l LEFT JOIN log p ON p.rev = l.prev AND l.prev <> 0
    WHERE l.rev > $1 AND l.rev <= $2 AND ($3::text IS NULL OR l.resource = $3 AND l.cluster = '') AND l.resource <> ''
    ORDER BY l.rev LIMIT $4";

impl Inner {
    /// Runs a read on the session for long reads.
    fn cold<T>(
        &self,
        read: impl AsyncFnOnce(&Client) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        let mut held = self.cold.get(self)?;
        let Some(connection) = held.as_ref() else {
            return Err(closed());
        };
        let done = self.block(read(&connection.client));
        if !matches!(done, Ok(_) | Err(BackendError::Compacted { .. })) {
            // A transaction or a statement may still be open.
            *held = None;
        }
        done
    }

    pub(super) fn load(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
    ) -> Result<Mark, BackendError> {
        self.cold(async |client| {
            client
                .batch_execute(
                    "SET statement_timeout TO 0;
                     BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
                     SET LOCAL idle_in_transaction_session_timeout TO '60s'",
                )
                .await
                .map_err(read_failed)?;
            let state = "SELECT b.last, b.digest, b.epoch, m.epoch, m.floor,
                pg_total_relation_size('log') + pg_total_relation_size('batch') FROM meta m,
                (SELECT last, digest, epoch FROM batch ORDER BY first DESC LIMIT 1) b";
            let state = client.query_one(state, &[]).await.map_err(read_failed)?;
            let mark = mark_of(&state);
            self.learn(&mark, state.get::<_, i64>(4) as u64)?;
            self.size
                .store(state.get::<_, i64>(5) as u64, Ordering::Relaxed);
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let no: Option<&str> = None;
            let mut see = |row: Row| {
                visit(record(&row, 0));
                true
            };
            each(client, LIVE, &[&after, &no], &mut see).await?;
            each(client, LATER, &[&after], &mut see).await?;
            client
                .batch_execute("COMMIT; SET statement_timeout TO '30s'")
                .await
                .map_err(read_failed)?;
            *self.known.lock() = mark;
            Ok(mark)
        })
    }

    pub(super) fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let upto_known = i64::try_from(upto).unwrap_or(i64::MAX);
        self.cold(async |client| {
            let mut page = ChangePage {
                complete_to: after,
                ..ChangePage::default()
            };
            loop {
                stop.check()?;
                let wanted = PAGE
                    .min(limit.changes.saturating_sub(page.changes.len()))
                    .max(1);
                let (from, most) = (page.complete_to as i64, wanted as i64);
                let (mut seen, mut full) = (0, false);
                each(
                    client,
                    CHANGES,
                    &[&from, &upto_known, &resource, &most],
                    &mut |row| {
                        seen += 1;
                        full = page.push(change(&row), limit);
                        !full
                    },
                )
                .await?;
                if full {
                    break;
                }
                if seen < wanted {
                    page.complete_to = upto.max(after);
                    break;
                }
            }
            self.check_floor(client, after).await?;
            Ok(page)
        })
    }

    pub(super) fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        let at = i64::try_from(revision).unwrap_or(i64::MAX);
        self.cold(async |client| {
            each(client, LIVE, &[&at, &Some(resource)], &mut |row| {
                visit(record(&row, 0));
                !stop.requested()
            })
            .await?;
            stop.check()?;
            self.check_floor(client, revision).await
        })
    }

    /// Fails if rows after `revision` may have been compacted.
    async fn check_floor(&self, client: &Client, revision: u64) -> Result<(), BackendError> {
        let floor = "SELECT floor FROM meta";
        let row = client.query_one(floor, &[]).await.map_err(read_failed)?;
        let floor = row.get::<_, i64>(0) as u64;
        self.learn_floor(floor);
        match revision < floor {
            true => Err(BackendError::Compacted { floor }),
            false => Ok(()),
        }
    }

    /// Passes the history to `visit` in parts of one second, with times by the clock of the database.
    pub(super) fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let history = "SELECT max(last), sum(bytes)::bigint,
                extract(epoch FROM clock_timestamp() - min(at))::float8
            FROM batch WHERE last > (SELECT floor FROM meta) AND first >= coalesce(
                (SELECT max(first) FROM batch WHERE first <= (SELECT floor FROM meta)), 0)
            GROUP BY date_trunc('second', at) ORDER BY 1";
        let rows =
            self.cold(async |client| client.query(history, &[]).await.map_err(read_failed))?;
        let now = SystemTime::now();
        for row in rows {
            let age = Duration::try_from_secs_f64(row.get(2)).unwrap_or_default();
            visit(Written {
                last: row.get::<_, i64>(0) as u64,
                at: now.checked_sub(age).unwrap_or(now),
                bytes: row.get::<_, i64>(1) as u64,
            });
        }
        Ok(())
    }

    /// Returns the last revision before the first batch that was not written before `time`.
    pub(super) fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        let before = "SELECT greatest(m.floor, coalesce(
                (SELECT min(first) - 1 FROM batch WHERE at >= to_timestamp($1) AND last > m.floor),
                (SELECT max(last) FROM batch))) FROM meta m";
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or(0.0, |since| since.as_secs_f64());
        self.cold(async |client| {
            let row = client.query_one(before, &[&since]).await;
            Ok(row.map_err(read_failed)?.get::<_, i64>(0) as u64)
        })
    }

    /// Passes the ends of batches to `visit`, beginning with the batch at the floor.
    pub(super) fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        let places = "SELECT last, digest, epoch FROM batch WHERE first >= coalesce(
                (SELECT max(first) FROM batch WHERE first <= (SELECT floor FROM meta)), 0)
            ORDER BY first";
        self.cold(async |client| {
            each(client, places, &[], &mut |row| {
                visit(Mark {
                    last: row.get::<_, i64>(0) as u64,
                    digest: digest_of(row.get(1)),
                    epoch: row.get::<_, i64>(2) as u64,
                });
                true
            })
            .await
        })
    }

    /// Reads the server settings that decide whether acknowledged writes survive a crash, and how compaction does.
    pub(super) fn durability(&self) -> Result<Vec<Setting>, BackendError> {
        const LOSS: &str = "turn it on: a crash loses acknowledged writes or the whole database";
        let names =
            "SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'fsync',
            'full_page_writes', 'data_checksums', 'synchronous_standby_names') ORDER BY name";
        self.cold(async |client| {
            let rows = client.query(names, &[]).await.map_err(read_failed)?;
            let judged = |row: &Row| {
                let (name, value): (&str, &str) = (row.get(0), row.get(1));
                match name {
                    "fsync" | "full_page_writes" => {
                        Setting::judged(name, value, value == "on", LOSS)
                    }
                    _ => Setting::good(name, value),
                }
            };
            let mut settings: Vec<Setting> = rows.iter().map(judged).collect();
            let row = client.query_one(HEALTH, &[]).await.map_err(read_failed)?;
            let number = |at: usize| row.get::<_, i64>(at).unsigned_abs();
            let (dead, live, oldest) = (number(2), number(3), number(4));
            settings.push(Setting::swept(number(0), number(1)));
            settings.push(Setting::judged(
                "dead rows",
                format!("{dead} beside {live} live ones"),
                dead < MANY || dead < 4 * live,
                "autovacuum does not keep up: see whether it is on, and which old transactions are in pg_stat_activity",
            ));
            settings.push(Setting::judged(
                "oldest transaction of others",
                format!("{oldest} s"),
                oldest < LONG,
                "nothing that was deleted since can be freed: find it in pg_stat_activity, and end it unless it is a backup",
            ));
            Ok(settings)
        })
    }

    pub(super) fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        let mut held = self.writer.get(self)?;
        let Some(connection) = held.as_ref() else {
            return Err(closed());
        };
        let upto = i64::try_from(upto).unwrap_or(i64::MAX);
        let most = i32::try_from(rows).unwrap_or(i32::MAX);
        let sweep = "SELECT floor_is, more, extract(epoch FROM clock_timestamp())::float8,
            pg_total_relation_size('log') + pg_total_relation_size('batch') FROM sweep_v1($1, $2)";
        let swept = self.block(connection.client.query_one(sweep, &[&upto, &most]));
        match swept {
            Ok(row) => {
                let floor = row.get::<_, i64>(0) as u64;
                self.learn_floor(floor);
                self.clock.note(row.get(2));
                let size = row.get::<_, i64>(3) as u64;
                self.size.store(size, Ordering::Relaxed);
                Ok(match row.get(1) {
                    true => Sweep::More,
                    false => Sweep::Done,
                })
            }
            Err(error) => {
                if connection.client.is_closed() {
                    *held = None;
                }
                Err(sweep_failed(error))
            }
        }
    }
}

/// Selects how far compaction is, dead and live rows of the log, and the age in seconds of the oldest transaction of
/// another session.
const HEALTH: &str = "SELECT swept, (SELECT count(*) FROM log WHERE rev > meta.swept AND rev <= meta.floor),
    coalesce(pg_stat_get_dead_tuples('log'::regclass), 0), coalesce(pg_stat_get_live_tuples('log'::regclass), 0),
    (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::bigint FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database())
    FROM meta";
/// The dead rows that are too many if they are also many times the live ones.
const MANY: u64 = 200_000;
/// The seconds after which a transaction of others is reported.
const LONG: u64 = 3600;

/// Passes rows to `see` as they arrive, until `see` returns false.
async fn each(
    client: &Client,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
    see: &mut dyn FnMut(Row) -> bool,
) -> Result<(), BackendError> {
    let parameters = parameters.iter().copied().map(|value| value as &dyn ToSql);
    let parameters: Vec<&dyn ToSql> = parameters.collect();
    let rows = client.query_raw(statement, parameters).await;
    let mut rows = pin!(rows.map_err(read_failed)?);
    while let Some(row) = rows.try_next().await.map_err(read_failed)? {
        if !see(row) {
            return Ok(());
        }
    }
    Ok(())
}

fn change(row: &Row) -> LogChange {
    let record = record(row, 0);
    let previous = row.get::<_, Option<i64>>(7).map(|revision| Record {
        revision: revision as u64,
        prev: row.get::<_, i64>(8) as u64,
        cluster: record.cluster.clone(),
        resource: record.resource.clone(),
        key: record.key.clone(),
        actor: row.get::<_, Option<&str>>(9).map(Into::into),
        value: value(row, 10),
    });
    LogChange { record, previous }
}
