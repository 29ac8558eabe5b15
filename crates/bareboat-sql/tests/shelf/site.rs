//! Where the shelf of a test is: in a schema of its own.

use crate::cluster;
use bareboat_shelf::{Settings, Shelf};
use bareboat_sql::PostgresShelf;

/// Whether the shelf makes indexes for labels that are used.
pub(crate) const LEARNS: bool = false;

/// The place of a shelf, which can be opened again.
#[derive(Clone)]
pub(crate) struct Site(pub(crate) String);

impl Site {
    pub(crate) fn new() -> Site {
        Site(cluster::shared().fresh())
    }

    pub(crate) fn open(&self, settings: Settings) -> Shelf {
        let engine = PostgresShelf::open(&self.0, &settings).expect("the database opens");
        Shelf::over(Box::new(engine), settings).expect("a shelf can be opened")
    }

    fn ask(&self, statement: &str) {
        let (_, schema) = self.0.split_once("schema=").unwrap();
        let statement = statement.replace("SHELF", &format!("{schema}_shelf"));
        cluster::shared().ask(&statement).unwrap();
    }

    /// Forgets that a hub was seen, as if it had been silent for long.
    pub(crate) fn silence(&self, hub: &str) {
        self.ask(&format!(
            "UPDATE SHELF.hub SET seen = seen - interval '1 minute' WHERE id = '{hub}'"
        ));
    }

    /// Makes the database look like a standby that was promoted.
    pub(crate) fn promote(&self) {
        self.ask("UPDATE SHELF.state SET timeline = 'other'");
    }
}
