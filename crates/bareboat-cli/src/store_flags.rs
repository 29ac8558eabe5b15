//! Which store a command works on: the flags, variables and keys that `bareboat serve` and other commands share.

use anyhow::{Context as _, Result, bail};
use bareboat::storage::Backend;
use bareboat::storage::backup::Progress;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Flags that name a store: those of `bareboat serve`, and of all commands that work on its store.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct StoreFlags {
    /// Read settings from this YAML file, which is that of bareboat serve (key: the flag's name in camelCase, e.g. dataDir)
    #[arg(long, value_name = "FILE", env = "BAREBOAT_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The directory of a server: data, certificates and the admin kubeconfig
    #[arg(
        long,
        value_name = "DIR",
        env = "BAREBOAT_DATA_DIR",
        default_value = "./bareboat-data"
    )]
    pub(crate) data_dir: PathBuf,

    /// The store: sqlite:PATH, memory:, or one that several servers may share: postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or etcd://HOST:PORT,HOST:PORT/PREFIX [default: state.db in the data directory]
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

    /// Opens the store to change it, and creates it if it does not exist.
    pub(crate) fn open_or_create(&self) -> Result<Arc<dyn Backend>> {
        let opened = bareboat::open_backend(&self.address());
        opened.with_context(|| format!("{} cannot be used", self.name()))
    }

    fn address(&self) -> String {
        match self {
            Place::File(path) => format!("sqlite:{}", path.display()),
            Place::Shared(address) => address.clone(),
        }
    }

    /// Opens an existing store to change it.
    pub(crate) fn open(&self) -> Result<Arc<dyn Backend>> {
        let opened = bareboat::open_existing_backend(&self.address());
        opened.with_context(|| format!("{} cannot be used", self.name()))
    }

    /// Opens the store to read it; a server may use it at the same time.
    pub(crate) fn open_to_read(&self) -> Result<Arc<dyn Backend>> {
        if let Place::File(path) = self
            && !path.exists()
        {
            bail!(
                "there is no {}; name the store with --storage or --data-dir",
                path.display()
            );
        }
        let opened = bareboat::open_backend_to_read(&self.address());
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

/// Warns on standard error if the command line has an address with a password: other users of the machine see it in the
/// list of processes.
pub(crate) fn warn_of_password(arguments: impl Iterator<Item = String>) {
    if arguments
        .into_iter()
        .any(|argument| has_password(&argument))
    {
        eprintln!(
            "warning: the command line has the address of a store with a password, which other users of this machine see in \
             the list of processes: use password-file= in the address, PGPASSWORD or MYSQL_PWD in the environment, or \
             put the address into BAREBOAT_STORAGE or a file for --config"
        );
    }
}

/// Returns whether `argument` is an address of a store, or a flag with one, that contains a password.
fn has_password(argument: &str) -> bool {
    let address = match argument.split_once('=') {
        Some((flag, address)) if flag.starts_with("--") => address,
        _ => argument,
    };
    let Some((scheme, rest)) = address.split_once("://") else {
        return false;
    };
    if !["postgres", "postgresql", "mysql", "mariadb", "etcd"].contains(&scheme) {
        return false;
    }
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may contain a slash or an @ that is not escaped.
    let named = place
        .rsplit_once('@')
        .and_then(|(user, _)| user.split_once(':'));
    let mut parameters = parameters
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    named.is_some_and(|(_, password)| !password.is_empty())
        || parameters.any(|(name, value)| name == "password" && !value.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_noticed() {
        for argument in [
            "postgres://user:hunter2@h/db",
            "--storage=mysql://user:hunter2@h:3306/db?tls=off",
            "postgresql://h/db?user=u&password=hunter2",
            "--from=postgres://u:hun/ter@2@h/db",
        ] {
            assert!(has_password(argument), "{argument}");
        }
        for argument in [
            "serve",
            "--storage",
            "postgres://user@h:5432/db?password-file=/etc/password",
            "mysql://user:@h/db",
            "etcd://a:2379,b:2379/prefix",
            "sqlite:/var/a:b@c",
            "--server=https://u:p@h",
        ] {
            assert!(!has_password(argument), "{argument}");
        }
    }
}
