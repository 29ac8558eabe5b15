//! Allocation of cluster IPs and node ports, which services must not share.
//!
//! Stored services are the record. [`Claims`] is an index of them, updated inside every commit, plus the reservations
//! of writes in progress. An IPAddress object exists for each address of a service; it is stored and deleted in the
//! same commit as the service (`ip_addresses`). A controller repairs IPAddress objects that clients change. While an IPAddress
//! names another owner, no service gets its address.

mod allocate;
mod claims;
mod endpoints;
mod families;
mod ip_addresses;
mod ranges;
mod strategy;
#[cfg(test)]
mod tests;

pub use claims::Claims;
pub use endpoints::ServiceEndpoints;
pub(crate) use families::check as check_addresses;
pub use ip_addresses::{addresses, ip_address_of, is_managed, parent};
pub use ranges::{RangeError, ServiceRanges};
pub use strategy::allocating;
