//! What shelves in all databases have in common: what a write means for rows, who syncs which member, how connections are used.

mod changes;
mod leases;
mod links;
mod pass;

pub(crate) use changes::{check_limits, fence, places, reached};
pub(crate) use leases::{Moves, share_out};
pub(crate) use links::{Readers, Wire, failed, is_undone, writing};
pub(crate) use pass::{Pass, Slot};
