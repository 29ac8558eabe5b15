//! The shelf of a fleet in PostgreSQL, which several servers share.
//!
//! It has a schema of its own beside that of the store, so that it can be dropped: it is filled again from the members. Every
//! transaction that changes rows takes their versions last, from one row that it locks. So the order of commits is that of versions,
//! and every snapshot sees a prefix of them.

mod leases;
mod rows;
mod schema;
mod session;
mod write;

use super::address::Address;
use super::{pooler, session as sessions};
use crate::engine::{DIAL, Engine as Threads, SqlOptions};
use crate::error::SqlError;
use crate::shelf::{Readers, failed, writing};
use bareboat_shelf::{
    Batch, Context, Dialect, Engine, Lease, Reading, Settings, ShelfError, Written,
};
use parking_lot::Mutex;
use session::{Link, Transaction};
use tokio::runtime::Runtime;
use tokio_postgres::IsolationLevel;

/// The shelf in a PostgreSQL database.
pub struct PostgresShelf {
    address: Address,
    schema: String,
    threads: Threads,
    runtime: Mutex<Option<Runtime>>,
    writer: Mutex<Option<Link>>,
    readers: Readers<Link>,
}

impl std::fmt::Debug for PostgresShelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresShelf")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresShelf {
    /// Opens the shelf at a `postgres://` URL, and creates its tables if they are missing.
    pub fn open(url: &str, settings: &Settings) -> Result<PostgresShelf, SqlError> {
        let address = Address::parse(url)?;
        let (threads, runtime) = Threads::new(SqlOptions::default(), true)?;
        let shelf = PostgresShelf {
            schema: format!("{}_shelf", address.schema),
            address,
            threads,
            runtime: Mutex::new(Some(runtime)),
            writer: Mutex::new(None),
            readers: Readers::new(settings.readers),
        };
        let writer = shelf.threads.block(async {
            let mut client = sessions::dial(&shelf.address).await?;
            pooler::refuse(&shelf.address, &client).await?;
            schema::prepare(&mut client, &shelf.schema).await?;
            drop(client);
            shelf.connect().await
        })?;
        *shelf.writer.lock() = Some(writer);
        Ok(shelf)
    }

    /// Opens and configures a connection.
    async fn connect(&self) -> Result<Link, SqlError> {
        let dialled = tokio::time::timeout(DIAL, sessions::dial(&self.address)).await;
        let client =
            dialled.map_err(|_| SqlError::Unsafe("the database does not answer".into()))??;
        let settings = format!(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
             SET synchronous_commit TO '{}'; SET statement_timeout TO '30s'; SET lock_timeout TO '20s';
             SET idle_in_transaction_session_timeout TO '30s';
             SET client_encoding TO 'UTF8'; SET search_path TO \"{}\"; SET jit TO off",
            self.address.synchronous_commit, self.schema
        );
        client.batch_execute(&settings).await?;
        schema::note_timeline(&client).await?;
        Ok(Link::new(client))
    }

    fn open_link(&self) -> Result<Link, ShelfError> {
        if self.threads.is_closed() {
            return Err(ShelfError::Database("the shelf is closed".into()));
        }
        let connected = self.threads.block(self.connect());
        connected.map_err(|error| ShelfError::Unreachable(Box::new(error)))
    }

    /// Runs a function with the connection that writes, and again if another transaction was in its way.
    fn writing<T>(
        &self,
        write: impl FnMut(&mut Link) -> Result<T, ShelfError>,
    ) -> Result<T, ShelfError> {
        writing(&self.writer, || self.open_link(), write)
    }
}

impl Engine for PostgresShelf {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn read(&self, read: Reading<'_>) -> Result<(), ShelfError> {
        let mut link = self.readers.take(|| self.open_link())?;
        let (client, statements) = link.parts();
        let begin = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start();
        let transaction = self.threads.block(begin).map_err(failed)?;
        let transaction = Transaction::new(transaction, statements, &self.threads);
        let result = read(&transaction);
        let ended = self.threads.block(transaction.end());
        if ended.is_ok() {
            self.readers.give(link);
        }
        result
    }

    fn change(&self, change: Reading<'_>) -> Result<(), ShelfError> {
        self.writing(|link| {
            let (client, statements) = link.parts();
            let transaction = self.threads.block(client.transaction()).map_err(failed)?;
            let transaction = Transaction::new(transaction, statements, &self.threads);
            change(&transaction)?;
            self.threads.block(transaction.end()).map_err(failed)
        })
    }

    fn apply(&self, batches: &[Batch], context: &Context<'_>) -> Result<Written, ShelfError> {
        self.writing(|link| {
            let applying = write::apply(&mut link.client, batches, context);
            self.threads.block(applying)
        })
    }

    fn forget(&self, before: i64, most: usize) -> Result<usize, ShelfError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.writing(|link| {
            let forgetting = write::forget(&mut link.client, before, most);
            self.threads.block(forgetting).map_err(failed)
        })
    }

    /// All servers count together, so no number is skipped.
    fn jump(&self, _to: i64) -> Result<bool, ShelfError> {
        Ok(false)
    }

    fn salt(&self) -> Result<Vec<u8>, ShelfError> {
        self.writing(|link| {
            let salt = link.client.query_one("SELECT salt FROM state", &[]);
            let row = self.threads.block(salt).map_err(failed)?;
            Ok(row.get::<_, String>(0).into_bytes())
        })
    }

    fn close(&self) -> Result<(), ShelfError> {
        self.threads.close();
        self.readers.close();
        *self.writer.lock() = None;
        Ok(())
    }

    fn lease(&self, hub: &str, notes: &[(i64, String)]) -> Result<Vec<Lease>, ShelfError> {
        self.writing(|link| {
            let leasing = leases::lease(&mut link.client, hub, notes);
            self.threads.block(leasing).map_err(failed)
        })
    }

    fn release(&self, hub: &str) -> Result<(), ShelfError> {
        self.writing(|link| {
            let releasing = leases::release(&mut link.client, hub);
            self.threads.block(releasing).map_err(failed)
        })
    }
}

impl Drop for PostgresShelf {
    fn drop(&mut self) {
        self.threads.close();
        if let Some(runtime) = self.runtime.lock().take() {
            // Do not wait: the last owner may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}
