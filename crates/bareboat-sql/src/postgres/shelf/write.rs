//! Writing: batches of changes in one transaction, with the versions that cover them.

use super::rows;
use crate::shelf::{Pass, Slot, check_limits, failed, fence, places, reached};
use bareboat_shelf::{Batch, Context, Narrow, ShelfError, Written};
use bytes::Bytes;
use tokio_postgres::{Client, Error, Transaction};

/// Reads the rows of objects, with their bodies.
const OLD: &str = "SELECT o.id, o.member, o.kind, o.version, o.ns, o.name, o.uid, o.owner, o.created, o.deleting, o.synced, o.rv, \
    o.born, o.rev, o.labels::text, o.fields::text, b.json \
    FROM unnest($3::text[], $4::text[]) k(ns, name) \
    JOIN object o ON o.member = $1 AND o.kind = $2 AND o.ns = k.ns AND o.name = k.name AND o.gone IS NULL \
    JOIN body b ON b.id = o.id";

/// Writes batches in one transaction.
pub(super) async fn apply(
    client: &mut Client,
    batches: &[Batch],
    context: &Context<'_>,
) -> Result<Written, ShelfError> {
    let transaction = client.transaction().await.map_err(failed)?;
    let mut pass = Pass::new(context);
    load(&transaction, &mut pass, batches)
        .await
        .map_err(failed)?;
    for batch in batches {
        pass.batch(batch);
    }
    weigh(&transaction, &pass, context).await?;
    let count = pass.count;
    let mut last = 0;
    if count > 0 {
        // From here on, others that write wait for this transaction.
        let take = "UPDATE state SET last = last + $1 RETURNING last, names";
        let row = transaction
            .query_one(take, &[&count])
            .await
            .map_err(failed)?;
        last = row.get(0);
        if row.get::<_, i64>(1) != context.names {
            return Err(ShelfError::Renamed);
        }
    }
    let first = last - count;
    pass.number(first);
    store(&transaction, &pass.slots, context.now)
        .await
        .map_err(failed)?;
    save(&transaction, batches).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    let (applied, events) = pass.events();
    Ok(Written {
        applied,
        events,
        first,
        last,
    })
}

/// Reads the rows that the changes are about.
async fn load(
    transaction: &Transaction<'_>,
    pass: &mut Pass<'_>,
    batches: &[Batch],
) -> Result<(), Error> {
    for ((member, kind), places) in places(batches) {
        let (namespaces, names): (Vec<&str>, Vec<&str>) = places.into_iter().unzip();
        let rows = transaction
            .query(OLD, &[&member, &kind, &namespaces, &names])
            .await?;
        for row in rows {
            let narrow = Narrow {
                id: row.try_get(0)?,
                member: row.try_get(1)?,
                kind: row.try_get(2)?,
                version: row.try_get(3)?,
                namespace: row.try_get(4)?,
                name: row.try_get(5)?,
                uid: row.try_get(6)?,
                owner: row.try_get(7)?,
                created: row.try_get(8)?,
                deleting: row.try_get(9)?,
                synced: row.try_get(10)?,
                member_version: row.try_get(11)?,
                born: row.try_get(12)?,
                rev: row.try_get(13)?,
                gone: false,
                labels: row.try_get(14)?,
                fields: row.try_get(15)?,
            };
            pass.know(narrow, Bytes::from(row.try_get::<_, Vec<u8>>(16)?));
        }
    }
    Ok(())
}

/// Checks that this server may write the rows of the members, and that their limits are kept. It locks the members in order, so that
/// two servers do not wait for each other.
async fn weigh(
    transaction: &Transaction<'_>,
    pass: &Pass<'_>,
    context: &Context<'_>,
) -> Result<(), ShelfError> {
    let weigh = "UPDATE member SET objects = objects + $2, bytes = bytes + $3
        WHERE id = $1 AND ($4 = '' OR holder = $4 AND term = $5) RETURNING objects, bytes";
    for (member, gain) in &pass.gains {
        let (hub, term) = fence(context, *member)?;
        let weighed = transaction
            .query_opt(weigh, &[member, &gain.objects, &gain.bytes, &hub, &term])
            .await
            .map_err(failed)?;
        let row = weighed.ok_or(ShelfError::NotHeld)?;
        check_limits(context, *gain, row.get(0), row.get(1))?;
    }
    Ok(())
}

/// Writes the rows that changed. Those that are gone come first, because a new row may have their place.
async fn store(transaction: &Transaction<'_>, slots: &[Slot], now: i64) -> Result<(), Error> {
    let changed = || slots.iter().filter(|slot| slot.changed);
    let (gone, kept): (Vec<&Slot>, Vec<&Slot>) = changed()
        .filter(|slot| slot.stored)
        .partition(|slot| slot.narrow.gone);
    let gone: Vec<&Narrow> = gone.into_iter().map(|slot| &slot.narrow).collect();
    rows::bury(transaction, &gone, now).await?;
    let kept: Vec<_> = kept.into_iter().map(row_of).collect();
    rows::put(transaction, &kept, false, now).await?;
    let new = changed().filter(|slot| !slot.stored);
    let new: Vec<_> = new.map(row_of).collect();
    rows::put(transaction, &new, true, now).await
}

fn row_of(slot: &Slot) -> (&Narrow, &Bytes, usize) {
    (&slot.narrow, &slot.body, slot.splice)
}

/// Notes how far kinds of members are synced.
async fn save(transaction: &Transaction<'_>, batches: &[Batch]) -> Result<(), Error> {
    let last = reached(batches);
    if last.is_empty() {
        return Ok(());
    }
    let (mut members, mut kinds) = (Vec::new(), Vec::new());
    let (mut versions, mut resource_versions) = (Vec::new(), Vec::new());
    for ((member, kind), progress) in last {
        members.push(member);
        kinds.push(kind);
        versions.push(progress.version.as_str());
        resource_versions.push(progress.resource_version.as_str());
    }
    let save = "INSERT INTO progress (member, kind, version, rv)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])
        ON CONFLICT (member, kind) DO UPDATE SET version = excluded.version, rv = excluded.rv";
    transaction
        .execute(save, &[&members, &kinds, &versions, &resource_versions])
        .await?;
    Ok(())
}

/// Forgets deletions before a time, and raises the floor in the same transaction.
pub(super) async fn forget(client: &mut Client, before: i64, most: i64) -> Result<usize, Error> {
    let transaction = client.transaction().await?;
    let forget = "WITH old AS (SELECT id FROM object WHERE gone < $1 ORDER BY gone LIMIT $2 FOR UPDATE SKIP LOCKED),
            gone AS (DELETE FROM object o USING old WHERE o.id = old.id RETURNING o.rev)
        SELECT count(*), coalesce(max(rev), 0) FROM gone";
    let row = transaction.query_one(forget, &[&before, &most]).await?;
    let (count, newest): (i64, i64) = (row.get(0), row.get(1));
    if count > 0 {
        let raise = "UPDATE state SET floor = greatest(floor, $1)";
        transaction.execute(raise, &[&newest]).await?;
    }
    transaction.commit().await?;
    Ok(usize::try_from(count).unwrap_or(0))
}
