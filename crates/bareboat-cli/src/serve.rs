//! `bareboat serve`: the builder with every battery, on a socket, until somebody says stop.

use crate::account_keys;
use crate::args::ServeFlags;
use crate::certificates::{self, Certificates};
use crate::config::Config;
use crate::kubeconfig;
use anyhow::{Context, Result, bail};
use bareboat::prelude::*;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat::storage::StoreOptions;
use std::fs;
use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs until the server ends.
pub(crate) fn run(flags: ServeFlags, started: Instant) -> Result<()> {
    let config = Config::assemble(flags)?;
    start_log(&config)?;
    allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let outcome = runtime.block_on(serve(&config, started));
    // Whatever still hangs has had its time.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome
}

/// Raises the limit of open files as far as the process may; every connection is one.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::debug!(%error, "the limit of open files cannot be raised");
    }
}

fn start_log(config: &Config) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log).with_context(|| {
        format!(
            "log: {} is no filter like info or bareboat_server=debug",
            config.log
        )
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    Ok(())
}

async fn serve(config: &Config, started: Instant) -> Result<()> {
    // From the first moment on: a signal during the start ends the server as well as any other.
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be waited for")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be waited for")?;
    private_directory(&config.data_dir).with_context(|| {
        format!(
            "the data directory {} cannot be made",
            config.data_dir.display()
        )
    })?;
    let _alone = lock(&config.data_dir)?;
    let store = open_store(config)?;
    let certificates = certificates::ensure(&config.data_dir, &config.san, config.bind.ip())?;
    let (chain, client_ca, tls) = tls(config, &certificates)?;
    let settings = Settings::default()
        .profile(config.profile)
        .services(config.services.clone());
    let mut builder = Server::builder()
        .storage(store.clone())
        .control_plane_with(&settings)
        .client_identity(ClientIdentity::from_pem(
            &certificates.front_proxy.0,
            &certificates.front_proxy.1,
        )?)
        .max_in_flight(config.max_in_flight.0, config.max_in_flight.1);
    let connections = &config.connections;
    if let Some(total) = connections.total {
        builder = builder.max_connections(total);
    }
    if let Some(total) = connections.unauthenticated {
        builder = builder.max_unauthenticated_connections(total);
    }
    if let Some(each) = connections.unauthenticated_per_address {
        builder = builder.max_unauthenticated_connections_per_address(each);
    }
    if let Some(limit) = connections.stalled_client_timeout {
        builder = builder.stalled_client_timeout(limit);
    }
    if let Some(clients) = tls.client_certificates() {
        builder = builder.authenticator(clients);
    }
    builder = service_accounts(config)?.install(builder);
    if let Some(path) = &config.token_file {
        builder = builder.authenticator(tokens(path)?);
    }
    let written = Arc::new(AtomicBool::new(false));
    let check = written.clone();
    let server = builder
        .ready_check("kubeconfig", move || match check.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("the admin kubeconfig is not written yet".to_owned()),
        })
        .build()?;
    let mut options = bareboat::controllers::Options {
        root_ca: Some(certificates.ca.clone()),
        kubernetes: Some(settings.kubernetes(config.bind.port())),
        front_proxy: Some(bareboat::controllers::FrontProxy {
            client_ca,
            ca: certificates.front_proxy_ca.clone(),
            names: vec![certificates::FRONT_PROXY.to_owned()],
        }),
        ..Default::default()
    };
    for name in &config.disabled {
        options.switch_off(name)?;
    }
    let mut controllers = bareboat::control_plane::start_with(&server, options).await;
    let open = async {
        let listening = server.listen(config.bind, Some(tls)).await;
        let address =
            listening.context("nobody could reach the server; name another address with --bind")?;
        controllers.listens(advertised(address));
        let kubeconfig = config.data_dir.join("admin.kubeconfig");
        let text = kubeconfig::admin(reachable(address), &chain, &certificates);
        kubeconfig::save(&kubeconfig, &text);
        written.store(true, Ordering::Relaxed);
        if !config.quiet {
            greet(config, address, &kubeconfig, started);
        }
        wait(&store, &mut terminate, &mut interrupt).await
    };
    // Whatever ended it, the controllers are not left in the middle of a write.
    let ended = open.await;
    controllers.stop().await;
    server.shut_down().await;
    ended
}

