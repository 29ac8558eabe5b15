//! Sessions: how they begin, what is checked, and how another epoch begins.

use std::sync::atomic::Ordering;

use bareboat_storage::Mark;
use mysql_async::{Conn, Error, Opts};
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use super::address::Address;
use super::durable::Durable;
use super::link::{Connection, Server, silence};
use super::rows::{self, number, text};
use super::schema::{self, hex};
use super::{Inner, tls};
use crate::address::Failover;
use crate::engine::{DIAL, REPLACED};
use crate::error::SqlError;

/// Selects the end of the log, the epoch and the floor.
pub(super) const MARK: &str = "SELECT last, digest, epoch, floor FROM meta WHERE id = 1";

/// Selects the time of the server, in milliseconds since 1970.
const CLOCK: &str = "SELECT CAST(UNIX_TIMESTAMP(UTC_TIMESTAMP(6)) * 1000 AS UNSIGNED)";
/// How much the revision increases when another epoch begins.
const JUMP: u64 = 1 << 20;
/// The smallest accepted packet limit: one packet must hold the largest object with its statement.
const SMALLEST_PACKET: usize = 4 << 20;

impl Inner {
    pub(super) async fn open_session(&self) -> Result<Connection, SqlError> {
        let mut link = dial(&self.address).await?;
        set_up(&mut link, &LIMITS).await?;
        check_writable(&link.server)?;
        let state =
            "SELECT server, epoch, CAST(UNIX_TIMESTAMP(UTC_TIMESTAMP(6)) * 1000 AS UNSIGNED)
            FROM meta WHERE id = 1";
        let row = link.first(state, ()).await?;
        let row = row.ok_or_else(|| SqlError::Unsafe("the table meta is empty".into()))?;
        let (known, epoch) = (text(&row, 0), number(&row, 1));
        self.clock.note(number(&row, 2) as f64 / 1000.0);
        if epoch < self.seen_epoch() {
            return Err(SqlError::Unsafe(REPLACED.into()));
        }
        link.epoch = match known == link.server.name {
            true => epoch,
            false => self.promoted(&mut link, epoch).await?,
        };
        self.epoch.fetch_max(link.epoch, Ordering::AcqRel);
        self.has_binlog
            .store(link.server.has_binlog, Ordering::Release);
        Ok(link)
    }

    /// Handles a connection to another server than the one that was written to before. Returns the current epoch.
    async fn promoted(&self, link: &mut Connection, epoch: u64) -> Result<u64, SqlError> {
        let known = *self.known.lock();
        if self.address.choices.failover == Failover::Trust {
            let same = "SELECT COUNT(*) FROM batch WHERE last = ? AND digest = ?";
            let same = link.first(same, (known.last, &known.digest.0[..])).await?;
            if known == Mark::default() || same.is_some_and(|row| number(&row, 0) == 1) {
                let update = "UPDATE meta SET server = ? WHERE id = 1";
                let name = link.server.name.clone();
                link.first(update, (name,)).await?;
                tracing::warn!("another server is the primary, and has the last known writes");
                return Ok(epoch);
            }
        }
        tracing::warn!("another server is the primary: clients must list again");
        Ok(self
            .begin_epoch(link, epoch, known.last, "promotion")
            .await?)
    }

    /// Begins another epoch after `epoch`, above revision `beyond`, unless another server has begun it. Returns the
    /// current epoch.
    pub(super) async fn begin_epoch(
        &self,
        link: &mut Connection,
        epoch: u64,
        beyond: u64,
        reason: &str,
    ) -> Result<u64, Error> {
        let begun = self.raise_epoch(link, epoch, beyond, reason).await;
        if begun.is_err() {
            link.roll_back().await;
        }
        begun
    }

