//! A shelf that several servers share: which of them writes the rows of a member, and what the others have written.

use super::{Shelf, ShelfError};
use crate::engine::{Fence, Lease};
use std::sync::Arc;

impl Shelf {
    /// Returns whether other servers may use the same shelf.
    pub fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    /// Renews the leases of a server, takes some or gives some back, and returns all leases. `notes` are what the server says about
    /// its members. From then on, only rows of members that it holds can be written here.
    pub fn lease(&self, hub: &str, notes: &[(i64, String)]) -> Result<Vec<Lease>, ShelfError> {
        let leases = self.engine.lease(hub, notes)?;
        let own = leases.iter().filter(|lease| lease.holder == hub);
        let fence = Fence {
            hub: hub.to_owned(),
            terms: own.map(|lease| (lease.member, lease.term)).collect(),
        };
        *self.fence.write() = Some(Arc::new(fence));
        Ok(leases)
    }

    /// Gives all leases of a server back.
    pub fn release(&self, hub: &str) -> Result<(), ShelfError> {
        if let Some(fence) = &mut *self.fence.write() {
            *fence = Arc::default();
        }
        self.engine.release(hub)
    }

    /// Returns whether a watch follows the changes.
    pub fn is_followed(&self) -> bool {
        self.ring.lock().is_watched()
    }

    /// Looks for what other servers have written, and tells those who follow.
    pub fn refresh(&self) -> Result<(), ShelfError> {
        let standing = self.engine.standing()?;
        if standing.names != self.names.read().version {
            self.reading(|session| self.reload(session))?;
        }
        if standing.last > self.visible() {
            self.publish(None, standing.last, standing.last);
        }
        Ok(())
    }

    /// Returns whether a version that was not seen here is known to other servers.
    pub(super) fn is_known(&self, rev: i64) -> bool {
        self.is_shared() && self.refresh().is_ok() && rev <= self.visible()
    }
}
