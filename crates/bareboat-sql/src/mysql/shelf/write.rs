//! Writing: batches of changes in one transaction, with the versions that cover them.

use super::rows::{self, fill, part};
use super::session::Found;
use crate::mysql::link::{Connection, silence};
use crate::shelf::{Pass, check_limits, failed, fence, places, reached};
use bareboat_shelf::{Batch, Cells as _, Context, Dialect, Narrow, ShelfError, Written};
use bytes::Bytes;
use mysql_async::{Error, Params, Value};

/// Writes batches in the transaction that was begun.
pub(super) async fn apply(
    link: &mut Connection,
    batches: &[Batch],
    context: &Context<'_>,
) -> Result<Written, ShelfError> {
    let mut pass = Pass::new(context);
    load(link, &mut pass, batches).await?;
    for batch in batches {
        pass.batch(batch);
    }
    weigh(link, &pass, context).await?;
    let count = pass.count;
    let mut first = 0;
    if count > 0 {
        // From here on, others that write wait for this transaction.
        let state = "SELECT last, names FROM state WHERE one = 1 FOR UPDATE";
        let row = link.first(state, ()).await.map_err(failed)?;
        let row = row.ok_or_else(|| failed(silence()))?;
        first = Found(&row).int(0)?.unwrap_or(0);
        if Found(&row).int(1)? != Some(context.names) {
            return Err(ShelfError::Renamed);
        }
    }
    let last = first + count;
    pass.number(first);
    rows::store(link, &pass.slots, context.now)
        .await
        .map_err(failed)?;
    save(link, batches).await.map_err(failed)?;
    if count > 0 {
        let count = "UPDATE state SET last = ? WHERE one = 1";
        link.first(count, (last,)).await.map_err(failed)?;
    }
    let (applied, events) = pass.events();
    Ok(Written {
        applied,
        events,
        first,
        last,
    })
}

/// Reads the rows that the changes are about, with their bodies.
async fn load(
    link: &mut Connection,
    pass: &mut Pass<'_>,
    batches: &[Batch],
) -> Result<(), ShelfError> {
    for ((member, kind), places) in places(batches) {
        let places: Vec<(&str, &str)> = places.into_iter().collect();
        let mut rest = &places[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(part(rest.len()));
            let any = vec!["o.ns = ? AND o.name = ?"; now.len()].join(" OR ");
            let sql = format!(
                "SELECT {}, b.json FROM object o JOIN body b ON b.id = o.id
                 WHERE o.member = ? AND o.kind = ? AND o.gone IS NULL AND ({any})",
                Dialect::Mysql.columns()
            );
            let mut values = vec![Value::Int(member), Value::Int(kind)];
            for (namespace, name) in now {
                values.extend([*namespace, *name].map(Value::from));
            }
            let found = link.rows(&sql, Params::Positional(values)).await;
            for row in found.map_err(failed)? {
                let found = Found(&row);
                let body = Bytes::copy_from_slice(found.bytes(Narrow::COLUMNS));
                pass.know(Narrow::read(&found)?, body);
            }
            rest = later;
        }
    }
    Ok(())
}

/// Checks that this server may write the rows of the members, and that their limits are kept. It locks the members in order, so that
/// two servers do not wait for each other.
async fn weigh(
    link: &mut Connection,
    pass: &Pass<'_>,
    context: &Context<'_>,
) -> Result<(), ShelfError> {
    let held = "SELECT objects, bytes FROM member
        WHERE id = ? AND (? = '' OR holder = ? AND term = ?) FOR UPDATE";
    let weigh = "UPDATE member SET objects = ?, bytes = ? WHERE id = ?";
    for (member, gain) in &pass.gains {
        let (hub, term) = fence(context, *member)?;
        let row = link.first(held, (member, hub, hub, term)).await;
        let row = row.map_err(failed)?.ok_or(ShelfError::NotHeld)?;
        let objects = Found(&row).int(0)?.unwrap_or(0) + gain.objects;
        let bytes = Found(&row).int(1)?.unwrap_or(0) + gain.bytes;
        check_limits(context, *gain, objects, bytes)?;
        if (gain.objects, gain.bytes) != (0, 0) {
            let weighed = link.first(weigh, (objects, bytes, member)).await;
            weighed.map_err(failed)?;
        }
    }
    Ok(())
}

/// Notes how far kinds of members are synced.
async fn save(link: &mut Connection, batches: &[Batch]) -> Result<(), Error> {
    let mut all: Vec<_> = reached(batches).into_iter().collect();
    all.sort_unstable_by_key(|(table, _)| *table);
    let mut rest = &all[..];
    while !rest.is_empty() {
        let (now, later) = rest.split_at(part(rest.len()));
        let sql = format!(
            "INSERT INTO progress (member, kind, version, rv) VALUES {}
             ON DUPLICATE KEY UPDATE version = VALUES(version), rv = VALUES(rv)",
            fill("(?, ?, ?, ?)", now.len())
        );
        let values = now.iter().flat_map(|((member, kind), progress)| {
            [
                Value::Int(*member),
                Value::Int(*kind),
                progress.version.as_str().into(),
                progress.resource_version.as_str().into(),
            ]
        });
        link.first(&sql, Params::Positional(values.collect()))
            .await?;
        rest = later;
    }
    Ok(())
}

/// Forgets deletions before a time, and raises the floor in the same transaction.
pub(super) async fn forget(
    link: &mut Connection,
    before: i64,
    most: usize,
) -> Result<usize, Error> {
    let old =
        "SELECT id, rev FROM object WHERE gone < ? ORDER BY gone LIMIT ? FOR UPDATE SKIP LOCKED";
    let rows = link.rows(old, (before, most)).await?;
    let (mut ids, mut newest) = (Vec::with_capacity(rows.len()), 0);
    for row in &rows {
        let number = |column| Found(row).int(column).ok().flatten().unwrap_or(0);
        ids.push(number(0));
        newest = newest.max(number(1));
    }
    if ids.is_empty() {
        return Ok(0);
    }
    rows::delete(link, "object", &ids).await?;
    let raise = "UPDATE state SET floor = GREATEST(floor, ?) WHERE one = 1";
    link.first(raise, (newest,)).await?;
    Ok(ids.len())
}
