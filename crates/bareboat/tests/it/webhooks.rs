//! Admission webhooks: what they see, what they may change, and what happens when they fail.

mod connections;
mod failures;
pub(crate) mod hook;
mod matching;
mod mutation;
mod records;
mod safety;
mod subresources;
mod versions;
mod waiting;
