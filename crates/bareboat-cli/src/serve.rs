//! `bareboat serve`: builds a server with all features and serves on a socket until a signal.

use crate::account_keys::KeyFiles;
use crate::aggregation;
use crate::audit;
use crate::certificates::{self, Certificates};
use crate::encryption;
use crate::fleet;
use crate::identity::Identity;
use crate::kubeconfig;
use crate::log;
use crate::memory;
use crate::reloads::{self, DirectoryAuthority, Reloads};
use crate::settings::Settings;
use crate::shared_identity;
use anyhow::{Context, Result, bail};
use bareboat::admission::Webhooks;
use bareboat::control_plane::Settings as ControlPlaneSettings;
use bareboat::encryption::EncryptedBackend;
use bareboat::prelude::*;
use bareboat::server::AdmissionConfiguration;
use bareboat::server::reload::ReloadMetrics;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat::sqlite::Sqlite;
use bareboat::storage::{Backend, StoreOptions};
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs until the server ends.
pub(crate) fn run(settings: &Settings, started: Instant) -> Result<()> {
    log::start(settings)?;
    allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_park(memory::before_sleep)
        .build()
        .context("the runtime cannot be started")?;
    runtime.spawn(memory::release_after_peaks());
    let outcome = runtime.block_on(serve(settings, started));
    // Tasks that still run are dropped.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

/// Raises the limit of open files as far as the process may; every connection takes one.
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

async fn serve(settings: &Settings, started: Instant) -> Result<()> {
    // Installed first, so that a signal during the start also ends the server.
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    private_directory(&settings.store.data_dir).with_context(|| {
        format!(
            "the data directory {} cannot be made",
            settings.store.data_dir.display()
        )
    })?;
    let _alone = lock(&settings.store.data_dir)?;
    let (store, encrypted) = open_store(settings)?;
    let certificates = certificates::ensure(
        &settings.store.data_dir,
        &settings.connections.certificate_names(),
        settings.bind.ip(),
    )?;
    let (chain, client_ca, tls) = tls(settings, &certificates)?;
    let kubelets = settings.kubelets.settings()?;
    let kubelet_identity = kubelets.identity.clone();
    let admission = match &settings.admission_control_config_file {
        Some(path) => AdmissionConfiguration::read(path)?,
        None => AdmissionConfiguration::default(),
    };
    let control_plane = ControlPlaneSettings::default()
        .profile(settings.profile)
        .webhooks(Webhooks::of(&admission)?)
        .pod_security(bareboat::admission::pod_security(&admission)?)
        .kubelets(kubelets)
        .services(settings.services.ranges()?)
        .endpoints_only(settings.aggregation.enable_aggregator_routing)
        .without_admission(
            settings
                .disable_admission_plugins
                .iter()
                .map(String::as_str),
        )?;
    let (front_proxy, published) = aggregation::front_proxy(settings, &certificates, &client_ca)?;
    let authority = Arc::new(DirectoryAuthority::read(&settings.store.data_dir)?);
    let files = ReloadMetrics::files();
    let mut reloads = Reloads::new(&files);
    let mut builder = Server::builder()
        .storage(store.clone())
        .control_plane_with(&control_plane)
        .client_identity(front_proxy.clone())
        .collector(files.clone())
        .slow_request_threshold(settings.logging.slow())
        .max_in_flight(
            settings.connections.max_reads_in_flight,
            settings.connections.max_writes_in_flight,
        );
    builder = settings.outbound.install(builder);
    let connections = &settings.connections;
    if !connections.enable_priority_and_fairness {
        builder = builder.without_flow_control();
    }
    if let Some(total) = connections.max_connections {
        builder = builder.max_connections(total);
    }
    if let Some(total) = connections.max_unauthenticated_connections {
        builder = builder.max_unauthenticated_connections(total);
    }
    if let Some(each) = connections.max_unauthenticated_connections_per_address {
        builder = builder.max_unauthenticated_connections_per_address(each);
    }
    if let Some(limit) = connections.stalled_client_timeout {
        builder = builder.stalled_client_timeout(limit);
    }
    let keys = KeyFiles::new(
        &settings.store.data_dir,
        settings
            .accounts
            .service_account_signing_key_file
            .as_deref(),
        &settings.accounts.service_account_key_file,
    );
    let accounts = service_accounts(settings, &keys)?;
    let own_keys = shared_identity::Keys {
        ca: &certificates.ca,
        client_cas: &client_ca,
        front_proxy_ca: &published.ca,
        accounts: &accounts,
    };
    shared_identity::check(&store, settings, own_keys).await?;
    let _keys = shared_identity::follow(&store, settings, &published.ca, &accounts);
    let mut identity = Identity::new(&files);
    let has_peers = settings.fleet.fleet && store.is_shared();
    if has_peers {
        builder = fleet::peers::trust(builder, settings, &tls, &client_ca, &published)?;
    }
    builder = identity.install(builder, settings, &tls, &client_ca, &accounts)?;
    if settings.storage.encryption_provider_config.is_some() {
        let backend = encrypted.clone();
        builder = builder.ready_check("kms-providers", move || encryption::health(&backend));
    }
    let encryption_metrics = ReloadMetrics::controller("encryption");
    if let Some(path) = &settings.storage.encryption_provider_config {
        let rewrites = encryption::Rewrites::new(&encrypted, &store);
        builder = builder
            .collector(encryption_metrics.clone())
            .page(encryption::PATH, rewrites.page());
        reloads.encryption(&encrypted, path, &encryption_metrics);
    }
    let mut _policy = None;
    if let Some(auditing) = audit::prepare(&settings.audit)? {
        builder = builder.audit(auditing.audit.clone());
        builder = builder.collector(auditing.metrics.clone());
        _policy = Some(auditing.follow());
    }
    #[cfg(feature = "otlp")]
    if let Some(wanted) = settings.tracing.exporter()? {
        let otlp = Arc::new(bareboat::server::otlp::Otlp::new(&wanted)?);
        builder = builder.collector(otlp.collector()).spans(otlp);
    }
    let fleet = fleet::open(settings)?;
    if let Some(fleet) = &fleet {
        builder = fleet.install(builder)?;
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
        kubernetes: Some(control_plane.kubernetes(settings.bind.port())),
        front_proxy: Some(published),
        hostname: Some(aggregation::hostname()),
        certificate_signing: Some(bareboat::controllers::CertificateSigning {
            authority: authority.clone(),
            longest: settings.accounts.cluster_signing_duration,
        }),
        secret_tokens: Some(Arc::new(accounts.clone())),
        ..Default::default()
    };
    for name in &settings.disable_controller {
        options.switch_off(name)?;
    }
    let mut controllers = bareboat::control_plane::start_with(&server, options).await;
    if let Some(fleet) = &fleet {
        let peers = || fleet::peers::peers(settings, &controllers, &certificates.ca, &chain);
        let peers = has_peers.then(peers).transpose()?;
        fleet.start(&server, controllers.leads(), peers).await;
    }
    reloads.serving(&tls, settings);
    reloads.client_ca(&tls, settings);
    reloads.front_proxy(&front_proxy, settings);
    reloads.kubelet_client(kubelet_identity.as_ref(), settings);
    reloads.account_keys(&accounts, keys);
    reloads.authority(&authority, settings);
    let open = async {
        let listening = server.listen(settings.bind, Some(tls.clone())).await;
        let address =
            listening.context("the server cannot listen; choose another address with --bind")?;
        controllers.listens(advertised(settings, address));
        if let Some(fleet) = &fleet {
            fleet.listens(advertised(settings, address), &certificates.ca);
        }
        let kubeconfig = settings.store.data_dir.join("admin.kubeconfig");
        let text = kubeconfig::admin(reachable(address), &chain, &certificates);
        kubeconfig::save(&kubeconfig, &text);
        let (path, given) = (kubeconfig.clone(), settings.connections.tls_cert.is_some());
        reloads.renew(reloads::RENEW_EVERY, settings, move |certificates| {
            // Its own certificate also counts if it could not be saved.
            let served = match given {
                true => chain.as_str(),
                false => {
                    let (chain, key) = &certificates.server;
                    if let Err(error) = tls.replace_certificate(chain, key) {
                        tracing::error!(%error, "the renewed certificate cannot be used");
                    }
                    chain
                }
            };
            let text = kubeconfig::admin(reachable(address), served, certificates);
            kubeconfig::save(&path, &text);
        });
        written.store(true, Ordering::Relaxed);
        if !settings.quiet {
            greet(settings, address, &kubeconfig, started);
        }
        wait(&store, &mut terminate, &mut interrupt).await
    };
    // Lets the controllers finish their writes, whatever ended the server.
    let ended = open.await;
    drop(identity);
    if let Some(fleet) = &fleet {
        fleet.stop().await;
    }
    controllers.stop().await;
    server.shut_down().await;
    ended
}

/// Keeps other servers out of the directory: they would write their own certificates and kubeconfig there, even with
/// `--in-memory`. The kernel releases the lock however the process ends.
pub(crate) fn lock(directory: &Path) -> Result<fs::File> {
    let path = directory.join("lock");
    let unusable = || format!("{} cannot be locked", path.display());
    let file = private_file(&path).with_context(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => bail!(
            "the data directory {} is in use by another server; stop it, or choose another with --data-dir",
            directory.display()
        ),
        Err(fs::TryLockError::Error(error)) => Err(error).with_context(unusable),
    }
}

/// Opens the store, and what encrypts it.
fn open_store(settings: &Settings) -> Result<(Store, Arc<EncryptedBackend>)> {
    let options = StoreOptions {
        retain_for: settings.storage.retain_for,
        retain_revisions: settings.storage.retain_revisions,
        retain_bytes: settings.storage.retain_bytes,
        ..StoreOptions::default()
    };
    let rules = encryption::rules(settings.storage.encryption_provider_config.as_deref())?;
    let unusable = || match &settings.store.storage {
        Some(_) => "the store at --storage cannot be used".to_owned(),
        None => format!(
            "the data in {} cannot be used",
            settings.store.data_dir.display()
        ),
    };
    let engine: Arc<dyn Backend> = if let Some(address) = &settings.store.storage {
        if settings.storage.in_memory {
            bail!("--storage and --in-memory exclude each other");
        }
        bareboat::open_backend(address).with_context(unusable)?
    } else if settings.storage.in_memory {
        Arc::new(MemoryBackend::new())
    } else {
        let path = settings.store.data_dir.join("state.db");
        private_file(&path).with_context(|| format!("{} cannot be written", path.display()))?;
        Arc::new(Sqlite::open(&path).with_context(unusable)?)
    };
    // Without rules it only notices values that are encrypted.
    let backend = Arc::new(EncryptedBackend::new(engine, rules));
    let store = Store::open(backend.clone(), options).with_context(unusable)?;
    Ok((store, backend))
}

/// Creates a directory that only its owner may access; an existing one keeps its permissions.
pub(crate) fn private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Creates an empty file that only its owner may access. SQLite gives its additional files the same permissions, and
/// all of them contain secrets.
pub(crate) fn private_file(path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// Returns the serving certificate chain and the TLS configuration with the client CAs.
fn tls(settings: &Settings, certificates: &Certificates) -> Result<(String, String, Tls)> {
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let (chain, key) = match settings.connections.tls_cert {
        Some(_) => {
            let [chain, key] = reloads::serving_files(settings);
            (read(&chain)?, read(&key)?)
        }
        None => certificates.server.clone(),
    };
    let client_cas = reloads::client_ca_files(settings);
    let texts: Result<Vec<String>> = client_cas.iter().map(|path| read(path)).collect();
    let client_ca = reloads::joined_cas(&client_cas, &texts?).map_err(anyhow::Error::msg)?;
    let tls = Tls::from_pem(&chain, &key, Some(&client_ca)).with_context(|| {
        let [chain, key] = reloads::serving_files(settings).map(|path| path.display().to_string());
        format!("the certificate {chain} with the key {key} and the client CAs cannot be used")
    })?;
    Ok((chain, client_ca, tls))
}

/// Returns the configuration of service account tokens.
fn service_accounts(settings: &Settings, keys: &KeyFiles) -> Result<ServiceAccounts> {
    let wanted = &settings.accounts;
    let read = keys.read()?;
    let mut tokens = TokenSettings::default();
    if !wanted.service_account_issuer.is_empty() {
        tokens.issuers = wanted.service_account_issuer.clone();
    }
    tokens.audiences = wanted.api_audiences.clone();
    tokens.longest = wanted.service_account_max_token_expiration;
    ServiceAccounts::new(&read.signing, &read.others, tokens).with_context(|| {
        let files: Vec<String> = keys
            .all()
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        format!(
            "the keys of service account tokens in {} cannot be used; put them back from a backup",
            files.join(", ")
        )
    })
}

/// Returns the address for other machines: the one of the settings, or, if the server listens on all addresses, this
/// machine's own.
fn advertised(settings: &Settings, address: SocketAddr) -> SocketAddr {
    if let Some(ip) = settings.connections.advertise_address {
        return SocketAddr::new(ip, address.port());
    }
    if !address.ip().is_unspecified() {
        return address;
    }
    let (any, somewhere) = match address.ip() {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    // A connected datagram socket knows its source address without sending anything.
    let own = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(somewhere)?;
        socket.local_addr()
    });
    SocketAddr::new(own.map_or(address.ip(), |own| own.ip()), address.port())
}

/// Returns the address for clients on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16]),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

fn greet(settings: &Settings, address: SocketAddr, kubeconfig: &Path, started: Instant) {
    let kubeconfig = fs::canonicalize(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let data = if let Some(address) = &settings.store.storage {
        crate::store_flags::without_password(address)
    } else if settings.storage.in_memory {
        "in memory".to_owned()
    } else {
        settings.store.data_dir.display().to_string()
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

/// Waits for a signal, or for a failure of the store.
async fn wait(store: &Store, terminate: &mut Signal, interrupt: &mut Signal) -> Result<()> {
    // Pages that were loaded or written during the start: objects are in the store's own memory, too.
    store.release_memory();
    // This thread started the server and only waits from now on. What it freed would stay with it.
    memory::release_of_this_thread();
    // Controllers run for the first time after the start.
    let after_start = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        bareboat::release_code();
        std::future::pending().await
    };
    tokio::select! {
        () = after_start => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        why = store.poisoned() => bail!("the store failed: {why}; restart the server to recover from the log"),
    }
}
