//! What services must not share: cluster IPs and node ports, and who has which.
//!
//! Services themselves are the record: [`Claims`] is an index of them, kept up to date inside every commit, with what writes under
//! way hold beside it. An IPAddress that tells of a service's address follows from the service: a controller writes it after the
//! service, takes it away after the service is gone, and repairs both after a crash. Until it is gone nobody else gets the address.

mod allocate;
mod claims;
mod families;
mod ranges;
mod strategy;
#[cfg(test)]
mod tests;

pub use claims::Claims;
pub(crate) use families::check as check_addresses;
pub use ranges::{RangeError, ServiceRanges};
pub use strategy::allocating;
