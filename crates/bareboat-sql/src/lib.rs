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
//! With the feature `shelf`, the objects of a fleet's members can be in the same database, in tables of their own.
//!
//! `dialect` says what differs between databases; `append` and `session` are the same for all of them.

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]

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
#[cfg(feature = "shelf")]
mod shelf;
mod tls;

pub use address::{AddressError, Failover};
pub use engine::SqlOptions;
pub use error::{DatabaseError, SqlError};
#[cfg(feature = "mysql")]
pub use mysql::Mysql;
#[cfg(all(feature = "mysql", feature = "shelf"))]
pub use mysql::MysqlShelf;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(all(feature = "postgres", feature = "shelf"))]
pub use postgres::PostgresShelf;
