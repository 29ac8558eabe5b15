//! The shelf of a fleet in MariaDB or MySQL, which several servers share.
//!
//! Its tables are beside those of the store, and can be dropped: they are filled again from the members. Every transaction that
//! changes rows takes their versions last, from one row that it locks. So the order of commits is that of versions, and every
//! snapshot sees a prefix of them. Other servers find what is new by reading that row.

mod indexes;
mod leases;
mod rows;
mod schema;
mod session;
mod write;

use super::address::Address;
use super::link::Connection;
use super::session::{self as sessions, Limits};
use crate::engine::{DIAL, Engine as Threads, SqlOptions};
use crate::error::SqlError;
use crate::shelf::{Readers, failed, is_undone, writing};
use bareboat_shelf::{
    Batch, Context, Dialect, Engine, Lease, NewIndex, Reading, Session as _, Settings, ShelfError,
    Standing, Written,
};
use mysql_async::Error;
use parking_lot::Mutex;
use session::{Link, Transaction};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// How often a read is tried that met the change of a table.
const TRIES: usize = 5;
/// What transactions that write may do.
const WRITES: Limits = Limits {
    isolation: "READ COMMITTED",
    idle: 10,
    lock: 20,
};
/// What transactions that read may do.
const READS: Limits = Limits {
    isolation: "REPEATABLE READ",
    idle: 30,
    lock: 20,
};

/// The shelf in a MariaDB or MySQL database.
pub struct MysqlShelf {
    address: Address,
    threads: Arc<Threads>,
    runtime: Mutex<Option<Runtime>>,
    writer: Mutex<Option<Link>>,
    readers: Readers<Link>,
}

impl std::fmt::Debug for MysqlShelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MysqlShelf")
            .field("database", &self.address.database)
            .finish_non_exhaustive()
    }
}

impl MysqlShelf {
    /// Opens the shelf at a `mysql://` URL, and creates its tables if they are missing. The database must exist.
    pub fn open(url: &str, settings: &Settings) -> Result<MysqlShelf, SqlError> {
        let address = Address::parse(url)?;
        let (threads, runtime) = Threads::new(SqlOptions::default(), true)?;
        let shelf = MysqlShelf {
            address,
            threads: Arc::new(threads),
            runtime: Mutex::new(Some(runtime)),
            writer: Mutex::new(None),
            readers: Readers::new(settings.readers),
        };
        let writer = shelf.threads.block(async {
            let mut link = sessions::dial(&shelf.address).await?;
            sessions::check_writable(&link.server)?;
            sessions::check_packet(&link.server)?;
            sessions::set_up(&mut link, &WRITES).await?;
            schema::prepare(&mut link, &shelf.address.database).await?;
            drop(link);
            shelf.connect(&WRITES).await
        })?;
        *shelf.writer.lock() = Some(Link::new(writer, &shelf.threads));
        Ok(shelf)
    }

    /// Opens and configures a connection.
    async fn connect(&self, limits: &Limits) -> Result<Connection, SqlError> {
        let silent = || SqlError::Unsafe("the database does not answer".into());
        let dialled = tokio::time::timeout(2 * DIAL, sessions::dial(&self.address)).await;
        let mut link = dialled.map_err(|_| silent())??;
        sessions::check_writable(&link.server)?;
        sessions::set_up(&mut link, limits).await?;
        schema::note_server(&mut link).await?;
        Ok(link)
    }

    fn open_link(&self, limits: &Limits) -> Result<Link, ShelfError> {
        if self.threads.is_closed() {
            return Err(ShelfError::Database("the shelf is closed".into()));
        }
        let connected = self.threads.block(self.connect(limits));
        let connected = connected.map_err(|error| ShelfError::Unreachable(Box::new(error)))?;
        Ok(Link::new(connected, &self.threads))
    }

    /// Runs a function in a transaction that writes, and again if another transaction was in its way.
    fn transact<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> Result<T, ShelfError>,
    ) -> Result<T, ShelfError> {
        let open = || self.open_link(&WRITES);
        writing(&self.writer, open, |link| {
            let link = link.used();
            let run = |link: &mut Connection, text| self.threads.block(link.run(text));
            run(link, "START TRANSACTION").map_err(failed)?;
            let done = work(link).and_then(|done| {
                run(link, "COMMIT").map_err(failed)?;
                Ok(done)
            });
            if done.is_err() {
                self.threads.block(link.roll_back());
            }
            done
        })
    }
}

