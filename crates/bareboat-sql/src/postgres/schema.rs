//! The tables, functions and the view of a store, and how they are created and upgraded.

use tokio_postgres::Client;

use crate::error::SqlError;

/// The format that this program writes.
pub(super) const FORMAT: i32 = 1;
/// The format of a store that is being filled. Older programs refuse to open it.
pub(super) const INCOMPLETE: i32 = i32::MAX;

/// The first half of the key of every lock of this program: "Bare" in ASCII.
pub(super) const LOCK: i32 = 1_113_682_533;

/// The statements that create the tables and functions.
///
/// `cluster`, `resource` and `key` are text, so that people can query the log. `cluster` is the logical cluster, empty
/// for the default one. `actor` says who wrote a record, as JSON. There are no indexes besides the primary keys:
/// lookups happen in memory.
///
/// Function names contain a version, so that two releases can run side by side.
///
/// Autovacuum does not pause in the log: with the default pauses it frees rows more slowly than a busy server deletes them.
const TABLES: &str = r#"
CREATE TABLE log (
    rev bigint PRIMARY KEY,
    prev bigint NOT NULL,
    cluster text COLLATE "C" NOT NULL DEFAULT '',
    resource text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    actor text,
    value bytea
) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0);
CREATE TABLE batch (
    first bigint PRIMARY KEY,
    last bigint NOT NULL,
    id uuid NOT NULL,
    writer uuid NOT NULL,
    epoch bigint NOT NULL,
    digest bytea NOT NULL,
    bytes bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE meta (
    id smallint PRIMARY KEY CHECK (id = 1),
    format int NOT NULL,
    min_writer int NOT NULL,
    cluster uuid NOT NULL,
    epoch bigint NOT NULL,
    timeline text NOT NULL,
    floor bigint NOT NULL,
    swept bigint NOT NULL,
    identity jsonb
);
CREATE TABLE replica (id uuid PRIMARY KEY, name text, address text, version text, seen timestamptz NOT NULL);

-- Appends a batch. 0: it was added. Positive: the log ends there. -1: another epoch. -2: another history.
-- -3: it was in the log before.
CREATE FUNCTION append_v1(k int, channel text, base bigint, was bytea, ep bigint, bid uuid, w uuid, dig bytea,
    size bigint, prevs bigint[], clusters text[], res text[], keys text[], actors text[], vals bytea[]) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint; d bytea; n int := cardinality(keys);
BEGIN
    -- Released when the commit is visible. The next statement has a newer snapshot.
    PERFORM pg_advisory_xact_lock(1113682533, k);
    SELECT last, digest INTO t, d FROM batch ORDER BY first DESC LIMIT 1;
    IF t <> base THEN
        IF EXISTS (SELECT 1 FROM batch WHERE first = base + 1 AND id = bid) THEN RETURN -3; END IF;
        RETURN t;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM meta WHERE epoch = ep) THEN RETURN -1; END IF;
    IF d <> was THEN RETURN -2; END IF;
    INSERT INTO batch (first, last, id, writer, epoch, digest, bytes) VALUES (base + 1, base + n, bid, w, ep, dig, size);
    INSERT INTO log (rev, prev, cluster, resource, key, actor, value)
        SELECT base + o, p, c, r, x, a, v
        FROM unnest(prevs, clusters, res, keys, actors, vals) WITH ORDINALITY u(p, c, r, x, a, v, o);
    PERFORM pg_notify(channel, (base + n) || ' ' || w);
    RETURN 0;
END $$;

