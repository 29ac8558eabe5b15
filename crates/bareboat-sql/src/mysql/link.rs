//! A connection, with limits of time: the library waits for an answer for as long as it takes.

use std::io;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Params, Row};
use tokio::time::timeout;

use crate::dialect::Link;

/// The longest time without an answer. A server that is stopped, or a network that swallows everything, sends none. Longer
/// than the limits that the server has for statements and locks.
const SILENCE: Duration = Duration::from_secs(35);

/// An open connection.
pub(super) struct Connection {
    conn: Conn,
    /// The epoch of the log when it was made.
    pub(super) epoch: u64,
    pub(super) server: Server,
    /// Whether a conversation was broken off. It is never continued.
    broken: bool,
}

/// What is known of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    /// MariaDB, not MySQL.
    pub(super) is_mariadb: bool,
    /// Names this server among primary and standbys.
    pub(super) name: String,
    pub(super) read_only: bool,
    pub(super) has_binlog: bool,
    /// The largest packet that it takes.
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

/// An answer that did not come.
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

    /// Notes how a conversation ended.
    fn ended<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.broken = matches!(&result, Err(error) if error.is_fatal());
        result
    }

    /// Runs statements, sent as one text; returns the last row of all their results. Values must not be part of the text.
    pub(super) async fn run(&mut self, statements: &str) -> Result<Option<Row>, Error> {
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
        let result = timeout(SILENCE, conversation).await;
        self.ended(result.unwrap_or_else(|_| Err(silence())))
    }

    /// Runs a prepared statement; gives rows to `see` as they arrive. What follows after it returned false is dropped.
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

    /// Runs a prepared statement; returns its rows.
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

    /// Runs a prepared statement; returns its first row.
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

    /// Ends a transaction without its changes. If that fails, the connection is not used again, which ends it too.
    pub(super) async fn roll_back(&mut self) {
        if !self.broken && self.run("ROLLBACK").await.is_err() {
            self.broken = true;
        }
    }
}
