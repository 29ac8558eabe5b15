//! Wall-clock time as stored in the file: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time; a clock before 1970 counts as 1970.
pub(crate) fn now_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// Converts a stored time.
pub(crate) fn time(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.max(0) as u64)
}
