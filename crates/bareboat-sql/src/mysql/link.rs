//! A connection with timeouts: the client library itself waits for an answer without a limit.

use std::io;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Params, Row};
use tokio::time::timeout;

use crate::dialect::Link;

/// The longest wait for an answer. A stopped server sends no answer, and a network may drop everything. This is longer
/// than the server's own limits for statements and locks.
const SILENCE: Duration = Duration::from_secs(35);

/// An open connection.
pub(super) struct Connection {
    conn: Conn,
    /// The epoch of the log at the time when the connection was made.
    pub(super) epoch: u64,
    pub(super) server: Server,
    /// Whether an exchange with the server was interrupted. Such a connection is never used again.
    broken: bool,
}

/// What is known about a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    /// Whether the server is MariaDB; otherwise it is MySQL.
    pub(super) is_mariadb: bool,
    /// Identifies this server among primary and standbys.
    pub(super) name: String,
    pub(super) read_only: bool,
    pub(super) has_binlog: bool,
    /// The largest packet that the server accepts.
    pub(super) packet: usize,
}

impl Link for Connection {
    fn is_closed(&self) -> bool {
        self.broken
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// Returns the error for an answer that did not arrive in time.
pub(super) fn silence() -> Error {
    io::Error::new(io::ErrorKind::TimedOut, "the database does not answer").into()
}

impl Connection {
    pub(super) fn new(conn: Conn) -> Self {
        Self {
            conn,
            epoch: 0,
            server: Server::default(),
            broken: false,
        }
    }

    /// Returns `result`, and marks the connection as broken if the error is fatal.
    fn ended<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.broken = matches!(&result, Err(error) if error.is_fatal());
        result
    }

    /// Runs `statements`, sent as one text. Returns the last row of all results. The text must not contain values.
    pub(super) async fn run(&mut self, statements: &str) -> Result<Option<Row>, Error> {
        self.run_within(statements, SILENCE).await
    }

    /// Like `run`, with a limit of its own.
    pub(super) async fn run_within(
        &mut self,
        statements: &str,
        limit: Duration,
    ) -> Result<Option<Row>, Error> {
        self.broken = true;
        let conversation = async {
            let mut result = self.conn.query_iter(statements).await?;
            let mut last = None;
            loop {
                while let Some(row) = result.next().await? {
                    last = Some(row);
                }
                if result.is_empty() {
                    break;
                }
            }
            result.drop_result().await?;
            Ok(last)
        };
        let result = timeout(limit, conversation).await;
        self.ended(result.unwrap_or_else(|_| Err(silence())))
    }

    /// Runs a prepared statement and passes rows to `see` as they arrive. After `see` returned false, the remaining
    /// rows are dropped.
    pub(super) async fn each(
        &mut self,
        statement: &str,
        parameters: impl Into<Params> + Send,
        mut see: impl FnMut(Row) -> bool,
    ) -> Result<(), Error> {
        self.broken = true;
        let conversation = async {
            let begun = timeout(SILENCE, self.conn.exec_iter(statement, parameters.into()));
            let mut result = begun.await.map_err(|_| silence())??;
            let mut wanted = true;
            while let Some(row) = timeout(SILENCE, result.next())
                .await
                .map_err(|_| silence())??
            {
                wanted = wanted && see(row);
            }
            Ok(())
        };
        let result = conversation.await;
        self.ended(result)
    }

    /// Runs a prepared statement and returns its rows.
    pub(super) async fn rows(
        &mut self,
        statement: &str,
        parameters: impl Into<Params> + Send,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        self.each(statement, parameters, |row| {
            rows.push(row);
            true
        })
        .await?;
        Ok(rows)
    }

    /// Runs a prepared statement and returns its first row.
    pub(super) async fn first(
        &mut self,
        statement: &str,
        parameters: impl Into<Params> + Send,
    ) -> Result<Option<Row>, Error> {
        let mut first = None;
        self.each(statement, parameters, |row| {
            first.get_or_insert(row);
            true
        })
        .await?;
        Ok(first)
    }

    /// Returns how many rows the last statement changed.
    #[cfg(feature = "shelf")]
    pub(super) fn changed(&self) -> u64 {
        self.conn.affected_rows()
    }

    /// Rolls back the transaction. If that fails, the connection is not used again, which ends the transaction too.
    pub(super) async fn roll_back(&mut self) {
        if !self.broken && self.run("ROLLBACK").await.is_err() {
            self.broken = true;
        }
    }
}
