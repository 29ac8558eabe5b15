//! What the errors of PostgreSQL mean.

use tokio_postgres::error::SqlState;

use crate::error::{Failure, Meaning};

impl Failure for tokio_postgres::Error {
    fn meaning(&self) -> Meaning {
        let Some(state) = self.code() else {
            return Meaning::Lost;
        };
        if *state == SqlState::DISK_FULL {
            return Meaning::Full;
        }
        if *state == SqlState::UNIQUE_VIOLATION {
            return Meaning::Exists;
        }
        if *state == SqlState::LOCK_NOT_AVAILABLE || *state == SqlState::QUERY_CANCELED {
            return Meaning::Busy;
        }
        if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Meaning::Lost;
        }
        match state.code().get(..2) {
            // A session that the server ended, or a server that starts or stops. Also wrong passwords: they may be in
            // rotation.
            Some("08" | "57" | "28") => Meaning::Lost,
            Some("40") => Meaning::Again,
            Some("53") => Meaning::Busy,
            // A session that was idle in a transaction for too long.
            Some("25") => Meaning::Lost,
            _ => Meaning::Failed,
        }
    }
}
