//! The log in an etcd cluster.

pub use bareboat_etcd::{AddressError, Etcd, EtcdError, EtcdOptions};
