//! Sessions: how they begin, what is checked, and how a lost session is replaced.

use std::sync::atomic::Ordering;

use bareboat_storage::{Digest, Mark};
use tokio_postgres::{Client, Row, Statement};

use super::address::Address;
use super::tls::Tls;
use super::{Inner, pooler, schema};
use crate::address::{Failover, TlsMode};
use crate::dialect::Link;
use crate::engine::{DIAL, REPLACED};
use crate::error::SqlError;

/// Selects the end of the log, the epoch and the floor, in one snapshot.
const MARK: &str = "SELECT b.last, b.digest, b.epoch, m.epoch, m.floor FROM meta m,
    (SELECT last, digest, epoch FROM batch ORDER BY first DESC LIMIT 1) b";
/// Selects whole batches after a mark, up to a few MiB. Returns all records of a batch, or only the row of the batch.
const TAIL: &str =
    "SELECT b.first, b.last, b.digest, b.epoch, l.rev, l.prev, l.cluster, l.resource, l.key,
        l.actor, l.value
    FROM (SELECT *, sum(bytes) OVER (ORDER BY first) AS total FROM
        (SELECT * FROM batch WHERE first > $1 ORDER BY first LIMIT 256) next) b
    LEFT JOIN log l ON l.rev BETWEEN b.first AND b.last
    WHERE b.total - b.bytes < 8388608 ORDER BY b.first, l.rev";
const APPEND: &str =
    "SELECT append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// An open connection with its prepared statements.
pub(super) struct Connection {
    /// The epoch of the log at the time when the connection was made.
    epoch: u64,
    pub(super) client: Client,
    pub(super) mark: Statement,
    pub(super) tail: Statement,
    pub(super) append: Statement,
}

impl Link for Connection {
    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// Returns the end of the log from a row of the `MARK` statement.
pub(super) fn mark_of(row: &Row) -> Mark {
    let digest: &[u8] = row.get(1);
    Mark {
        last: row.get::<_, i64>(0) as u64,
        epoch: row.get::<_, i64>(3) as u64,
        digest: digest_of(digest),
    }
}

pub(super) fn digest_of(bytes: &[u8]) -> Digest {
    Digest(<[u8; 16]>::try_from(bytes).unwrap_or_default())
}

/// Opens a connection without its settings. A task reads the messages of the connection.
pub(super) async fn dial(address: &Address) -> Result<Client, SqlError> {
    let config = address.config()?;
    match address.tls {
        TlsMode::Off => {
            let plain = config.connect(tokio_postgres::NoTls).await?;
            let (client, connection) = plain;
            tokio::spawn(async move {
                // The client sees the same error.
                let _ = connection.await;
            });
            Ok(client)
        }
        _ => {
            let tls = Tls::of(address)?;
            let (client, connection) = config.connect(tls).await?;
            tokio::spawn(async move {
                let _ = connection.await;
            });
            Ok(client)
        }
    }
}

impl Inner {
    /// Opens a connection without its settings.
    pub(super) async fn dial(&self) -> Result<Client, SqlError> {
        dial(&self.address).await
    }

    /// Returns the statements that set up every session. They override the settings of the role and the database.
    pub(super) fn settings(&self) -> String {
        format!(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
             SET synchronous_commit TO '{}';
             SET statement_timeout TO '30s'; SET lock_timeout TO '20s';
             SET idle_in_transaction_session_timeout TO '2s';
             SET client_encoding TO 'UTF8'; SET search_path TO \"{}\"; SET jit TO off",
            self.address.synchronous_commit, self.address.schema
        )
    }

    /// Opens and configures a session. Checks whether the address still leads to the same server.
    pub(super) async fn open_session(&self) -> Result<Connection, SqlError> {
        let dialled = tokio::time::timeout(DIAL, self.dial()).await;
        let client =
            dialled.map_err(|_| SqlError::Unsafe("the database does not answer".into()))??;
        client.batch_execute(&self.settings()).await?;
        let state = "SELECT pg_is_in_recovery(),
            CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
            (SELECT timeline FROM meta), (SELECT epoch FROM meta),
            extract(epoch FROM clock_timestamp())::float8";
        let row = client.query_one(state, &[]).await?;
        let (standby, timeline): (bool, String) = (row.get(0), row.get(1));
        let (known, epoch): (String, i64) = (row.get(2), row.get(3));
        self.clock.note(row.get(4));
        if standby {
            return Err(SqlError::Unsafe(
                "the server is a standby, which accepts no writes".into(),
            ));
        }
        if (epoch as u64) < self.seen_epoch() {
            return Err(SqlError::Unsafe(REPLACED.into()));
        }
        let epoch = match timeline == known {
            true => epoch as u64,
            false => self.promoted(&client, epoch, &timeline).await?,
        };
        self.epoch.fetch_max(epoch, Ordering::AcqRel);
        Ok(Connection {
            epoch,
            mark: client.prepare(MARK).await?,
            tail: client.prepare(TAIL).await?,
            append: client.prepare(APPEND).await?,
            client,
        })
    }

