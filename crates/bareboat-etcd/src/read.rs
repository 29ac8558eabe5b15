//! Reads of history and state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bareboat_storage::{
    BackendError, ChangePage, Mark, PageLimit, Record, Stop, Written, examine::Setting,
};

use crate::channel::Channel;
use crate::engine::Inner;
use crate::fetch::{Sketch, Stored, sketches};
use crate::hold::Hold;
use crate::messages::Range;
use crate::session::ReadError;

/// The number of rows that are read at once.
const ROWS: u64 = 256;
/// The number of changes whose values are read at once.
const CHANGES: usize = 60;
/// How often loading is tried, when another program compacts in the meantime.
const TRIES: u32 = 3;

impl Inner {
    pub(crate) fn load(
        self: &Arc<Self>,
        after: u64,
        visit: &mut dyn FnMut(Record),
    ) -> Result<Mark, BackendError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let read = self.cold.call(self, async |channel| {
                let status = channel.status().await?;
                self.note_size(&status);
                let (mark, floor, _) = self.end(channel).await?;
                let at = after.max(floor).min(mark.last);
                let state = self.state(channel, at, None, &|| Ok(())).await?;
                let mut records: Vec<Record> = state.into_values().collect();
                records.sort_by_key(|record| record.revision);
                let (mut from, mut later) = (at, Vec::new());
                while from < mark.last {
                    let rows = self.page_of_rows(channel, from, mark.last).await?;
                    let Some(last) = rows.last().map(|stored| stored.row.last) else {
                        break;
                    };
                    let mut part = Vec::new();
                    for stored in &rows {
                        part.extend(sketches(stored, (from, mark.last), None, false)?);
                    }
                    let changes = self.fill(channel, part).await?;
                    later.extend(changes.into_iter().map(|change| change.record));
                    from = last;
                }
                Ok((mark, records, later))
            });
            match read {
                Ok((mark, records, later)) => {
                    records.into_iter().chain(later).for_each(visit);
                    self.set_known(mark);
                    return Ok(mark);
                }
                Err(BackendError::Compacted { .. }) if tries < TRIES => self.look_again()?,
                Err(BackendError::Compacted { .. }) => {
                    let why = "the history is compacted faster than it can be read";
                    return Err(BackendError::Unreachable(why.into()));
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn dump(
        self: &Arc<Self>,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        self.cold.call(self, async |channel| {
            let mut hold = self.hold(channel, after).await?;
            let read = self.dump_held(channel, after, visit, (stop, &mut hold));
            let read = read.await;
            self.release(channel, &hold).await;
            read
        })
    }

    async fn dump_held(
        &self,
        channel: &Channel,
        after: u64,
        visit: &mut dyn FnMut(Record),
        (stop, hold): (&Stop, &mut Hold),
    ) -> Result<Mark, ReadError> {
        let (mark, floor, _) = self.end(channel).await?;
        if after < floor {
            return Err(ReadError::Compacted);
        }
        let mut from = after.min(mark.last);
        self.each_of_state(channel, from, None, &mut |_, record| {
            visit(record);
            Ok(stop.check()?)
        })
        .await?;
        while from < mark.last {
            self.renew(channel, hold).await?;
            let rows = self.page_of_rows(channel, from, mark.last).await?;
            let Some(last) = rows.last().map(|stored| stored.row.last) else {
                break;
            };
            for stored in &rows {
                let part = sketches(stored, (from, mark.last), None, false)?;
                for change in self.fill(channel, part).await? {
                    visit(change.record);
                }
                stop.check()?;
            }
            from = last;
        }
        Ok(mark)
    }

    /// Raises the floor if another program has compacted.
    fn look_again(self: &Arc<Self>) -> Result<(), BackendError> {
        self.cold.call(self, async |channel| {
            Ok(self.learn_compaction(channel).await?)
        })
    }

    /// Reads a page of rows: batches that end after `after` and begin at or before `upto`.
    pub(crate) async fn page_of_rows(
        &self,
        channel: &Channel,
        after: u64,
        upto: u64,
    ) -> Result<Vec<Stored>, ReadError> {
        let range = Range {
            end: self.keys.row(upto.saturating_add(1)),
            ..self.rows_after(after, ROWS)
        };
        let mut rows = Stored::all(&channel.range(&range).await?)?;
        rows.retain(|stored| stored.row.last > after);
        Ok(rows)
    }

    pub(crate) fn read_since(
        self: &Arc<Self>,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let read = self.cold.call(self, async |channel| {
            let mut page = ChangePage {
                complete_to: after,
                ..ChangePage::default()
            };
            let mut from = after;
            'rows: loop {
                stop.check()?;
                let rows = self.page_of_rows(channel, from, upto).await?;
                let Some(last) = rows.last().map(|stored| stored.row.last) else {
                    page.complete_to = upto.max(after);
                    break;
                };
                let mut due = Vec::new();
                for stored in &rows {
                    due.extend(sketches(stored, (from, upto), resource, true)?);
                }
                let mut due = due.into_iter().peekable();
                while due.peek().is_some() {
                    stop.check()?;
                    let part = next_part(&mut due, &page, limit);
                    for change in self.fill(channel, part).await? {
                        if page.push(change, limit) {
                            break 'rows;
                        }
                    }
                }
                from = last;
            }
            self.check_floor(channel, after).await?;
            Ok(page)
        });
        self.compacted_by_others(read, after)
    }

    pub(crate) fn read_at(
        self: &Arc<Self>,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        let read = self.cold.call(self, async |channel| {
            let check = || Ok(stop.check()?);
            let state = self.state(channel, revision, Some(resource), &check);
            let state = state.await?;
            self.check_floor(channel, revision).await?;
            Ok(state)
        });
        let state = self.compacted_by_others(read, revision)?;
        state.into_values().for_each(visit);
        Ok(())
    }

    /// Fails if changes after `revision` may have been compacted.
    async fn check_floor(&self, channel: &Channel, revision: u64) -> Result<(), ReadError> {
        let (_, floor, _) = self.end(channel).await?;
        match revision < floor {
            true => Err(ReadError::Compacted),
            false => Ok(()),
        }
    }

    /// Raises the floor if etcd has compacted more than the store.
    fn compacted_by_others<T>(
        self: &Arc<Self>,
        read: Result<T, BackendError>,
        revision: u64,
    ) -> Result<T, BackendError> {
        let Err(BackendError::Compacted { .. }) = read else {
            return read;
        };
        self.look_again()?;
        let floor = self.floor.load(Ordering::Acquire);
        match revision < floor {
            true => Err(BackendError::Compacted { floor }),
            // The history was compacted between two reads.
            false => Err(BackendError::Unreachable(
                "the history was compacted during the read".into(),
            )),
        }
    }

    /// Passes the ends of batches to `visit`, beginning with the batch at the floor.
    pub(crate) fn places(
        self: &Arc<Self>,
        visit: &mut dyn FnMut(Mark),
    ) -> Result<(), BackendError> {
        self.cold.call(self, async |channel| {
            let (mark, floor, _) = self.end(channel).await?;
            let mut from = floor.saturating_sub(1);
            while from < mark.last {
                let rows = self.page_of_rows(channel, from, mark.last).await?;
                let Some(last) = rows.last().map(|stored| stored.row.last) else {
                    break;
                };
                rows.iter()
                    .filter_map(|stored| stored.row.end())
                    .for_each(&mut *visit);
                from = last;
            }
            Ok(())
        })
    }

    /// Reads the properties of the cluster that decide whether acknowledged writes survive a crash, and how far
    /// compaction is.
    pub(crate) fn settings(self: &Arc<Self>) -> Result<Vec<Setting>, BackendError> {
        self.cold.call(self, async |channel| {
            let status = channel.status().await?;
            self.note_size(&status);
            let alarms = self.alarms(channel).await?;
            let used = status.in_use * 100 / status.quota.max(1);
            const FULL: &str = "raise --quota-backend-bytes, or delete objects; then etcdctl compact, etcdctl defrag for one member after another, and etcdctl alarm disarm";
            let holds = match &*self.running(channel).await? {
                [] => "none".to_owned(),
                revisions => {
                    let lowest = revisions.iter().min().copied().unwrap_or_default();
                    format!(
                        "{}, history is kept from revision {lowest}",
                        revisions.len()
                    )
                }
            };
            let (swept, left) = self.swept(channel).await?;
            Ok(vec![
                Setting::good("running backups", holds),
                Setting::swept(swept, left),
                self.foreign(channel).await?,
                Setting::good("version", &*status.version),
                Setting::judged(
                    "quota in use",
                    format!("{used} %"),
                    status.quota == 0 || used < 80,
                    FULL,
                ),
                Setting::judged(
                    "alarms",
                    alarms.len().to_string(),
                    alarms.is_empty(),
                    "etcdctl alarm list names them",
                ),
            ])
        })
    }

    /// Returns the last revision before the first batch that was not written before `time`.
    pub(crate) fn revision_before(self: &Arc<Self>, time: SystemTime) -> Result<u64, BackendError> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_millis() as u64);
        self.cold.call(self, async |channel| {
            let (mark, floor, _) = self.end(channel).await?;
            let mut from = floor;
            while from < mark.last {
                let rows = self.page_of_rows(channel, from, mark.last).await?;
                if let Some(later) = rows.iter().find(|stored| stored.row.at >= since) {
                    return Ok((later.row.first - 1).max(floor));
                }
                let Some(last) = rows.last() else { break };
                from = last.row.last;
            }
            Ok(mark.last)
        })
    }

    /// Passes the history to `visit` in parts of one second, with times by the clocks of the writers.
    pub(crate) fn history(
        self: &Arc<Self>,
        visit: &mut dyn FnMut(Written),
    ) -> Result<(), BackendError> {
        let parts = self.cold.call(self, async |channel| {
            let (mark, floor, _) = self.end(channel).await?;
            let mut parts: Vec<(u64, Written)> = Vec::new();
            let mut from = floor;
            while from < mark.last {
                let rows = self.page_of_rows(channel, from, mark.last).await?;
                let Some(last) = rows.last().map(|stored| stored.row.last) else {
                    break;
                };
                for Stored { row, .. } in rows {
                    let second = row.at / 1000;
                    match parts.last_mut() {
                        Some((known, part)) if *known == second => {
                            part.last = row.last;
                            part.bytes += row.bytes;
                        }
                        _ => parts.push((
                            second,
                            Written {
                                last: row.last,
                                at: SystemTime::UNIX_EPOCH + Duration::from_millis(row.at),
                                bytes: row.bytes,
                            },
                        )),
                    }
                }
                from = last;
            }
            Ok(parts)
        })?;
        for (_, part) in parts {
            visit(part);
        }
        Ok(())
    }
}

/// Takes as many changes from `due` as fit into the rest of `page`; at least one.
fn next_part(
    due: &mut std::iter::Peekable<impl Iterator<Item = Sketch>>,
    page: &ChangePage,
    limit: PageLimit,
) -> Vec<Sketch> {
    let most = limit.changes.saturating_sub(page.changes.len());
    let most = most.clamp(1, CHANGES);
    let room = limit.bytes.saturating_sub(page.bytes) as u64;
    let (mut part, mut bytes): (Vec<Sketch>, u64) = (Vec::new(), 0);
    while part.len() < most
        && let Some(next) = due.next_if(|next| part.is_empty() || bytes + next.bytes <= room)
    {
        bytes += next.bytes;
        part.push(next);
    }
    part
}
