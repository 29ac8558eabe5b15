//! Rows as arrays of columns, so that one statement writes all of them.

use bareboat_shelf::Narrow;
use bytes::Bytes;
use tokio_postgres::{Error, Transaction};

/// Removes rows: what is left of them says that they are gone.
pub(super) async fn bury(
    transaction: &Transaction<'_>,
    rows: &[&Narrow],
    now: i64,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let revs: Vec<i64> = rows.iter().map(|row| row.rev).collect();
    let versions: Vec<&str> = rows.iter().map(|row| row.member_version.as_str()).collect();
    let bury = "UPDATE object o SET gone = $4, synced = $4, rev = u.rev, rv = u.rv
        FROM unnest($1::bigint[], $2::bigint[], $3::text[]) u(id, rev, rv) WHERE o.id = u.id";
    transaction
        .execute(bury, &[&ids, &revs, &versions, &now])
        .await?;
    let bodies = "DELETE FROM body WHERE id = ANY($1)";
    transaction.execute(bodies, &[&ids]).await?;
    Ok(())
}

/// Writes rows and their bodies: new ones, or in place of what they were.
pub(super) async fn put(
    transaction: &Transaction<'_>,
    rows: &[(&Narrow, &Bytes, usize)],
    is_new: bool,
    now: i64,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let numbers =
        |of: fn(&Narrow) -> i64| -> Vec<i64> { rows.iter().map(|(row, ..)| of(row)).collect() };
    let ids = numbers(|row| row.id);
    let (created, revs) = (numbers(|row| row.created), numbers(|row| row.rev));
    let deleting: Vec<Option<i64>> = rows.iter().map(|(row, ..)| row.deleting).collect();
    let texts = |of: for<'n> fn(&'n Narrow) -> &'n str| -> Vec<&str> {
        rows.iter().map(|(row, ..)| of(row)).collect()
    };
    let (versions, owners) = (texts(|row| &row.version), texts(|row| &row.owner));
    let member_versions = texts(|row| &row.member_version);
    let (labels, fields) = (texts(|row| &row.labels), texts(|row| &row.fields));
    let bodies: Vec<&[u8]> = rows.iter().map(|(_, body, _)| &body[..]).collect();
    let splices: Vec<i64> = rows
        .iter()
        .map(|(.., splice)| i64::try_from(*splice).unwrap_or(0))
        .collect();
    if !is_new {
        let update = "UPDATE object o SET version = u.version, owner = u.owner, created = u.created, deleting = u.deleting,
                synced = $1, rv = u.rv, rev = u.rev, labels = u.labels::jsonb, fields = u.fields::jsonb
            FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::text[], $10::text[])
                u(id, version, owner, created, deleting, rv, rev, labels, fields) WHERE o.id = u.id";
        transaction
            .execute(
                update,
                &[
                    &now,
                    &ids,
                    &versions,
                    &owners,
                    &created,
                    &deleting,
                    &member_versions,
                    &revs,
                    &labels,
                    &fields,
                ],
            )
            .await?;
        let update = "UPDATE body b SET json = u.json, splice = u.splice
            FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) u(id, json, splice) WHERE b.id = u.id";
        transaction
            .execute(update, &[&ids, &bodies, &splices])
            .await?;
        return Ok(());
    }
    let (members, kinds) = (numbers(|row| row.member), numbers(|row| row.kind));
    let born = numbers(|row| row.born);
    let gone: Vec<Option<i64>> = rows
        .iter()
        .map(|(row, ..)| row.gone.then_some(now))
        .collect();
    let (namespaces, names) = (texts(|row| &row.namespace), texts(|row| &row.name));
    let uids = texts(|row| &row.uid);
    let insert = "INSERT INTO object (id, member, kind, version, ns, name, uid, owner, created, deleting, synced, rv, born, rev, gone, labels, fields)
        SELECT u.id, u.member, u.kind, u.version, u.ns, u.name, u.uid, u.owner, u.created, u.deleting, $1, u.rv, u.born, u.rev, u.gone,
            u.labels::jsonb, u.fields::jsonb
        FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[],
            $11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::text[])
            u(id, member, kind, version, ns, name, uid, owner, created, deleting, rv, born, rev, gone, labels, fields)";
    transaction
        .execute(
            insert,
            &[
                &now,
                &ids,
                &members,
                &kinds,
                &versions,
                &namespaces,
                &names,
                &uids,
                &owners,
                &created,
                &deleting,
                &member_versions,
                &born,
                &revs,
                &gone,
                &labels,
                &fields,
            ],
        )
        .await?;
    // A row that came and went in one batch has no body.
    let insert = "INSERT INTO body (id, json, splice)
        SELECT u.id, u.json, u.splice FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[]) u(id, json, splice, gone)
        WHERE u.gone IS NULL";
    transaction
        .execute(insert, &[&ids, &bodies, &splices, &gone])
        .await?;
    Ok(())
}
