//! Reads of history and state.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bareboat_storage::{
    BackendError, ChangePage, LogChange, Mark, PageLimit, Record, Stop, Written, examine::Setting,
};
use mysql_async::{Params, Value as Column};

use super::Inner;
use super::durable::{BINLOG, DOUBLEWRITE, Durable, FLUSH};
use super::link::Connection;
use super::rows::{self, number};
use super::tail::newest;
use crate::engine::closed;
use crate::error::read_failed;

/// The number of changes that one statement reads.
const PAGE: usize = 128;

const COLUMNS: &str = "SELECT l.rev, l.prev, l.cluster, l.resource, l.`key`, l.actor, l.value";
const SIZES: &str = "SELECT SUM(data_length + index_length + data_free), SUM(data_free)
    FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ('log', 'batch')";

/// Returns the query for the state at a revision, of one resource if `of_one`, otherwise of all resources. The list of
/// replaced revisions is computed once.
fn live(of_one: bool) -> String {
    let filter = match of_one {
        true => "l.resource = ? AND l.cluster = ''",
        false => "l.resource <> ''",
    };
    format!(
        "{COLUMNS} FROM log l WHERE l.rev <= ? AND l.rev NOT IN (SELECT n.prev FROM log n WHERE n.rev <= ?)
            AND l.value IS NOT NULL AND {filter} ORDER BY l.rev"
    )
}

fn changes(of_one: bool) -> String {
    let filter = match of_one {
        true => "l.resource = ? AND l.cluster = ''",
        false => "l.resource <> ''",
    };
    format!(
        "{COLUMNS}, p.rev, p.prev, p.actor, p.value FROM log l LEFT JOIN log p ON p.rev = l.prev
            WHERE l.rev > ? AND l.rev <= ? AND {filter} ORDER BY l.rev LIMIT {PAGE}"
    )
}

/// Returns the parameters of a query: `numbers`, and `resource` if there is one.
fn with_resource(numbers: [u64; 2], resource: Option<&str>) -> Params {
    let numbers = numbers.map(Column::UInt).into_iter();
    let resource = resource.map(|name| Column::Bytes(name.as_bytes().to_vec()));
    Params::Positional(numbers.chain(resource).collect())
}

impl Inner {
    /// Runs a read on the session for long reads.
    fn cold<T>(
        &self,
        read: impl AsyncFnOnce(&mut Connection) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        // A server that was restarted since the last use does not report it.
        self.repeatable(&self.cold, async |link| link.run("DO 0").await)?;
        let mut held = self.cold.get(self)?;
        let Some(link) = held.as_mut() else {
            return Err(closed());
        };
        let done = self.block(read(link));
        if !matches!(done, Ok(_) | Err(BackendError::Compacted { .. })) {
            // A transaction may still be open.
            *held = None;
        }
        done
    }

    pub(super) fn load(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
    ) -> Result<Mark, BackendError> {
        let mark = self.cold(async |link| {
            let (patient, usual) = match link.server.is_mariadb {
                true => (
                    "idle_transaction_timeout = 60, max_statement_time = 0",
                    "idle_transaction_timeout = 2, max_statement_time = 30",
                ),
                false => ("max_execution_time = 0", "max_execution_time = 30000"),
            };
            let begin = format!(
                "SET SESSION {patient}; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
                 START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            );
            link.run(&begin).await.map_err(read_failed)?;
            let (mark, floor) = newest(link).await.map_err(read_failed)?;
            self.learn(&mark, floor)?;
            let mut see = |mut row| {
                visit(rows::record(&mut row));
                true
            };
            let (all, from) = (live(false), with_resource([after, after], None));
            link.each(&all, from, &mut see).await.map_err(read_failed)?;
            let later =
                format!("{COLUMNS} FROM log l WHERE l.rev > ? AND l.resource <> '' ORDER BY l.rev");
            link.each(&later, (after,), &mut see)
                .await
                .map_err(read_failed)?;
            let end = format!("COMMIT; SET SESSION {usual}");
            link.run(&end).await.map_err(read_failed)?;
            if let Some(row) = link.first(SIZES, ()).await.map_err(read_failed)? {
                self.size.store(number(&row, 0), Ordering::Relaxed);
                self.free.store(number(&row, 1), Ordering::Relaxed);
            }
            Ok(mark)
        })?;
        self.make_durable()?;
        *self.known.lock() = mark;
        Ok(mark)
    }

