//! The log of `bareboat-storage` in a SQL database that several servers share.
//!
//! This crate handles rows, sessions and lost connections. The layers above decide order, conflicts
//! and caching; objects are bytes here.
//!
//! * A batch is appended while a lock of the store is held: by one function call in PostgreSQL, in one transaction in
//!   MySQL and MariaDB. Revisions are consecutive, so every snapshot sees a prefix of the log.
//! * Every session has one job: appends, the barrier, long reads, or changes by other servers. There is no pool.
//! * A lost connection is normal: appends are repeated under their id; reads fail until there is a new connection.
//! * A promoted standby, or a log without its last writes, begins another epoch.
//!
//! `dialect` says what differs between databases; `append` and `session` are the same for all of them.

mod address;
mod append;
mod block;
mod clock;
mod dialect;
mod engine;
mod error;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod session;
mod tls;

pub use address::{AddressError, Failover};
pub use engine::SqlOptions;
pub use error::{DatabaseError, SqlError};
#[cfg(feature = "mysql")]
pub use mysql::Mysql;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
