//! A shelf in a file on a disk that can be full.

use bareboat_shelf::{
    Batch, Context, Dialect, Engine, Lease, NewIndex, Reading, Settings, Shelf, ShelfError,
    Standing, Written, file_engine,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether a disk is full.
#[derive(Clone, Default)]
pub(super) struct Disk(Arc<AtomicBool>);

impl Disk {
    pub(super) fn fill(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Opens the engine of a file on this disk.
    pub(super) fn engine(&self, path: &Path, settings: &Settings) -> Box<dyn Engine> {
        Box::new(OnDisk {
            inner: file_engine(path, settings).expect("a shelf can be opened"),
            disk: self.clone(),
        })
    }

    /// Opens a shelf in a file on this disk.
    pub(super) fn shelf(&self, path: &Path, settings: &Settings) -> Shelf {
        let shelf = Shelf::over(self.engine(path, settings), settings.clone());
        shelf.expect("a shelf can be opened")
    }

    fn room(&self) -> Result<(), ShelfError> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(ShelfError::Full("no space left on device".into())),
            false => Ok(()),
        }
    }
}

/// The engine of a file. It reads as always, and writes if there is room.
struct OnDisk {
    inner: Box<dyn Engine>,
    disk: Disk,
}

impl Engine for OnDisk {
    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn read(&self, read: Reading<'_>) -> Result<(), ShelfError> {
        self.inner.read(read)
    }

    fn change(&self, change: Reading<'_>) -> Result<(), ShelfError> {
        self.disk.room()?;
        self.inner.change(change)
    }

    fn apply(&self, batches: &[Batch], context: &Context<'_>) -> Result<Written, ShelfError> {
        self.disk.room()?;
        self.inner.apply(batches, context)
    }

    fn forget(&self, before: i64, most: usize) -> Result<usize, ShelfError> {
        self.disk.room()?;
        self.inner.forget(before, most)
    }

    fn is_own(&self, rev: i64) -> bool {
        self.inner.is_own(rev)
    }

    fn jump(&self, to: i64) -> Result<bool, ShelfError> {
        self.disk.room()?;
        self.inner.jump(to)
    }

    fn salt(&self) -> Result<Vec<u8>, ShelfError> {
        self.inner.salt()
    }

    fn close(&self) -> Result<(), ShelfError> {
        self.inner.close()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn lease(&self, hub: &str, notes: &[(i64, String)]) -> Result<Vec<Lease>, ShelfError> {
        self.inner.lease(hub, notes)
    }

    fn standing(&self) -> Result<Standing, ShelfError> {
        self.inner.standing()
    }

    fn add_index(&self, index: &NewIndex<'_>) -> Result<(), ShelfError> {
        self.disk.room()?;
        self.inner.add_index(index)
    }

    fn drop_index(&self, no: i64, now: i64) -> Result<(), ShelfError> {
        self.disk.room()?;
        self.inner.drop_index(no, now)
    }

    fn clear_indexes(&self, now: i64) -> Result<(), ShelfError> {
        self.inner.clear_indexes(now)
    }

    fn release(&self, hub: &str) -> Result<(), ShelfError> {
        self.inner.release(hub)
    }
}
