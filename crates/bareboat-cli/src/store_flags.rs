//! Which store a command works on: the same flags, variables and keys as those of `bareboat serve`.

use anyhow::{Context as _, Result, bail};
use bareboat::storage::Backend;
use bareboat::storage::backup::Progress;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Flags that name a store.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct StoreFlags {
    /// Read storage and dataDir from this YAML file, which is the one of bareboat serve
    #[arg(long, value_name = "FILE", env = "BAREBOAT_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the server
    #[arg(
        long,
        value_name = "DIR",
        env = "BAREBOAT_DATA_DIR",
        default_value = "./bareboat-data"
    )]
    pub(crate) data_dir: PathBuf,

    /// The store, as for bareboat serve: sqlite:PATH, postgres://…, mysql://… or etcd://… [default: state.db in the data directory]
    #[arg(
        long,
        value_name = "URL",
        env = "BAREBOAT_STORAGE",
        hide_env_values = true
    )]
    pub(crate) storage: Option<String>,
}

/// Where a store is.
pub(crate) enum Place {
    /// A file of SQLite.
    File(PathBuf),
    /// A database or a cluster, which several servers may share.
    Shared(String),
}

impl Place {
    /// Reads an address.
    pub(crate) fn of(address: &str) -> Result<Place> {
        match address.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Place::File(path.into())),
            Some(("memory", _)) => {
                bail!("memory: is in the memory of one server and cannot be reached from outside")
            }
            _ => Ok(Place::Shared(address.to_owned())),
        }
    }

    /// Opens the store to change it.
    pub(crate) fn open(&self) -> Result<Arc<dyn Backend>> {
        let opened = match self {
            // Opening would make a new file.
            Place::File(path) if !path.exists() => bail!("there is no {}", path.display()),
            Place::File(path) => bareboat::open_backend(&format!("sqlite:{}", path.display())),
            Place::Shared(address) => bareboat::open_backend(address),
        };
        opened.with_context(|| format!("{} cannot be used", self.name()))
    }

    /// Opens the store to read it; a server may use it at the same time.
    pub(crate) fn open_to_read(&self) -> Result<Arc<dyn Backend>> {
        let opened = match self {
            Place::File(path) if !path.exists() => bail!(
                "there is no {}; name the store with --storage or --data-dir",
                path.display()
            ),
            Place::File(path) => {
                bareboat::open_backend_to_read(&format!("sqlite:{}", path.display()))
            }
            Place::Shared(address) => bareboat::open_backend_to_read(address),
        };
        opened.with_context(|| format!("{} cannot be used", self.name()))
    }

    /// The name of the store in messages, without what may be a password.
    pub(crate) fn name(&self) -> String {
        match self {
            Place::File(path) => path.display().to_string(),
            Place::Shared(address) => without_password(address),
        }
    }
}

/// An address without what may be a password.
pub(crate) fn without_password(address: &str) -> String {
    let scheme = address.split(':').next().unwrap_or_default();
    match address.rsplit_once('@') {
        Some((_, rest)) => format!("{scheme}://{}", rest.split('?').next().unwrap_or(rest)),
        None => address.split('?').next().unwrap_or(address).to_owned(),
    }
}

impl StoreFlags {
    /// Where the store is.
    pub(crate) fn place(&self) -> Result<Place> {
        match &self.storage {
            Some(address) => Place::of(address),
            None => Ok(Place::File(self.data_dir.join("state.db"))),
        }
    }
}

/// Returns a function that prints progress to standard error, at most once a second.
pub(crate) fn progress(quiet: bool) -> impl FnMut(Progress) {
    const EVERY: Duration = Duration::from_secs(1);
    let mut last = Instant::now();
    move |so_far| {
        if !quiet && last.elapsed() >= EVERY {
            last = Instant::now();
            let mib = so_far.bytes >> 20;
            eprintln!("{} records, {mib} MiB", so_far.records);
        }
    }
}
