//! The log of `bareboat-storage` in a SQL database that several servers share.
//!
//! This crate handles rows, sessions and lost connections. The layers above decide order, conflicts
//! and caching; objects are bytes here.
//!
//! * A batch is appended by one call of a function in the database, which holds a lock of the store
//!   for as long as it runs and commits. Revisions are consecutive, so every snapshot sees a prefix of the log.
//! * Each session has one purpose: appends, the barrier, long reads, or notifications. There is no pool.
//! * A lost connection is not fatal: appends are repeated under their id; reads fail until there is a connection again.
//! * A promoted standby, or a log without its last writes, begins another epoch.

mod address;
mod error;
mod postgres;
mod tls;

pub use address::{AddressError, Failover};
pub use error::SqlError;
pub use postgres::{Postgres, SqlOptions};
