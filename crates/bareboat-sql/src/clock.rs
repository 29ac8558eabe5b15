//! Compares the clock of a database with ours.

use std::time::SystemTime;

use crate::error::SqlError;

/// Checks the time of the database, in seconds since 1970.
pub(crate) fn check(theirs: f64) -> Result<(), SqlError> {
    let ours = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64());
    let apart = (ours - theirs).abs();
    if apart > 30.0 {
        return Err(SqlError::Unsafe(format!(
            "the clocks of this machine and of the database differ by {apart:.0} s"
        )));
    }
    if apart > 2.0 {
        tracing::warn!(
            seconds = apart,
            "the clocks of this machine and of the database differ"
        );
    }
    Ok(())
}
