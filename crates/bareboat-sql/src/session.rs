//! A connection with one job, made again when it was lost.

use bareboat_storage::BackendError;
use parking_lot::{Mutex, MutexGuard};

use crate::dialect::{Dialect, Link};
use crate::error::unreachable;

/// A session, connected or not.
pub(crate) struct Session<L>(Mutex<Option<L>>);

/// A session in use.
pub(crate) type Held<'a, L> = MutexGuard<'a, Option<L>>;

impl<L> Default for Session<L> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<L: Link> Session<L> {
    /// Returns the connection, or makes one. A connection from before the last epoch may lead to a server that
    /// was replaced.
    pub(crate) fn get<D: Dialect<Link = L>>(
        &self,
        dialect: &D,
    ) -> Result<Held<'_, L>, BackendError> {
        let mut held = self.0.lock();
        let engine = dialect.engine();
        let gone = |held: &L| held.is_closed() || held.epoch() < engine.seen_epoch();
        if held.as_ref().is_none_or(gone) {
            *held = None;
            engine.check_open()?;
            let connection = engine.block(dialect.connect());
            *held = Some(connection.map_err(unreachable)?);
        }
        Ok(held)
    }

    /// Drops the connection unless it is in use.
    pub(crate) fn close(&self) {
        if let Some(mut held) = self.0.try_lock() {
            *held = None;
        }
    }
}
