//! What the errors of MySQL and MariaDB mean. An error number that both servers have means the same on both.

use mysql_async::Error;

use crate::error::{Failure, Meaning};

impl Failure for Error {
    fn meaning(&self) -> Meaning {
        match self {
            Error::Server(error) => of_number(error.code, &error.message),
            // An error of the connection, or of what was received over it.
            _ => Meaning::Lost,
        }
    }
}

fn of_number(number: u16, message: &str) -> Meaning {
    match number {
        // Table full, disk full, no space for a new file.
        1021 | 1114 | 3675 => Meaning::Full,
        // An error of the storage engine or of a file: 28 is ENOSPC.
        1026 | 1030 if message.contains(" 28 ") => Meaning::Full,
        // Another error of the disk. The statement was rolled back; a failed commit has another number.
        1026 | 1030 => Meaning::ReadOnly,
        // The server, the tables or the transaction are read-only.
        1036 | 1290 | 1792 | 1836 => Meaning::ReadOnly,
        1062 => Meaning::Exists,
        // Deadlock, or a row or a table that changed since the snapshot: the whole transaction was rolled back.
        1020 | 1213 | 1412 => Meaning::Again,
        // Lock wait timeout (the server rolls back the statement only; we roll back the rest), lock table full,
        // statement interrupted or too slow, too many connections, packet too large.
        1205 | 1206 | 1317 | 1969 | 3024 | 1040 | 1203 | 1226 | 1153 => Meaning::Busy,
        // A wrong password may be in rotation, and a blocked host may be unblocked.
        1044 | 1045 | 1129 | 1130 | 1698 => Meaning::Lost,
        // The server is stopping, or has ended the session.
        1053 | 1077 | 1079 | 1927 | 4031 => Meaning::Lost,
        // A network error; a node that left its cluster; a failed commit, which may or may not be in the log.
        1152 | 1158..=1161 | 1184 | 1047 | 1180 => Meaning::Lost,
        _ => Meaning::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_repeated_is_told_from_what_may_not() {
        let cases = [
            (1213, "Deadlock found", Meaning::Again),
            (1205, "Lock wait timeout exceeded", Meaning::Busy),
            (1062, "Duplicate entry", Meaning::Exists),
            (1114, "The table 'log' is full", Meaning::Full),
            (1030, "Got error 28 \"No space left\"", Meaning::Full),
            (
                1030,
                "Got error 5 \"Input/output error\"",
                Meaning::ReadOnly,
            ),
            (
                1026,
                "Error writing file 'x' (errno: 30 \"Read-only\")",
                Meaning::ReadOnly,
            ),
            (1792, "in a READ ONLY transaction", Meaning::ReadOnly),
            (1180, "Got error 28 during COMMIT", Meaning::Lost),
            (1290, "running with --read-only", Meaning::ReadOnly),
            (1146, "Table 'x.log' doesn't exist", Meaning::Failed),
        ];
        for (number, message, expected) in cases {
            assert_eq!(of_number(number, message), expected, "{number} {message}");
        }
    }
}