    /// Handles a server that was a standby before. Returns the current epoch.
    async fn promoted(&self, client: &Client, epoch: i64, timeline: &str) -> Result<u64, SqlError> {
        let known = *self.known.lock();
        if self.address.choices.failover == Failover::Trust {
            let same = "SELECT count(*) FROM batch WHERE last = $1 AND digest = $2";
            let (last, digest) = (known.last as i64, &known.digest.0[..]);
            let same: i64 = client.query_one(same, &[&last, &digest]).await?.get(0);
            if same == 1 || known == Mark::default() {
                let update = "UPDATE meta SET timeline = $1";
                client.execute(update, &[&timeline]).await?;
                tracing::warn!("a standby was promoted, and has the last known writes");
                return Ok(epoch as u64);
            }
        }
        tracing::warn!("a standby was promoted: clients must list again");
        let begun = self.begin_epoch(client, epoch, known.last, "promotion", timeline);
        Ok(begun.await?)
    }

    /// Begins another epoch after `epoch`, above revision `beyond`, unless another server has begun it. Returns the
    /// current epoch.
    pub(super) async fn begin_epoch(
        &self,
        client: &Client,
        epoch: i64,
        beyond: u64,
        reason: &str,
        timeline: &str,
    ) -> Result<u64, tokio_postgres::Error> {
        let begin = "SELECT epoch_v1($1, $2, $3, $4, $5, $6)";
        let (key, channel) = (self.key(), self.channel());
        let beyond = beyond as i64;
        let row = client
            .query_one(
                begin,
                &[&key, &channel, &epoch, &beyond, &reason, &timeline],
            )
            .await?;
        Ok(row.get::<_, i64>(0) as u64)
    }

    /// Checks a server before it is used for the first time, and creates the tables.
    pub(super) async fn start(&self) -> Result<(), SqlError> {
        let mut client = self.dial().await?;
        pooler::refuse(&self.address, &client).await?;
        client
            .batch_execute("SET client_encoding TO 'UTF8'; SET lock_timeout TO '20s'")
            .await?;
        let setting = async |name: &str| -> Result<String, SqlError> {
            let setting = "SELECT coalesce(current_setting($1, true), '')";
            Ok(client.query_one(setting, &[&name]).await?.get(0))
        };
        let version: i32 = setting("server_version_num").await?.parse().unwrap_or(0);
        if version < OLDEST {
            return Err(SqlError::Unsafe(
                "PostgreSQL 14 is the oldest version that can be used".into(),
            ));
        }
        for name in ["fsync", "full_page_writes"] {
            if setting(name).await? != "on" {
                let why = format!(
                    "the server has {name}=off: a crash loses acknowledged writes or the whole database; turn it on, or add unsafe=yes to the address"
                );
                match self.address.choices.unsafe_accepted {
                    true => tracing::warn!("{why}"),
                    false => return Err(SqlError::Unsafe(why)),
                }
            }
        }
        if setting("server_encoding").await? != "UTF8" {
            return Err(SqlError::Unsafe(
                "the database has another server_encoding than UTF8".into(),
            ));
        }
        if setting("data_checksums").await? != "on" {
            tracing::info!("the server has data_checksums=off: damage on disk is not noticed");
        }
        if setting("synchronous_commit").await? == "off" {
            tracing::warn!(
                "synchronous_commit is off for this role or database; it is on for this store"
            );
        }
        if setting("synchronous_standby_names").await?.is_empty() {
            tracing::info!(
                "synchronous_standby_names is empty: a promotion may lose acknowledged writes, and makes clients list again"
            );
        }
        let clock = "SELECT extract(epoch FROM clock_timestamp())::float8,
            pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN ''
                ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END";
        let row = client.query_one(clock, &[]).await?;
        if row.get(1) {
            return Err(SqlError::Unsafe(
                "the server is a standby, which accepts no writes".into(),
            ));
        }
        self.clock.check(row.get(0))?;
        let timeline: String = row.get(2);
        let create = self.create;
        schema::prepare(&mut client, &self.address.schema, &timeline, create).await?;
        let oid = "SELECT oid FROM pg_namespace WHERE nspname = $1";
        let oid: u32 = client.query_one(oid, &[&self.address.schema]).await?.get(0);
        self.oid.store(oid, Ordering::Release);
        Ok(())
    }
}

const OLDEST: i32 = 140_000;
