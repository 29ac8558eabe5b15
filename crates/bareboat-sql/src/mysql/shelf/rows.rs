//! Rows in statements that write many of them. There are few numbers of rows, so that statements stay prepared.

use crate::mysql::link::Connection;
use crate::shelf::Slot;
use bareboat_shelf::Narrow;
use mysql_async::{Error, Params, Value};

/// The numbers of rows that statements have.
const PARTS: [usize; 4] = [64, 16, 4, 1];

/// Returns how many of some rows the next statement has.
pub(super) fn part(rows: usize) -> usize {
    PARTS.into_iter().find(|part| *part <= rows).unwrap_or(1)
}

/// Repeats a text, with commas in between.
pub(super) fn fill(text: &str, times: usize) -> String {
    vec![text; times].join(", ")
}

/// Writes the rows that changed. Those that are gone come first, because a new row may have their place.
pub(super) async fn store(link: &mut Connection, slots: &[Slot], now: i64) -> Result<(), Error> {
    let changed = || slots.iter().filter(|slot| slot.changed);
    let (gone, kept): (Vec<&Slot>, Vec<&Slot>) = changed()
        .filter(|slot| slot.stored)
        .partition(|slot| slot.narrow.gone);
    let new: Vec<&Slot> = changed().filter(|slot| !slot.stored).collect();
    let ids: Vec<i64> = gone.iter().map(|slot| slot.narrow.id).collect();
    delete(link, "body", &ids).await?;
    let live = kept.iter().chain(&new).filter(|slot| !slot.narrow.gone);
    let live: Vec<&Slot> = live.copied().collect();
    for slots in [gone, kept, new] {
        put(link, &slots, now).await?;
    }
    put_bodies(link, &live).await
}

/// Deletes rows of a table by their numbers.
pub(super) async fn delete(link: &mut Connection, table: &str, ids: &[i64]) -> Result<(), Error> {
    let mut rest = ids;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(part(rest.len()));
        let sql = format!("DELETE FROM {table} WHERE id IN ({})", fill("?", now.len()));
        let ids = now.iter().map(|id| Value::Int(*id)).collect();
        link.first(&sql, Params::Positional(ids)).await?;
        rest = later;
    }
    Ok(())
}

/// Writes narrow rows: new ones, or in place of what they were.
async fn put(link: &mut Connection, slots: &[&Slot], now: i64) -> Result<(), Error> {
    let mut rest = slots;
    while !rest.is_empty() {
        let (these, later) = rest.split_at(part(rest.len()));
        let row = format!("({})", fill("?", 17));
        let rows = fill(&row, these.len());
        let sql = format!(
            "INSERT INTO object (id, member, kind, version, ns, name, uid, owner, created, deleting, synced, rv, born, rev, gone, labels, fields)
             VALUES {rows} ON DUPLICATE KEY UPDATE version = VALUES(version), owner = VALUES(owner), created = VALUES(created),
                deleting = VALUES(deleting), synced = VALUES(synced), rv = VALUES(rv), rev = VALUES(rev), gone = VALUES(gone),
                labels = VALUES(labels), fields = VALUES(fields)"
        );
        let values = these.iter().flat_map(|slot| values(&slot.narrow, now));
        link.first(&sql, Params::Positional(values.collect()))
            .await?;
        rest = later;
    }
    Ok(())
}

fn values(row: &Narrow, now: i64) -> [Value; 17] {
    let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    let number = |number: Option<i64>| number.map_or(Value::NULL, Value::Int);
    [
        Value::Int(row.id),
        Value::Int(row.member),
        Value::Int(row.kind),
        text(&row.version),
        text(&row.namespace),
        text(&row.name),
        text(&row.uid),
        text(&row.owner),
        Value::Int(row.created),
        number(row.deleting),
        Value::Int(now),
        text(&row.member_version),
        Value::Int(row.born),
        Value::Int(row.rev),
        number(row.gone.then_some(now)),
        text(&row.labels),
        text(&row.fields),
    ]
}

/// Writes bodies, as many at once as a packet can have.
async fn put_bodies(link: &mut Connection, slots: &[&Slot]) -> Result<(), Error> {
    let most = link.server.packet / 2;
    let mut rest = slots;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|slot| {
            bytes += slot.body.len() + 64;
            bytes <= most
        });
        let (these, later) = rest.split_at(part(fitting.count()).min(rest.len()));
        let rows = fill("(?, ?, ?)", these.len());
        let sql = format!(
            "INSERT INTO body (id, json, splice) VALUES {rows}
             ON DUPLICATE KEY UPDATE json = VALUES(json), splice = VALUES(splice)"
        );
        let values = these.iter().flat_map(|slot| {
            let splice = i64::try_from(slot.splice).unwrap_or(0);
            [
                Value::Int(slot.narrow.id),
                Value::Bytes(slot.body.to_vec()),
                Value::Int(splice),
            ]
        });
        link.first(&sql, Params::Positional(values.collect()))
            .await?;
        rest = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn few_statements_write_any_number_of_rows() {
        let mut rest = 150;
        let mut parts = Vec::new();
        while rest > 0 {
            parts.push(part(rest));
            rest -= part(rest);
        }
        assert_eq!(parts, [64, 64, 16, 4, 1, 1]);
    }
}
