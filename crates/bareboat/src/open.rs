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
    /// The file of the store does not exist, and was not to be created.
    #[error("there is no {0}")]
    Missing(String),
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
/// A store that does not exist is created.
pub fn open_backend(address: &str) -> Result<Arc<dyn Backend>, OpenStorageError> {
    open(address, true)
}

/// Opens the engine at an address, see [`open_backend`], if its store exists.
pub fn open_existing_backend(address: &str) -> Result<Arc<dyn Backend>, OpenStorageError> {
    open(address, false)
}

/// Opens the engine at an address for backups and checks. A server may have the file of `sqlite:PATH` open at the same time. A
/// store that does not exist is an error.
pub fn open_backend_to_read(address: &str) -> Result<Arc<dyn Backend>, OpenStorageError> {
    match address.split_once(':') {
        #[cfg(feature = "sqlite")]
        Some(("sqlite", path)) if !path.is_empty() => {
            opened(bareboat_sqlite::SqliteReader::open(path))
        }
        _ => open(address, false),
    }
}

fn open(address: &str, create: bool) -> Result<Arc<dyn Backend>, OpenStorageError> {
    let scheme = address.split(':').next().unwrap_or_default();
    let _ = create;
    match scheme {
        "memory" if address == "memory:" => Ok(Arc::new(MemoryBackend::new())),
        #[cfg(feature = "sqlite")]
        "sqlite" if address.len() > "sqlite:".len() => {
            let path = std::path::Path::new(&address["sqlite:".len()..]);
            match create || path.exists() {
                true => opened(bareboat_sqlite::Sqlite::open(path)),
                false => Err(OpenStorageError::Missing(path.display().to_string())),
            }
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => opened(match create {
            true => bareboat_sql::Postgres::open(address),
            false => bareboat_sql::Postgres::open_existing(address),
        }),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => opened(match create {
            true => bareboat_sql::Mysql::open(address),
            false => bareboat_sql::Mysql::open_existing(address),
        }),
        #[cfg(feature = "etcd")]
        "etcd" => opened(match create {
            true => bareboat_etcd::Etcd::open(address),
            false => bareboat_etcd::Etcd::open_existing(address),
        }),
        // Only the scheme: the rest may contain a password.
        other => Err(OpenStorageError::Unknown(format!("{other}:"))),
    }
}

#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "sqlite"
))]
fn opened<B: Backend, E: Into<BoxError>>(
    opened: Result<B, E>,
) -> Result<Arc<dyn Backend>, OpenStorageError> {
    match opened {
        Ok(engine) => Ok(Arc::new(engine)),
        Err(error) => Err(OpenStorageError::Engine(error.into())),
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
