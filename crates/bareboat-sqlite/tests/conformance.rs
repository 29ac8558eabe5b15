//! The conformance suite of backends, on SQLite files.

use std::sync::Arc;

use bareboat_sqlite::Sqlite;
use bareboat_storage::Backend;
use bareboat_storage::conformance::Site;

fn file() -> impl Site {
    let folder = tempfile::tempdir().expect("a temporary folder");
    move || -> Arc<dyn Backend> {
        let path = folder.path().join("state.db");
        Arc::new(Sqlite::open(path).expect("the file opens"))
    }
}

bareboat_storage::conformance!(file);
bareboat_storage::backup_conformance!(file);
bareboat_storage::clock_conformance!(file);
