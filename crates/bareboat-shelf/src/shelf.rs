//! The shelf on SQLite: one connection that writes, a few that read.

mod declare;
mod error;
mod fold;
mod follow;
mod indexes;
mod members;
mod owners;
mod read;
mod remove;
mod revisions;
mod schema;
mod upkeep;
mod write;

pub use error::ShelfError;
pub use follow::{Expired, Following, Replayed};
pub use members::Progress;
pub use owners::{Owner, OwnerSearch};
pub use write::{Applied, Batch, Change};

use crate::ring::Ring;
use crate::row::Directory;
use indexes::Indexes;
use parking_lot::{Mutex, RwLock};
use revisions::Revisions;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Settings of a shelf.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long deletions are remembered, and thereby how far back a watch can resume.
    pub retain: Duration,
    /// The memory for recent changes, in bytes.
    pub ring: usize,
    /// The memory for pages of the file, in bytes, of all connections together.
    pub pages: usize,
    /// The number of connections that read.
    pub readers: usize,
    /// The most rows of one member.
    pub rows_per_member: u64,
    /// After how many selectors with a label an index for it is made.
    pub learn_after: u32,
    /// How long an index that was learnt is kept unused.
    pub forget_after: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            retain: Duration::from_secs(600),
            ring: 64 << 20,
            pages: 64 << 20,
            readers: 4,
            rows_per_member: 1_000_000,
            learn_after: 10,
            forget_after: Duration::from_secs(86_400),
        }
    }
}

/// An index of objects with their bodies on disk.
pub struct Shelf {
    path: PathBuf,
    settings: Settings,
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    directory: RwLock<Arc<Directory>>,
    indexes: RwLock<Arc<Indexes>>,
    uses: Mutex<indexes::Uses>,
    ring: Mutex<Ring>,
    visible: AtomicI64,
    history: RwLock<revisions::History>,
    listeners: RwLock<Vec<Listener>>,
}

bareboat_api::opaque_debug!(Shelf);

type Listener = Box<dyn Fn(i64) + Send + Sync>;

/// What only one thread at a time has.
#[derive(Debug)]
struct Writer {
    connection: Connection,
    revisions: Revisions,
}

impl Shelf {
    /// Opens the file of a shelf, or creates it.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Shelf, ShelfError> {
        let path = path.as_ref().to_owned();
        let mut connection = Connection::open(&path)?;
        let share = settings.pages / (settings.readers + 2) / 1024;
        schema::prepare(&mut connection, share * 2)?;
        let (revisions, history) = Revisions::begin(&mut connection)?;
        let directory = members::load(&connection)?;
        let indexes = indexes::load(&connection)?;
        let visible = revisions.last();
        Ok(Shelf {
            ring: Mutex::new(Ring::new(settings.ring, visible)),
            writer: Mutex::new(Writer {
                connection,
                revisions,
            }),
            readers: Mutex::default(),
            directory: RwLock::new(Arc::new(directory)),
            indexes: RwLock::new(Arc::new(indexes)),
            uses: Mutex::default(),
            visible: AtomicI64::new(visible),
            history: RwLock::new(history),
            listeners: RwLock::default(),
            path,
            settings,
        })
    }

    /// Returns the version of the last change that readers see.
    pub fn visible(&self) -> i64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Returns the names of members and kinds.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.read().clone()
    }

    /// Calls a function after every commit with the version it made visible.
    pub fn on_commit(&self, listener: impl Fn(i64) + Send + Sync + 'static) {
        self.listeners.write().push(Box::new(listener));
    }

    /// Marks the file as complete, so that the next start continues with the same versions.
    pub fn close(&self) -> Result<(), ShelfError> {
        let Writer {
            connection,
            revisions,
        } = &mut *self.writer.lock();
        revisions.end(connection)
    }

    /// Runs a function in a read transaction.
    fn reading<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, ShelfError>,
    ) -> Result<T, ShelfError> {
        let kept = self.readers.lock().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.reader()?,
        };
        connection.execute_batch("BEGIN")?;
        let result = read(&connection);
        let ended = connection.execute_batch("COMMIT");
        if ended.is_ok() {
            let mut readers = self.readers.lock();
            if readers.len() < self.settings.readers {
                readers.push(connection);
            }
        }
        result
    }

    fn reader(&self) -> Result<Connection, ShelfError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        let share = self.settings.pages / (self.settings.readers + 2) / 1024;
        schema::tune(&connection, share)?;
        Ok(connection)
    }

    /// Makes a commit visible, and tells those who follow.
    fn publish(&self, events: Option<Vec<crate::Event>>, last: i64) {
        {
            let mut ring = self.ring.lock();
            ring.extend(events, last);
            self.visible.store(last, Ordering::Release);
        }
        for listener in self.listeners.read().iter() {
            listener(last);
        }
    }
}