-- Begins another epoch above all revisions, unless another server began it. Returns the epoch.
CREATE FUNCTION epoch_v1(k int, channel text, ep bigint, beyond bigint, why text, tl text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint; d bytea; e bigint; n bigint; v bytea;
BEGIN
    PERFORM pg_advisory_xact_lock(1113682533, k);
    SELECT epoch INTO e FROM meta;
    IF e <> ep THEN RETURN e; END IF;
    SELECT last, digest INTO t, d FROM batch ORDER BY first DESC LIMIT 1;
    n := greatest(t, beyond) + 1048576;
    v := convert_to(json_build_object('epoch', e + 1, 'reason', why, 'from', t)::text, 'UTF8');
    INSERT INTO batch (first, last, id, writer, epoch, digest, bytes)
        VALUES (n, n, gen_random_uuid(), '00000000-0000-0000-0000-000000000000', e + 1,
            substring(sha256(d || v) FROM 1 FOR 16), length(v));
    INSERT INTO log (rev, prev, resource, key, value) VALUES (n, 0, '', 'epoch-' || (e + 1), v);
    UPDATE meta SET epoch = e + 1, floor = n, timeline = tl;
    PERFORM pg_notify(channel, n || ' 00000000-0000-0000-0000-000000000000');
    RETURN e + 1;
END $$;

-- Raises the floor and deletes some of what is not needed above it. Whether more is left.
CREATE FUNCTION sweep_v1(upto bigint, most int, OUT floor_is bigint, OUT more boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE s bigint; t bigint; c bigint; l bigint;
BEGIN
    SELECT last INTO l FROM batch ORDER BY first DESC LIMIT 1;
    -- One at a time; appends do not wait for this row.
    SELECT floor, swept INTO floor_is, s FROM meta WHERE id = 1 FOR UPDATE;
    IF least(upto, l) > floor_is THEN
        floor_is := least(upto, l);
        UPDATE meta SET floor = floor_is WHERE id = 1;
    END IF;
    more := false;
    IF s < floor_is THEN
        SELECT max(rev), count(*) INTO t, c FROM
            (SELECT rev FROM log WHERE rev > s AND rev <= floor_is ORDER BY rev LIMIT most) slice;
        more := c = most;
        IF NOT more THEN t := floor_is; END IF;
        DELETE FROM log USING (
            SELECT prev AS r FROM log WHERE rev > s AND rev <= t AND prev <> 0
            UNION ALL SELECT rev FROM log WHERE rev > s AND rev <= t AND value IS NULL) gone
            WHERE log.rev = gone.r;
        UPDATE meta SET swept = t WHERE id = 1;
    END IF;
    IF NOT more THEN
        -- A writer that slept for days must find that its batch is not the next one.
        DELETE FROM batch WHERE first IN (SELECT b.first FROM batch b ORDER BY b.first LIMIT most)
            AND last <= floor_is AND last < l AND at < clock_timestamp() - interval '7 days';
        GET DIAGNOSTICS c = ROW_COUNT;
        more := c = most;
    END IF;
END $$;

-- The stored objects. What is encrypted, and what has a zero character, which jsonb lacks, is null.
CREATE VIEW live AS
    SELECT rev, resource,
        CASE WHEN strpos(key, '/') > 0 THEN split_part(key, '/', 1) END AS namespace,
        CASE WHEN strpos(key, '/') > 0 THEN split_part(key, '/', 2) ELSE key END AS name,
        CASE WHEN get_byte(value, 0) = 123 AND position('\x5c7530303030'::bytea IN value) = 0
            THEN convert_from(value, 'UTF8')::jsonb END AS object
    FROM log l
    WHERE value IS NOT NULL AND length(value) > 0 AND resource <> ''
        AND NOT EXISTS (SELECT 1 FROM log n WHERE n.prev = l.rev);
"#;

/// Inserts revision 1, the empty start: revision 0 is never assigned.
const BEGINNING: &str = "
INSERT INTO batch (first, last, id, writer, epoch, digest, bytes)
    VALUES (1, 1, gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 1, decode(repeat('00', 16), 'hex'), 0);
";

/// Creates the schema and its tables if they are missing. A lock lets only one program do this at a time.
pub(super) async fn prepare(
    client: &mut Client,
    schema: &str,
    timeline: &str,
    create: bool,
) -> Result<(), SqlError> {
    let transaction = client.transaction().await?;
    // All stores of the database share this lock, because the schema may not exist yet.
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK}, 0)");
    transaction.batch_execute(&lock).await?;
    let exists = "SELECT to_regclass($1) IS NOT NULL";
    let meta = format!("\"{schema}\".meta");
    let exists: bool = transaction.query_one(exists, &[&meta]).await?.get(0);
    if !exists && !create {
        return Err(SqlError::Missing {
            place: format!("the schema {schema}"),
        });
    }
    if !exists {
        let created = format!(
            "CREATE SCHEMA IF NOT EXISTS \"{schema}\"; SET LOCAL search_path TO \"{schema}\";"
        );
        transaction.batch_execute(&created).await?;
        transaction.batch_execute(TABLES).await?;
        transaction.batch_execute(BEGINNING).await?;
        let meta =
            "INSERT INTO meta (id, format, min_writer, cluster, epoch, timeline, floor, swept)
                    VALUES (1, $1, $1, gen_random_uuid(), 1, $2, 1, 1)";
        transaction.execute(meta, &[&FORMAT, &timeline]).await?;
        // Only if the server supports lz4: the default compression is slow.
        let compressed = "SAVEPOINT lz4; ALTER TABLE log ALTER value SET COMPRESSION lz4";
        if transaction.batch_execute(compressed).await.is_err() {
            transaction.batch_execute("ROLLBACK TO lz4").await?;
        }
        tracing::info!(schema, "created the tables of the store");
    }
    let format = format!("SELECT format, min_writer FROM \"{schema}\".meta");
    let row = transaction.query_one(&format, &[]).await?;
    let needed: i32 = row.get(1);
    transaction.commit().await?;
    match needed > FORMAT && needed != INCOMPLETE {
        true => Err(SqlError::Newer {
            found: needed,
            known: FORMAT,
        }),
        false => Ok(()),
    }
}
