//! What services must not share: cluster IPs and node ports, and who has which.
//!
//! Services themselves are the only record: [`Claims`] is an index of them, kept up to date inside every commit, with
//! what writes under way hold beside it. Nothing is stored twice, so nothing can leak or disagree after a crash.

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
