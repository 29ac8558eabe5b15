//! Connections of a shelf: one that writes, a few that read, and what their errors mean.

use crate::error::{Failure, Meaning};
use bareboat_shelf::ShelfError;
use parking_lot::Mutex;

/// How often a transaction is tried that others got in the way of.
const TRIES: usize = 5;

/// A connection.
pub(crate) trait Wire: Sized {
    type Failure: Failure;

    /// Returns the connection if it still works.
    fn checked(self) -> Option<Self>;
}

/// Converts an error of the database.
pub(crate) fn failed<E: Failure>(error: E) -> ShelfError {
    match error.meaning() {
        Meaning::Full => ShelfError::Full(Box::new(error)),
        Meaning::Lost | Meaning::Busy => ShelfError::Unreachable(Box::new(error)),
        _ => ShelfError::Database(Box::new(error)),
    }
}

/// Returns whether a transaction was undone because of another one, and may be repeated.
pub(crate) fn is_undone<E: Failure>(error: &ShelfError) -> bool {
    let ShelfError::Database(cause) = error else {
        return false;
    };
    let error = cause.downcast_ref::<E>();
    error.is_some_and(|error| error.meaning() == Meaning::Again)
}

/// Runs a function with the connection that writes, and again if another transaction was in its way.
pub(crate) fn writing<L: Wire, T>(
    writer: &Mutex<Option<L>>,
    open: impl FnOnce() -> Result<L, ShelfError>,
    mut write: impl FnMut(&mut L) -> Result<T, ShelfError>,
) -> Result<T, ShelfError> {
    let mut held = writer.lock();
    let mut link = match held.take().and_then(Wire::checked) {
        Some(link) => link,
        None => open()?,
    };
    let mut tries = 0;
    let written = loop {
        match write(&mut link) {
            Err(error) if tries < TRIES && is_undone::<L::Failure>(&error) => tries += 1,
            written => break written,
        }
    };
    // What is left of a transaction must not be found by the next one.
    let broken = matches!(
        written,
        Err(ShelfError::Database(_) | ShelfError::Unreachable(_) | ShelfError::Full(_))
    );
    if !broken {
        *held = Some(link);
    }
    written
}

/// The connections that read and are not in use.
pub(crate) struct Readers<L> {
    idle: Mutex<Vec<L>>,
    /// How many are kept.
    most: usize,
}

impl<L: Wire> Readers<L> {
    pub(crate) fn new(most: usize) -> Readers<L> {
        Readers {
            idle: Mutex::default(),
            most,
        }
    }

    /// Returns a connection that can be used.
    pub(crate) fn take(
        &self,
        open: impl FnOnce() -> Result<L, ShelfError>,
    ) -> Result<L, ShelfError> {
        loop {
            let kept = self.idle.lock().pop();
            match kept.map(Wire::checked) {
                None => return open(),
                Some(Some(link)) => return Ok(link),
                Some(None) => {}
            }
        }
    }

    /// Takes a connection back that has no transaction.
    pub(crate) fn give(&self, link: L) {
        let mut idle = self.idle.lock();
        if idle.len() < self.most {
            idle.push(link);
        }
    }

    pub(crate) fn close(&self) {
        self.idle.lock().clear();
    }
}
