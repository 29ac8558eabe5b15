//! A connection with one job, which is opened again after it was lost.

use std::sync::atomic::{AtomicBool, Ordering};

use bareboat_storage::BackendError;
use parking_lot::{Mutex, MutexGuard};

use crate::dialect::{Dialect, Link};
use crate::error::unreachable;

/// A session, connected or not.
pub(crate) struct Session<L> {
    held: Mutex<Option<L>>,
    /// Whether a connection was opened whose loss is not counted yet.
    connected: AtomicBool,
}

/// The guard of a session that is in use.
pub(crate) type Held<'a, L> = MutexGuard<'a, Option<L>>;

impl<L> Default for Session<L> {
    fn default() -> Self {
        Self {
            held: Mutex::new(None),
            connected: AtomicBool::new(false),
        }
    }
}

impl<L: Link> Session<L> {
    /// Returns the connection, or opens one. A connection from an earlier epoch is dropped, because it may lead to a
    /// server that was replaced.
    pub(crate) fn get<D: Dialect<Link = L>>(
        &self,
        dialect: &D,
    ) -> Result<Held<'_, L>, BackendError> {
        let mut held = self.held.lock();
        let engine = dialect.engine();
        let gone = |held: &L| held.is_closed() || held.epoch() < engine.seen_epoch();
        if held.as_ref().is_none_or(gone) {
            *held = None;
            engine.check_open()?;
            if self.connected.swap(false, Ordering::Relaxed) {
                engine.connections.lost();
            }
            let connection = engine.block(dialect.connect());
            engine.connections.tried(&connection);
            self.connected.store(connection.is_ok(), Ordering::Relaxed);
            *held = Some(connection.map_err(unreachable)?);
        }
        Ok(held)
    }

    /// Drops the connection unless it is in use.
    pub(crate) fn close(&self) {
        if let Some(mut held) = self.held.try_lock() {
            *held = None;
        }
    }
}
