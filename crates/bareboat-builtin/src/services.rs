//! Allocation of cluster IPs and node ports, which services must not share.
//!
//! Stored services are the record. [`Claims`] is an index of them, updated inside every commit, plus the reservations
//! of writes in progress. An IPAddress object exists for each address of a service; it is stored and deleted in the
//! same commit as the service (`told`). A controller repairs IPAddress objects that clients change. While an IPAddress
//! names another owner, no service gets its address.

mod allocate;
mod claims;
mod endpoints;
mod families;
mod ranges;
mod strategy;
#[cfg(test)]
mod tests;
mod told;

pub use claims::Claims;
pub use endpoints::ServiceEndpoints;
pub(crate) use families::check as check_addresses;
pub use ranges::{RangeError, ServiceRanges};
pub use strategy::allocating;
pub use told::{addresses, is_managed, parent, told_of};
