//! Leases: which server syncs a member. All times are of the database's clock.

use super::rows::{fill, part};
use crate::mysql::link::Connection;
use crate::mysql::rows::{number, text};
use crate::shelf::{Moves, share_out};
use bareboat_shelf::Lease;
use mysql_async::{Error, Params, Row, Value};

/// The most bytes of notes in one statement.
const MOST_BYTES: usize = 4 << 20;

/// Renews the presence of a server and what it says about its members, then gives it its share of all members.
pub(super) async fn lease(
    link: &mut Connection,
    hub: &str,
    notes: &[(i64, String)],
) -> Result<Vec<Lease>, Error> {
    // One server at a time, so that shares add up.
    link.first("SELECT one FROM turn FOR UPDATE", ()).await?;
    let seen = "INSERT INTO hub (id, seen) VALUES (?, UTC_TIMESTAMP(6))
        ON DUPLICATE KEY UPDATE seen = UTC_TIMESTAMP(6)";
    link.first(seen, (hub,)).await?;
    let dead = "DELETE FROM hub WHERE seen < UTC_TIMESTAMP(6) - INTERVAL 15 SECOND";
    link.first(dead, ()).await?;
    note(link, hub, notes).await?;
    let members =
        "SELECT m.id, m.name, CASE WHEN h.id IS NULL THEN '' ELSE m.holder END, m.term, m.note,
            (SELECT count(*) FROM hub)
        FROM member m LEFT JOIN hub h ON h.id = m.holder WHERE m.present = 1 ORDER BY m.id";
    let rows = link.rows(members, ()).await?;
    let hubs = rows.first().map_or(1, |row| number(row, 5));
    let mut leases: Vec<Lease> = rows.iter().map(lease_of).collect();
    let hubs = usize::try_from(hubs).unwrap_or(1);
    let Moves { taken, given } = share_out(&mut leases, hub, hubs);
    pass_on(link, &given, "", 0).await?;
    pass_on(link, &taken, hub, 1).await?;
    Ok(leases)
}

fn lease_of(row: &Row) -> Lease {
    let signed = |column| i64::try_from(number(row, column)).unwrap_or(0);
    Lease {
        member: signed(0),
        name: text(row, 1),
        holder: text(row, 2),
        term: signed(3),
        note: text(row, 4),
    }
}

/// Writes what a server says about its members.
async fn note(link: &mut Connection, hub: &str, notes: &[(i64, String)]) -> Result<(), Error> {
    let mut rest = notes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(together(rest));
        let cases = vec!["WHEN ? THEN ?"; now.len()].join(" ");
        let sql = format!(
            "UPDATE member SET note = CASE id {cases} END WHERE holder = ? AND id IN ({})",
            fill("?", now.len())
        );
        let told = now.iter().flat_map(|(id, note)| {
            let note = Value::Bytes(note.as_bytes().to_vec());
            [Value::Int(*id), note]
        });
        let mut values: Vec<Value> = told.collect();
        values.push(hub.into());
        values.extend(now.iter().map(|(id, _)| Value::Int(*id)));
        link.first(&sql, Params::Positional(values)).await?;
        rest = later;
    }
    Ok(())
}

/// Returns how many notes one statement writes.
fn together(notes: &[(i64, String)]) -> usize {
    let mut count = part(notes.len());
    while count > 1
        && notes[..count]
            .iter()
            .map(|(_, note)| note.len())
            .sum::<usize>()
            > MOST_BYTES
    {
        count = part(count - 1);
    }
    count
}

/// Sets the holder of members.
async fn pass_on(
    link: &mut Connection,
    members: &[i64],
    holder: &str,
    terms: i64,
) -> Result<(), Error> {
    let mut rest = members;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(part(rest.len()));
        let sql = format!(
            "UPDATE member SET holder = ?, term = term + ? WHERE id IN ({})",
            fill("?", now.len())
        );
        let mut values = vec![holder.into(), Value::Int(terms)];
        values.extend(now.iter().map(|id| Value::Int(*id)));
        link.first(&sql, Params::Positional(values)).await?;
        rest = later;
    }
    Ok(())
}

/// Gives all leases of a server back.
pub(super) async fn release(link: &mut Connection, hub: &str) -> Result<(), Error> {
    let give = "UPDATE member SET holder = '' WHERE holder = ?";
    link.first(give, (hub,)).await?;
    link.first("DELETE FROM hub WHERE id = ?", (hub,)).await?;
    Ok(())
}