    /// Returns the last revision before the first batch that was not written before `time`.
    pub(super) fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        let before = "SELECT GREATEST(m.floor, COALESCE(
                (SELECT MIN(b.first) - 1 FROM batch b
                    WHERE b.at >= TIMESTAMPADD(MICROSECOND, ?, '1970-01-01') AND b.last > m.floor),
                m.last)) FROM meta m WHERE m.id = 1";
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_micros() as u64);
        self.cold(async |link| {
            let row = link.first(before, (since,)).await.map_err(read_failed)?;
            Ok(row.map_or(0, |row| number(&row, 0)))
        })
    }

    /// Passes the ends of batches to `visit`, beginning with the batch at the floor.
    pub(super) fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        let places = "SELECT last, digest, epoch FROM batch WHERE first >= COALESCE(
                (SELECT MAX(b.first) FROM batch b WHERE b.first <= (SELECT floor FROM meta)), 0)
            ORDER BY first";
        self.cold(async |link| {
            link.each(places, (), |row| {
                visit(rows::mark(&row));
                true
            })
            .await
            .map_err(read_failed)
        })
    }

    /// Reads the server settings that decide whether acknowledged writes survive a crash, and how far compaction is.
    pub(super) fn settings(&self) -> Result<Vec<Setting>, BackendError> {
        let names = "SELECT @@version, @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin, @@sync_binlog,
            swept, (SELECT COUNT(*) FROM log WHERE rev > meta.swept AND rev <= meta.floor) FROM meta WHERE id = 1";
        let row = self.cold(async |link| {
            let row = link.first(names, ()).await.map_err(read_failed)?;
            row.ok_or_else(closed)
        })?;
        let value = |at: usize| rows::text(&row, at);
        let (flush, doublewrite, binlog, sync) = (value(1), value(2), value(3), value(4));
        let has_binlog = matches!(binlog.as_str(), "1" | "ON");
        let judged = |setting: &Durable, value: &str| Setting {
            advice: setting.complaint(value),
            ..Setting::good(setting.name, value)
        };
        Ok(vec![
            Setting::good("version", value(0)),
            judged(&FLUSH, &flush),
            judged(&DOUBLEWRITE, &doublewrite),
            Setting::good("log_bin", binlog),
            match has_binlog {
                true => judged(&BINLOG, &sync),
                false => Setting::good(BINLOG.name, sync),
            },
            Setting::swept(rows::number(&row, 5), rows::number(&row, 6)),
        ])
    }

    pub(super) fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let statement = changes(resource.is_some());
        self.cold(async |link| {
            let mut page = ChangePage {
                complete_to: after,
                ..ChangePage::default()
            };
            loop {
                stop.check()?;
                let (mut seen, mut full) = (0, false);
                let from = with_resource([page.complete_to, upto], resource);
                link.each(&statement, from, |mut row| {
                    seen += 1;
                    let record = rows::record(&mut row);
                    let previous = rows::previous(&mut row, &record);
                    full = page.push(LogChange { record, previous }, limit);
                    !full
                })
                .await
                .map_err(read_failed)?;
                if full {
                    break;
                }
                if seen < PAGE {
                    page.complete_to = upto.max(after);
                    break;
                }
            }
            self.check_floor(link, after).await?;
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
        let statement = live(true);
        self.cold(async |link| {
            let at = with_resource([revision, revision], Some(resource));
            link.each(&statement, at, |mut row| {
                visit(rows::record(&mut row));
                !stop.requested()
            })
            .await
            .map_err(read_failed)?;
            stop.check()?;
            self.check_floor(link, revision).await
        })
    }

    /// Fails if rows after `revision` may have been compacted.
    async fn check_floor(&self, link: &mut Connection, revision: u64) -> Result<(), BackendError> {
        let (_, floor) = newest(link).await.map_err(read_failed)?;
        self.learn_floor(floor);
        match revision < floor {
            true => Err(BackendError::Compacted { floor }),
            false => Ok(()),
        }
    }

    /// Passes the history to `visit` in parts of one second, with times by the clock of the database.
    pub(super) fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let start = "SELECT COALESCE(MAX(first), 0) FROM batch WHERE first <= ?";
        let history =
            "SELECT MAX(last), SUM(bytes), TIMESTAMPDIFF(MICROSECOND, MIN(at), UTC_TIMESTAMP(6))
            FROM batch WHERE first >= ? AND last > ?
            GROUP BY TIMESTAMPDIFF(SECOND, '2020-01-01', at) ORDER BY 1";
        let rows = self.cold(async |link| {
            let (_, floor) = newest(link).await.map_err(read_failed)?;
            let start = link.first(start, (floor,)).await.map_err(read_failed)?;
            let start = start.map_or(0, |row| number(&row, 0));
            link.rows(history, (start, floor))
                .await
                .map_err(read_failed)
        })?;
        let now = SystemTime::now();
        for row in rows {
            let age = Duration::from_micros(number(&row, 2));
            visit(Written {
                last: number(&row, 0),
                at: now.checked_sub(age).unwrap_or(now),
                bytes: number(&row, 1),
            });
        }
        Ok(())
    }
}
