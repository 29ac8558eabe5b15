//! The shelf as its users call it. An engine below it has the rows; searches, watches and names are the same for all engines.

mod apart;
mod declare;
mod error;
mod fold;
mod follow;
mod groups;
mod indexes;
mod leases;
mod members;
mod owners;
mod read;
mod remove;
mod upkeep;

pub use error::ShelfError;
pub use follow::{Expired, Following, Position, Replayed};
pub use owners::{Owner, OwnerSearch};

use crate::engine::{Applied, Batch, Context, Engine, Fence, Session};
use crate::ring::Ring;
use crate::row::Directory;
use crate::sqlite::Sqlite;
use indexes::Indexes;
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How often a write is tried whose names were old.
const TRIES: usize = 5;

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
    /// The most bytes of objects of one member.
    pub bytes_per_member: u64,
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
            bytes_per_member: 8 << 30,
            learn_after: 10,
            forget_after: Duration::from_secs(86_400),
        }
    }
}

/// Opens the engine of a file, or creates the file: for an engine that has this one inside.
pub fn file_engine(
    path: impl AsRef<Path>,
    settings: &Settings,
) -> Result<Box<dyn Engine>, ShelfError> {
    Ok(Box::new(Sqlite::open(path.as_ref(), settings)?))
}

/// An index of objects with their bodies on disk.
pub struct Shelf {
    engine: Box<dyn Engine>,
    settings: Settings,
    names: RwLock<Names>,
    indexes: RwLock<Arc<Indexes>>,
    uses: Mutex<indexes::Uses>,
    ring: Mutex<Ring>,
    visible: AtomicI64,
    /// The last version of which rows were replayed to a client.
    replayed: AtomicI64,
    fence: RwLock<Option<Arc<Fence>>>,
    listeners: RwLock<Vec<Listener>>,
}

bareboat_api::opaque_debug!(Shelf);

type Listener = Box<dyn Fn(i64) + Send + Sync>;

/// The names of members and kinds, and their version.
struct Names {
    directory: Arc<Directory>,
    version: i64,
}

impl Shelf {
    /// Opens the file of a shelf, or creates it.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Shelf, ShelfError> {
        let engine = file_engine(path, &settings)?;
        Shelf::over(engine, settings)
    }

    /// Makes a shelf of an engine.
    pub fn over(engine: Box<dyn Engine>, settings: Settings) -> Result<Shelf, ShelfError> {
        let mut loaded = None;
        engine.read(&mut |session| {
            let standing = session.standing()?;
            let indexes = match engine.dialect().learns() {
                true => indexes::load(session)?,
                false => Indexes::default(),
            };
            loaded = Some((standing, members::load(session)?, indexes));
            Ok(())
        })?;
        let (standing, directory, indexes) = loaded.unwrap_or_default();
        Ok(Shelf {
            engine,
            ring: Mutex::new(Ring::new(settings.ring, standing.last)),
            names: RwLock::new(Names {
                directory: Arc::new(directory),
                version: standing.names,
            }),
            indexes: RwLock::new(Arc::new(indexes)),
            uses: Mutex::default(),
            visible: AtomicI64::new(standing.last),
            // What an earlier process replayed is not known.
            replayed: AtomicI64::new(standing.last),
            fence: RwLock::default(),
            listeners: RwLock::default(),
            settings,
        })
    }

    /// Returns the version of the last change that readers see.
    pub fn visible(&self) -> i64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Returns the names of members and kinds.
    pub fn directory(&self) -> Arc<Directory> {
        self.names.read().directory.clone()
    }

    /// Calls a function after every commit with the version it made visible.
    pub fn on_commit(&self, listener: impl Fn(i64) + Send + Sync + 'static) {
        self.listeners.write().push(Box::new(listener));
    }

    /// Marks the shelf as complete, so that the next start continues with the same versions.
    pub fn close(&self) -> Result<(), ShelfError> {
        self.engine.close()
    }

    /// Writes batches in one transaction, and returns what each of them did. `now` is in milliseconds since 1970.
    pub fn apply(&self, batches: &[Batch], now: i64) -> Result<Vec<Applied>, ShelfError> {
        let mut tries = 0;
        loop {
            let (directory, names) = {
                let names = self.names.read();
                (names.directory.clone(), names.version)
            };
            let fence = self.fence.read().clone();
            let context = Context {
                directory: &directory,
                names,
                now,
                watched: self.ring.lock().is_watched(),
                most_rows: self.settings.rows_per_member,
                most_bytes: self.settings.bytes_per_member,
                fence: fence.as_deref(),
            };
            match self.engine.apply(batches, &context) {
                Ok(written) => {
                    if written.last > written.first {
                        self.publish(written.events, written.first, written.last);
                    }
                    return Ok(written.applied);
                }
                Err(ShelfError::Renamed) if tries < TRIES => {
                    tries += 1;
                    self.reading(|session| self.reload(session))?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs a function in a read transaction.
    fn reading<T>(
        &self,
        mut read: impl FnMut(&dyn Session) -> Result<T, ShelfError>,
    ) -> Result<T, ShelfError> {
        let mut result = None;
        self.engine.read(&mut |session| {
            result = Some(read(session)?);
            Ok(())
        })?;
        result.ok_or(ShelfError::Interrupted)
    }

    /// Runs a function in a small transaction that writes.
    fn changing<T>(
        &self,
        mut change: impl FnMut(&dyn Session) -> Result<T, ShelfError>,
    ) -> Result<T, ShelfError> {
        let mut result = None;
        self.engine.change(&mut |session| {
            result = Some(change(session)?);
            Ok(())
        })?;
        result.ok_or(ShelfError::Interrupted)
    }

    /// Like [`Shelf::changing`], for names of members and kinds, which are read again afterwards.
    fn renaming<T>(
        &self,
        mut change: impl FnMut(&dyn Session) -> Result<T, ShelfError>,
    ) -> Result<T, ShelfError> {
        let changed = self.changing(|session| {
            let changed = change(session)?;
            session.renamed()?;
            Ok(changed)
        })?;
        self.reading(|session| self.reload(session))?;
        Ok(changed)
    }

    /// Makes a commit visible, and tells those who follow. `first` is the version before it.
    fn publish(&self, events: Option<Vec<crate::Event>>, first: i64, last: i64) {
        let last = {
            let mut ring = self.ring.lock();
            let visible = self.visible();
            // If another server wrote in between, what it changed is not in the ring.
            let events = events.filter(|_| first == visible);
            let last = last.max(visible);
            ring.extend(events, last);
            self.visible.store(last, Ordering::Release);
            last
        };
        for listener in self.listeners.read().iter() {
            listener(last);
        }
    }
}
