//! The log of `bareboat-storage` in an etcd cluster that several servers share.
//!
//! This crate handles keys, transactions and lost connections. The layers above decide order, conflicts
//! and caching; objects are bytes here.
//!
//! * A batch is one transaction, on the condition that the log still ends where the writer expects: last revision,
//!   epoch and digest. Revisions are those of the log; the revisions of etcd only say where to read.
//! * A batch has a row with the keys of its records. Values are read at the revision of etcd that wrote the row. So
//!   etcd keeps the history until it is compacted.
//! * Every connection has one job: appends, the barrier, long reads, or the watch. There is no pool.
//! * A lost connection is normal: appends are repeated under their id; reads fail until there is a new connection.
//! * A restored cluster, or a log without its last writes, begins another epoch.
//!
//! The etcd client is part of this crate: a few gRPC calls over `hyper`, with messages encoded by hand. It needs no
//! protobuf compiler and no other crates.

mod address;
mod append;
mod block;
mod channel;
mod compact;
mod defragment;
mod engine;
mod epoch;
mod error;
mod fetch;
mod foreign;
mod hold;
mod layout;
mod listen;
mod messages;
mod read;
mod refill;
mod session;
mod start;
mod tail;
mod tls;
mod wire;

pub use address::AddressError;
pub use engine::{Etcd, EtcdOptions};
pub use error::EtcdError;
