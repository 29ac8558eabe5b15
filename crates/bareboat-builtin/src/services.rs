//! What services must not share: cluster IPs and node ports, and who has which.
//!
//! Services themselves are the record: [`Claims`] is an index of them, kept up to date inside every commit, with what writes under
//! way hold beside it. An IPAddress tells of each address a service has: it is stored and goes in the same commit as the service
//! (`told`). A controller puts right what others do to it. As long as one tells of somebody else, no service gets the address.

mod allocate;
mod claims;
mod families;
mod ranges;
mod strategy;
#[cfg(test)]
mod tests;
mod told;

pub use claims::Claims;
pub(crate) use families::check as check_addresses;
pub use ranges::{RangeError, ServiceRanges};
pub use strategy::allocating;
pub use told::{addresses, is_managed, parent, told_of};