    async fn raise_epoch(
        &self,
        link: &mut Connection,
        epoch: u64,
        beyond: u64,
        reason: &str,
    ) -> Result<u64, Error> {
        let lock = format!("START TRANSACTION; {MARK} FOR UPDATE");
        let row = link.run(&lock).await?.ok_or_else(silence)?;
        let last = rows::mark(&row);
        if last.epoch != epoch {
            link.run("ROLLBACK").await?;
            return Ok(last.epoch);
        }
        let next = epoch + 1;
        let at = last.last.max(beyond) + JUMP;
        let value = format!(
            r#"{{"epoch":{next},"reason":"{reason}","from":{}}}"#,
            last.last
        );
        let hash = digest(&SHA256, &[&last.digest.0[..], value.as_bytes()].concat());
        let hash = hex(&hash.as_ref()[..16]);
        let (id, writer) = (Uuid::new_v4().simple(), Uuid::nil().simple());
        let record = format!(
            "INSERT INTO log (rev, prev, cluster, resource, `key`, value)
                VALUES ({at}, 0, '', '', 'epoch-{next}', x'{}');
             INSERT INTO batch (first, last, id, writer, epoch, digest, bytes, at)
                VALUES ({at}, {at}, x'{id}', x'{writer}', {next}, x'{hash}', {}, UTC_TIMESTAMP(6));
             UPDATE meta SET last = {at}, digest = x'{hash}', epoch = {next}, floor = {at}, server = x'{}' WHERE id = 1;
             COMMIT",
            hex(value.as_bytes()),
            value.len(),
            hex(link.server.name.as_bytes()),
        );
        link.run(&record).await?;
        Ok(next)
    }

    /// Checks a server before it is used for the first time, and creates the tables.
    pub(super) async fn start(&self) -> Result<(), SqlError> {
        let mut link = dial(&self.address).await?;
        check_writable(&link.server)?;
        set_up(&mut link, &LIMITS).await?;
        self.check_durability(&mut link).await?;
        check_packet(&link.server)?;
        if let Some(row) = link.run(CLOCK).await? {
            self.clock.check(number(&row, 0) as f64 / 1000.0)?;
        }
        schema::prepare(&mut link, &self.address.database, self.create).await
    }

    async fn check_durability(&self, link: &mut Connection) -> Result<(), SqlError> {
        for setting in Durable::of(link.server.has_binlog) {
            let name = setting.name;
            let found = variable(link, name).await?.unwrap_or_default();
            if let Some(why) = setting.complaint(&found) {
                let why = format!(
                    "the server has {name}={found}: {why}, or add unsafe=yes to the address"
                );
                match self.address.choices.unsafe_accepted {
                    true => tracing::warn!("{why}"),
                    false => return Err(SqlError::Unsafe(why)),
                }
            }
        }
        if link.server.has_binlog
            && variable(link, "binlog_format").await?.as_deref() == Some("STATEMENT")
        {
            return Err(SqlError::Unsafe(
                "the server has binlog_format=STATEMENT, which does not allow writes in READ COMMITTED: set it to ROW or MIXED"
                    .into(),
            ));
        }
        for name in [
            "rpl_semi_sync_master_wait_point",
            "rpl_semi_sync_source_wait_point",
        ] {
            if variable(link, name).await?.as_deref() == Some("AFTER_COMMIT") {
                tracing::warn!(
                    "{name}=AFTER_COMMIT: others may see writes that a failover loses; AFTER_SYNC is better"
                );
            }
        }
        if variable(link, "wsrep_on").await?.as_deref() == Some("1") {
            tracing::warn!("this is a Galera cluster: all servers must use the same node of it");
        }
        Ok(())
    }
}

/// What transactions of a session may do.
pub(super) struct Limits {
    /// The isolation level.
    pub(super) isolation: &'static str,
    /// Seconds until a transaction without statements ends.
    pub(super) idle: u32,
    /// Seconds that a statement waits for locks of rows.
    pub(super) lock: u32,
}

/// A stopped Bareboat server must not keep the row of `meta` locked between two statements.
const LIMITS: Limits = Limits {
    isolation: "READ COMMITTED",
    idle: 2,
    lock: 10,
};

/// Opens a connection, and detects the kind of server.
pub(super) async fn dial(address: &Address) -> Result<Connection, SqlError> {
    let mut options = address.options.clone();
    if let Some(password) = address.choices.password()? {
        options = options.pass(Some(password));
    }
    let options = Opts::from(options.ssl_opts(tls::of(address)?));
    let mut link = Connection::new(log_in(&options).await?);
    link.server = ask_server(&mut link).await?;
    Ok(link)
}