impl Engine for MysqlShelf {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn read(&self, read: Reading<'_>) -> Result<(), ShelfError> {
        let mut tries = 0;
        loop {
            let mut link = self.readers.take(|| self.open_link(&READS))?;
            let begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
            let begun = self.threads.block(link.used().run(begin));
            begun.map_err(failed)?;
            let result = read(&Transaction::new(link.used(), &self.threads));
            if self.threads.block(link.used().run("COMMIT")).is_ok() {
                self.readers.give(link);
            }
            match result {
                Err(error) if tries < TRIES && is_undone::<Error>(&error) => tries += 1,
                result => return result,
            }
        }
    }

    fn change(&self, change: Reading<'_>) -> Result<(), ShelfError> {
        self.transact(|link| change(&Transaction::new(link, &self.threads)))
    }

    fn apply(&self, batches: &[Batch], context: &Context<'_>) -> Result<Written, ShelfError> {
        self.transact(|link| self.threads.block(write::apply(link, batches, context)))
    }

    fn forget(&self, before: i64, most: usize) -> Result<usize, ShelfError> {
        self.transact(|link| {
            let forgetting = write::forget(link, before, most);
            self.threads.block(forgetting).map_err(failed)
        })
    }

    /// All servers count together, so no number is skipped.
    fn jump(&self, _to: i64) -> Result<bool, ShelfError> {
        Ok(false)
    }

    /// One statement, because every server asks for it all the time.
    fn standing(&self) -> Result<Standing, ShelfError> {
        let mut link = self.readers.take(|| self.open_link(&READS))?;
        let standing = Transaction::new(link.used(), &self.threads).standing()?;
        self.readers.give(link);
        Ok(standing)
    }

    fn salt(&self) -> Result<Vec<u8>, ShelfError> {
        let mut salt = Vec::new();
        self.read(&mut |session| {
            session.rows("SELECT salt FROM state", &[], &mut |row| {
                salt = row.text(0)?.unwrap_or("").as_bytes().to_vec();
                Ok(false)
            })
        })?;
        Ok(salt)
    }

    fn close(&self) -> Result<(), ShelfError> {
        self.threads.close();
        self.readers.close();
        *self.writer.lock() = None;
        Ok(())
    }

    /// A connection of its own: a change of the table commits at once, and may take long.
    fn add_index(&self, index: &NewIndex<'_>) -> Result<(), ShelfError> {
        let mut link = self.open_link(&WRITES)?;
        let adding = indexes::add(link.used(), &self.address.database, index);
        self.threads.block(adding).map_err(failed)
    }

    fn drop_index(&self, no: i64, now: i64) -> Result<(), ShelfError> {
        self.transact(|link| {
            let retiring = indexes::retire(link, no, now);
            self.threads.block(retiring).map_err(failed)
        })
    }

    fn clear_indexes(&self, now: i64) -> Result<(), ShelfError> {
        let mut some = false;
        self.read(&mut |session| {
            session.rows(&indexes::due(now), &[], &mut |_| {
                some = true;
                Ok(false)
            })
        })?;
        if !some {
            return Ok(());
        }
        let mut link = self.open_link(&WRITES)?;
        let clearing = indexes::clear(link.used(), &self.address.database, now);
        self.threads.block(clearing).map_err(failed)
    }

    fn lease(&self, hub: &str, notes: &[(i64, String)]) -> Result<Vec<Lease>, ShelfError> {
        self.transact(|link| {
            let leasing = leases::lease(link, hub, notes);
            self.threads.block(leasing).map_err(failed)
        })
    }

    fn release(&self, hub: &str) -> Result<(), ShelfError> {
        self.transact(|link| {
            let releasing = leases::release(link, hub);
            self.threads.block(releasing).map_err(failed)
        })
    }
}

impl Drop for MysqlShelf {
    fn drop(&mut self) {
        self.threads.close();
        if let Some(runtime) = self.runtime.lock().take() {
            // Do not wait: the last owner may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}