/// Keeps other servers out of the directory: they would write certificates and a kubeconfig of their own there, even those
/// that keep no objects in it. The kernel gives it back however the process ends.
pub(crate) fn lock(directory: &Path) -> Result<fs::File> {
    let path = directory.join("lock");
    let unusable = || format!("{} cannot be taken", path.display());
    let file = private_file(&path).with_context(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => bail!(
            "the data directory {} is in use by another server; choose another with --data-dir",
            directory.display()
        ),
        Err(fs::TryLockError::Error(error)) => Err(error).with_context(unusable),
    }
}

fn open_store(config: &Config) -> Result<Store> {
    let options = StoreOptions {
        retain_for: config.retain_for,
        retain_revisions: config.retain_revisions,
        retain_bytes: config.retain_bytes,
        ..StoreOptions::default()
    };
    if config.in_memory {
        return Ok(Store::open(Arc::new(MemoryBackend::new()), options)?);
    }
    let path = config.data_dir.join("state.db");
    private_file(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    open_sqlite(&path, options)
        .with_context(|| format!("the data in {} cannot be used", config.data_dir.display()))
}

/// Makes a directory that is its owner's alone; one that is there keeps its permissions.
fn private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Makes an empty file that is its owner's alone. SQLite gives the files beside the one the store grows in the same
/// permissions, and secrets are in all of them.
fn private_file(path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The chain to serve with, the CAs of clients, and all that goes with them.
fn tls(config: &Config, certificates: &Certificates) -> Result<(String, String, Tls)> {
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let (chain, key) = match &config.tls {
        Some((chain, key)) => (read(chain)?, read(key)?),
        None => certificates.server.clone(),
    };
    let client_ca = match &config.client_ca {
        // Our own CA stays trusted: the admin kubeconfig is signed by it.
        Some(path) => format!("{}\n{}", read(path)?, certificates.ca),
        None => certificates.ca.clone(),
    };
    let tls = Tls::from_pem(&chain, &key, Some(&client_ca))?;
    Ok((chain, client_ca, tls))
}

/// Tokens of service accounts, as the settings want them.
fn service_accounts(config: &Config) -> Result<ServiceAccounts> {
    let wanted = &config.accounts;
    let keys = account_keys::ensure(
        &config.data_dir,
        wanted.signing_key.as_deref(),
        &wanted.keys,
    )?;
    let mut settings = TokenSettings::default();
    if !wanted.issuers.is_empty() {
        settings.issuers = wanted.issuers.clone();
    }
    settings.audiences = wanted.audiences.clone();
    settings.longest = wanted.longest;
    ServiceAccounts::new(&keys.signing, &keys.others, settings)
        .context("the keys of service account tokens cannot be used")
}

fn tokens(path: &Path) -> Result<StaticTokens> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("the token file {} cannot be read", path.display()))?;
    let tokens = StaticTokens::parse(&text)?;
    if tokens.is_empty() {
        tracing::warn!(file = %path.display(), "the token file holds no token");
    }
    Ok(tokens)
}

/// The address others reach: this machine's own where the server listens on all of them.
fn advertised(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let (any, somewhere) = match address.ip() {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    // A datagram socket that is connected knows which address it would send from, and sends nothing.
    let own = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(somewhere)?;
        socket.local_addr()
    });
    SocketAddr::new(own.map_or(address.ip(), |own| own.ip()), address.port())
}

/// The address a client on this machine reaches.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16]),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

fn greet(config: &Config, address: SocketAddr, kubeconfig: &Path, started: Instant) {
    let kubeconfig = fs::canonicalize(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let data = if config.in_memory {
        "in memory".to_owned()
    } else {
        config.data_dir.display().to_string()
    };
    println!(
        "Bareboat {} serves on https://{} after {} ms",
        env!("CARGO_PKG_VERSION"),
        reachable(address),
        started.elapsed().as_millis()
    );
    println!("  data        {data}");
    println!("  kubeconfig  {}", kubeconfig.display());
    println!();
    println!("Next:");
    println!("  export KUBECONFIG={}", kubeconfig.display());
    println!("  kubectl get namespaces");
}

/// Waits for a signal, or for the store to give up.
async fn wait(store: &Store, terminate: &mut Signal, interrupt: &mut Signal) -> Result<()> {
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        why = store.poisoned() => bail!("the store failed and cannot go on: {why}; start again to recover from the log"),
    }
}
