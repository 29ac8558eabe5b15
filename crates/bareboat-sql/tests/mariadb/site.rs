//! Where the shelf of a test is: in a database of its own.

use crate::cluster;
use bareboat_shelf::{Settings, Shelf};
use bareboat_sql::MysqlShelf;

/// Whether the shelf makes indexes for labels that are used.
pub(crate) const LEARNS: bool = true;

/// The place of a shelf, which can be opened again.
#[derive(Clone)]
pub(crate) struct Site(pub(crate) String);

impl Site {
    pub(crate) fn new() -> Site {
        Site(cluster::shared().fresh())
    }

    pub(crate) fn open(&self, settings: Settings) -> Shelf {
        let engine = MysqlShelf::open(&self.0, &settings).expect("the database opens");
        Shelf::over(Box::new(engine), settings).expect("a shelf can be opened")
    }

    /// Runs a statement in the database, and returns its first row.
    pub(crate) fn ask(&self, statement: &str) -> String {
        let (_, database) = self.0.rsplit_once('/').unwrap();
        let statement = format!("USE {database}; {statement}");
        cluster::shared().ask(&statement).unwrap()
    }

    /// Forgets that a hub was seen, as if it had been silent for long.
    pub(crate) fn silence(&self, hub: &str) {
        self.ask(&format!(
            "UPDATE hub SET seen = seen - INTERVAL 1 MINUTE WHERE id = '{hub}'"
        ));
    }

    /// Makes the database look like a standby that was promoted.
    pub(crate) fn promote(&self) {
        self.ask("UPDATE state SET server = 'other'");
    }
}