/// Applies the settings of a session, which override the server's defaults.
pub(super) async fn set_up(link: &mut Connection, limits: &Limits) -> Result<(), Error> {
    let Limits {
        isolation,
        idle,
        lock,
    } = limits;
    let own = match link.server.is_mariadb {
        true => format!("idle_transaction_timeout = {idle}, max_statement_time = 30"),
        false => "max_execution_time = 30000".to_owned(),
    };
    let settings = format!(
        "SET SESSION TRANSACTION ISOLATION LEVEL {isolation}, READ WRITE;
         SET NAMES utf8mb4;
         SET SESSION sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00', autocommit = 1,
            innodb_lock_wait_timeout = {lock}, {own}"
    );
    link.run(&settings).await?;
    Ok(())
}

/// Checks that a packet can have the largest object with its statement.
pub(super) fn check_packet(server: &Server) -> Result<(), SqlError> {
    match server.packet < SMALLEST_PACKET {
        true => Err(SqlError::Unsafe(format!(
            "the server has max_allowed_packet={}: an object may need more; set it to 16M or more",
            server.packet
        ))),
        false => Ok(()),
    }
}

/// Opens a connection and logs in. A refused login is repeated: the client library cuts off the last byte of an ed25519
/// challenge if that byte is zero, so one correct login in 256 is refused. Another login gets another challenge.
async fn log_in(options: &Opts) -> Result<Conn, Error> {
    let mut repeats = 2;
    loop {
        let dialled = tokio::time::timeout(DIAL, Conn::new(options.clone())).await;
        match dialled.unwrap_or_else(|_| Err(silence())) {
            Err(Error::Server(error)) if error.code == ACCESS_DENIED && repeats > 0 => repeats -= 1,
            dialled => return dialled,
        }
    }
}

pub(super) fn check_writable(server: &Server) -> Result<(), SqlError> {
    match server.read_only {
        true => Err(SqlError::Unsafe(
            "the server has read_only=1: it is a standby, which accepts no writes".into(),
        )),
        false => Ok(()),
    }
}

/// Returns the global variable `name`; `None` if the server does not have it.
async fn variable(link: &mut Connection, name: &str) -> Result<Option<String>, Error> {
    match link.run(&format!("SELECT @@GLOBAL.{name}")).await {
        Ok(row) => Ok(row.map(|row| text(&row, 0))),
        Err(Error::Server(error)) if error.code == UNKNOWN_VARIABLE => Ok(None),
        Err(error) => Err(error),
    }
}

const ACCESS_DENIED: u16 = 1045;
const UNKNOWN_VARIABLE: u16 = 1193;

async fn ask_server(link: &mut Connection) -> Result<Server, SqlError> {
    let about = "SELECT VERSION(), @@GLOBAL.read_only, @@GLOBAL.log_bin, @@max_allowed_packet, @@hostname, @@port";
    let row = link.run(about).await?.ok_or_else(silence)?;
    let version = text(&row, 0);
    let is_mariadb = version.contains("MariaDB");
    let oldest = match is_mariadb {
        true => (10, 6),
        false => (8, 0),
    };
    if numbers(&version) < oldest {
        return Err(SqlError::Unsafe(format!(
            "the server has version {version}: the oldest that can be used are MariaDB 10.6 and MySQL 8.0"
        )));
    }
    let name = match is_mariadb {
        true => variable(link, "server_uid").await?,
        false => variable(link, "server_uuid").await?,
    };
    Ok(Server {
        is_mariadb,
        // Older releases do not have a server name.
        name: name.unwrap_or_else(|| format!("{}:{}", text(&row, 4), text(&row, 5))),
        read_only: number(&row, 1) != 0,
        has_binlog: number(&row, 2) != 0,
        packet: usize::try_from(number(&row, 3)).unwrap_or(usize::MAX),
    })
}

/// Returns the first two numbers of a version.
fn numbers(version: &str) -> (u32, u32) {
    // Some MariaDB servers put a MySQL version first, for old clients.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(numbers("10.11.19-MariaDB-0+deb12u1"), (10, 11));
        assert_eq!(numbers("5.5.5-10.6.12-MariaDB"), (10, 6));
        assert_eq!(numbers("8.4.3"), (8, 4));
        assert!(numbers("5.7.44-log") < (8, 0));
    }
}
