//! Where the shelf of a test is: in a file.

use bareboat_shelf::{Settings, Shelf};
use tempfile::TempDir;

/// Whether the shelf makes indexes for labels that are used.
pub(crate) const LEARNS: bool = true;

/// The place of a shelf, which can be opened again.
pub(crate) struct Site(TempDir);

impl Site {
    pub(crate) fn new() -> Site {
        Site(tempfile::tempdir().expect("a directory can be made"))
    }

    pub(crate) fn open(&self, settings: Settings) -> Shelf {
        Shelf::open(self.0.path().join("fleet.db"), settings).expect("a shelf can be opened")
    }
}
