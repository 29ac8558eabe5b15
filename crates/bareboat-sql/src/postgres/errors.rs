//! What the errors of PostgreSQL mean.

use tokio_postgres::error::SqlState;

use crate::error::{Failure, Meaning};

impl Failure for tokio_postgres::Error {
    fn meaning(&self) -> Meaning {
        self.code().map_or(Meaning::Lost, of_state)
    }
}

fn of_state(state: &SqlState) -> Meaning {
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
        return Meaning::ReadOnly;
    }
    match state.code().get(..2) {
        // A session that the server ended, or a server that starts or stops. Also wrong passwords: they may be in
        // rotation.
        Some("08" | "57" | "28") => Meaning::Lost,
        Some("40") => Meaning::Again,
        Some("53") => Meaning::Busy,
        // A session that was idle in a transaction for too long.
        Some("25") => Meaning::Lost,
        // An error of a file or of the disk. An error of the log itself ends the server.
        Some("58") => Meaning::ReadOnly,
        _ => Meaning::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_repeated_is_told_from_what_may_not() {
        let cases = [
            ("53100", Meaning::Full),
            ("23505", Meaning::Exists),
            ("55P03", Meaning::Busy),
            ("53300", Meaning::Busy),
            ("25006", Meaning::ReadOnly),
            ("58030", Meaning::ReadOnly),
            ("58P01", Meaning::ReadOnly),
            ("25P03", Meaning::Lost),
            ("57P01", Meaning::Lost),
            ("28P01", Meaning::Lost),
            ("40P01", Meaning::Again),
            ("42P01", Meaning::Failed),
            ("XX001", Meaning::Failed),
        ];
        for (code, expected) in cases {
            assert_eq!(of_state(&SqlState::from_code(code)), expected, "{code}");
        }
    }
}
