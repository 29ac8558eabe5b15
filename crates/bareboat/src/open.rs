//! Opens a store by its address.

use bareboat_storage::{Backend, BoxError, MemoryBackend, OpenError, Store, StoreOptions};
use std::sync::Arc;

/// Why a store could not be opened by its address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenStorageError {
    /// No engine of this program has such addresses.
    #[error(
        "{0:?} is no address of a store: known are {known}",
        known = KNOWN.join(", ")
    )]
    Unknown(String),
    /// The engine cannot be used.
    #[error(transparent)]
    Engine(BoxError),
    /// The content cannot be read.
    #[error(transparent)]
    Content(OpenError),
}

/// The forms of addresses that this program knows.
const KNOWN: &[&str] = &[
    "memory:",
    #[cfg(feature = "sqlite")]
    "sqlite:PATH",
    #[cfg(feature = "postgres")]
    "postgres://USER@HOST/DATABASE",
    #[cfg(feature = "mysql")]
    "mysql://USER@HOST/DATABASE",
    #[cfg(feature = "etcd")]
    "etcd://HOST:PORT,HOST:PORT/PREFIX",
];

/// Opens the engine at an address: `memory:`, `sqlite:PATH`, `postgres://…`, `mysql://…` or `etcd://…`, each if its feature is on.
pub fn open_backend(address: &str) -> Result<Arc<dyn Backend>, OpenStorageError> {
    let scheme = address.split(':').next().unwrap_or_default();
    match scheme {
        "memory" if address == "memory:" => Ok(Arc::new(MemoryBackend::new())),
        #[cfg(feature = "sqlite")]
        "sqlite" if address.len() > "sqlite:".len() => {
            let path = &address["sqlite:".len()..];
            let opened = bareboat_sqlite::Sqlite::open(path);
            let opened = opened.map_err(|error| OpenStorageError::Engine(error.into()))?;
            Ok(Arc::new(opened))
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let opened = bareboat_sql::Postgres::open(address);
            let opened = opened.map_err(|error| OpenStorageError::Engine(error.into()))?;
            Ok(Arc::new(opened))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            let opened = bareboat_sql::Mysql::open(address);
            let opened = opened.map_err(|error| OpenStorageError::Engine(error.into()))?;
            Ok(Arc::new(opened))
        }
        #[cfg(feature = "etcd")]
        "etcd" => {
            let opened = bareboat_etcd::Etcd::open(address);
            let opened = opened.map_err(|error| OpenStorageError::Engine(error.into()))?;
            Ok(Arc::new(opened))
        }
        // Only the scheme: the rest may contain a password.
        other => Err(OpenStorageError::Unknown(format!("{other}:"))),
    }
}

/// Opens the engine at an address for backups and checks. A server may have the file of `sqlite:PATH` open at the same time.
pub fn open_backend_to_read(address: &str) -> Result<Arc<dyn Backend>, OpenStorageError> {
    match address.split_once(':') {
        #[cfg(feature = "sqlite")]
        Some(("sqlite", path)) if !path.is_empty() => {
            let opened = bareboat_sqlite::SqliteReader::open(path);
            let opened = opened.map_err(|error| OpenStorageError::Engine(error.into()))?;
            Ok(Arc::new(opened))
        }
        _ => open_backend(address),
    }
}

/// Opens the store at an address, see [`open_backend`].
pub fn open_storage(address: &str, options: StoreOptions) -> Result<Store, OpenStorageError> {
    Store::open(open_backend(address)?, options).map_err(OpenStorageError::Content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_choose_the_engine() {
        let store = open_storage("memory:", StoreOptions::default()).expect("memory opens");
        assert!(!store.is_shared());
        for bad in ["", "state.db", "memory:x", "oracle://u:secret@db/x"] {
            let error = open_backend(bad).err().expect("not an address").to_string();
            assert!(
                error.contains("memory:") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
