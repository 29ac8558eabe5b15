//! Leases: which server syncs a member. All times are of the database's clock.

use crate::shelf::{Moves, share_out};
use bareboat_shelf::Lease;
use tokio_postgres::{Client, Error};

/// Renews the presence of a server and what it says about its members, then gives it its share of all members.
pub(super) async fn lease(
    client: &mut Client,
    hub: &str,
    notes: &[(i64, String)],
) -> Result<Vec<Lease>, Error> {
    let transaction = client.transaction().await?;
    // One server at a time, so that shares add up.
    let lock = "SELECT pg_advisory_xact_lock(1113682535, 'state'::regclass::oid::int)";
    transaction.execute(lock, &[]).await?;
    let seen = "INSERT INTO hub (id, seen) VALUES ($1, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()";
    transaction.execute(seen, &[&hub]).await?;
    let dead = "DELETE FROM hub WHERE seen < clock_timestamp() - interval '15 seconds'";
    transaction.execute(dead, &[]).await?;
    if !notes.is_empty() {
        let ids: Vec<i64> = notes.iter().map(|(id, _)| *id).collect();
        let texts: Vec<&str> = notes.iter().map(|(_, text)| text.as_str()).collect();
        let note =
            "UPDATE member m SET note = u.note FROM unnest($1::bigint[], $2::text[]) u(id, note)
            WHERE m.id = u.id AND m.holder = $3 AND m.note <> u.note";
        transaction.execute(note, &[&ids, &texts, &hub]).await?;
    }
    let members =
        "SELECT m.id, m.name, CASE WHEN h.id IS NULL THEN '' ELSE m.holder END, m.term, m.note,
            (SELECT count(*) FROM hub)
        FROM member m LEFT JOIN hub h ON h.id = m.holder WHERE m.present = 1 ORDER BY m.id";
    let rows = transaction.query(members, &[]).await?;
    let hubs: i64 = rows.first().map_or(1, |row| row.get(5)).max(1);
    let mut leases: Vec<Lease> = rows
        .iter()
        .map(|row| Lease {
            member: row.get(0),
            name: row.get(1),
            holder: row.get(2),
            term: row.get(3),
            note: row.get(4),
        })
        .collect();
    let Moves { taken, given } = share_out(&mut leases, hub, usize::try_from(hubs).unwrap_or(1));
    if !given.is_empty() {
        let give = "UPDATE member SET holder = '' WHERE id = ANY($1)";
        transaction.execute(give, &[&given]).await?;
    }
    if !taken.is_empty() {
        let take = "UPDATE member SET holder = $2, term = term + 1 WHERE id = ANY($1)";
        transaction.execute(take, &[&taken, &hub]).await?;
    }
    transaction.commit().await?;
    Ok(leases)
}

/// Gives all leases of a server back.
pub(super) async fn release(client: &mut Client, hub: &str) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    let give = "UPDATE member SET holder = '' WHERE holder = $1";
    transaction.execute(give, &[&hub]).await?;
    let leave = "DELETE FROM hub WHERE id = $1";
    transaction.execute(leave, &[&hub]).await?;
    transaction.commit().await
}
