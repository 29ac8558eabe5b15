//! The settings of a server: flags over environment over file over defaults.

use crate::args::ServeFlags;
use anyhow::{Context, Result, bail};
use bareboat::api::Value;
use bareboat::api::value::from_value;
use bareboat::builtin::services::ServiceRanges;
use bareboat::control_plane::Profile;
use bareboat::controllers::Options;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration file: the flags' names in camelCase.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    data_dir: Option<PathBuf>,
    bind: Option<String>,
    san: Vec<String>,
    in_memory: Option<bool>,
    profile: Option<String>,
    disable_controller: Vec<String>,
    token_file: Option<PathBuf>,
    service_account_issuer: Vec<String>,
    service_account_signing_key_file: Option<PathBuf>,
    service_account_key_file: Vec<PathBuf>,
    service_account_max_token_expiration: Option<String>,
    api_audiences: Vec<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
    service_cluster_ip_range: Option<String>,
    service_node_port_range: Option<String>,
    retain_for: Option<String>,
    retain_revisions: Option<u64>,
    retain_bytes: Option<Value>,
    max_reads_in_flight: Option<usize>,
    max_writes_in_flight: Option<usize>,
    max_connections: Option<usize>,
    max_unauthenticated_connections: Option<usize>,
    max_unauthenticated_connections_per_address: Option<usize>,
    stalled_client_timeout: Option<String>,
    log: Option<String>,
    quiet: Option<bool>,
}

/// All settings, none missing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) bind: SocketAddr,
    pub(crate) san: Vec<String>,
    pub(crate) in_memory: bool,
    pub(crate) profile: Profile,
    /// Names of controllers, all of which exist.
    pub(crate) disabled: Vec<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) accounts: AccountConfig,
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) client_ca: Option<PathBuf>,
    pub(crate) services: ServiceRanges,
    pub(crate) retain_for: Duration,
    pub(crate) retain_revisions: u64,
    pub(crate) retain_bytes: u64,
    pub(crate) max_in_flight: (usize, usize),
    pub(crate) connections: Connections,
    pub(crate) log: String,
    pub(crate) quiet: bool,
}

/// How tokens of service accounts are made and checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AccountConfig {
    pub(crate) issuers: Vec<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) signing_key: Option<PathBuf>,
    pub(crate) keys: Vec<PathBuf>,
    pub(crate) longest: Duration,
}

/// The settings about connections; what is not set is the server's choice.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Connections {
    pub(crate) total: Option<usize>,
    pub(crate) unauthenticated: Option<usize>,
    pub(crate) unauthenticated_per_address: Option<usize>,
    pub(crate) stalled_client_timeout: Option<Duration>,
}

impl Config {
    /// Puts the settings together.
    pub(crate) fn assemble(flags: ServeFlags) -> Result<Config> {
        let file = match &flags.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let bind = match (flags.bind, &file.bind) {
            (Some(address), _) => address,
            (None, Some(text)) => text
                .parse()
                .with_context(|| format!("bind: {text} is no address like 127.0.0.1:6443"))?,
            (None, None) => SocketAddr::from(([127, 0, 0, 1], 6443)),
        };
        let tls = match (
            flags.tls_cert.or(file.tls_cert),
            flags.tls_key.or(file.tls_key),
        ) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => bail!(
                "a certificate and its key belong together: give both --tls-cert and --tls-key, or neither"
            ),
        };
        let retain_for = match flags.retain_for.or(file.retain_for) {
            None => Duration::from_secs(600),
            Some(text) => duration("retain-for", &text)?,
        };
        let longest = flags
            .service_account_max_token_expiration
            .or(file.service_account_max_token_expiration);
        let accounts = AccountConfig {
            issuers: either(flags.service_account_issuer, file.service_account_issuer),
            audiences: either(flags.api_audiences, file.api_audiences),
            signing_key: flags
                .service_account_signing_key_file
                .or(file.service_account_signing_key_file),
            keys: either(
                flags.service_account_key_file,
                file.service_account_key_file,
            ),
            longest: duration(
                "service-account-max-token-expiration",
                longest.as_deref().unwrap_or("8760h"),
            )?,
        };
        let stalled = (flags.stalled_client_timeout).or(file.stalled_client_timeout);
        let connections = Connections {
            total: flags.max_connections.or(file.max_connections),
            unauthenticated: (flags.max_unauthenticated_connections)
                .or(file.max_unauthenticated_connections),
            unauthenticated_per_address: (flags.max_unauthenticated_connections_per_address)
                .or(file.max_unauthenticated_connections_per_address),
            stalled_client_timeout: stalled
                .map(|text| duration("stalled-client-timeout", &text))
                .transpose()?,
        };
        // In the file it may be a number or a text.
        let retain_bytes = flags
            .retain_bytes
            .or(file.retain_bytes.map(|value| match value {
                Value::String(text) => text.to_string(),
                other => other.to_string(),
            }));
        let retain_bytes = match retain_bytes {
            None => 1 << 30,
            Some(text) => bytes(&text).with_context(|| {
                format!("retain-bytes: {text} is no number of bytes like 512Mi or 1Gi")
            })?,
        };
        let profile = match flags.profile.or(file.profile) {
            None => Profile::default(),
            Some(text) => text.parse().context("profile")?,
        };
        let disabled = if flags.disable_controller.is_empty() {
            file.disable_controller
        } else {
            flags.disable_controller
        };
        for name in &disabled {
            let known = Options::default().switch_off(name);
            known.context("disable-controller")?;
        }
        let networks = flags
            .service_cluster_ip_range
            .or(file.service_cluster_ip_range);
        let ports = flags
            .service_node_port_range
            .or(file.service_node_port_range);
        let services = ServiceRanges::parse(
            networks.as_deref().unwrap_or("10.0.0.0/24"),
            ports.as_deref().unwrap_or("30000-32767"),
        )
        .context("the ranges of services cannot be used")?;
        Ok(Config {
            data_dir: flags
                .data_dir
                .or(file.data_dir)
                .unwrap_or_else(|| PathBuf::from("bareboat-data")),
            bind,
            san: if flags.san.is_empty() {
                file.san
            } else {
                flags.san
            },
            in_memory: flags.in_memory.or(file.in_memory).unwrap_or(false),
            profile,
            disabled,
            token_file: flags.token_file.or(file.token_file),
            accounts,
            tls,
            client_ca: flags.client_ca.or(file.client_ca),
            services,
            retain_for,
            retain_revisions: flags
                .retain_revisions
                .or(file.retain_revisions)
                .unwrap_or(1_000_000),
            retain_bytes,
            max_in_flight: (
                flags
                    .max_reads_in_flight
                    .or(file.max_reads_in_flight)
                    .unwrap_or(400),
                flags
                    .max_writes_in_flight
                    .or(file.max_writes_in_flight)
                    .unwrap_or(200),
            ),
            connections,
            log: flags.log.or(file.log).unwrap_or_else(|| "warn".to_owned()),
            quiet: flags.quiet.or(file.quiet).unwrap_or(false),
        })
    }
}

/// A number of bytes as Kubernetes writes it.
fn bytes(text: &str) -> Option<u64> {
    let quantity = bareboat::api::quantity::Quantity::parse(text).ok()?;
    u64::try_from(quantity.as_i64()?)
        .ok()
        .filter(|bytes| *bytes > 0)
}

/// The first list, unless it is empty.
fn either<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    if first.is_empty() { second } else { first }
}

fn duration(setting: &str, text: &str) -> Result<Duration> {
    let nanoseconds = bareboat::api::time::parse_duration(text)
        .ok()
        .and_then(|n| u64::try_from(n).ok());
    let nanoseconds = nanoseconds
        .with_context(|| format!("{setting}: {text} is not a duration like 10m or 24h"))?;
    Ok(Duration::from_nanos(nanoseconds))
}

fn read(path: &Path) -> Result<File> {
    let text = std::fs::read(path)
        .with_context(|| format!("the configuration file {} cannot be read", path.display()))?;
    let parsed = bareboat_wire::yaml::parse(&text)
        .with_context(|| format!("the configuration file {} is no YAML", path.display()))?;
    if let Some(twice) = parsed.duplicates.first() {
        bail!("the configuration file {}: {twice}", path.display());
    }
    if parsed.value.is_null() {
        return Ok(File::default());
    }
    from_value(&parsed.value).with_context(|| {
        format!(
            "the configuration file {} has something this server does not know{}",
            path.display(),
            culprit(&parsed.value)
        )
    })
}

/// Names the first key whose value is not what it should be.
fn culprit(settings: &Value) -> String {
    let keys = settings.as_object().into_iter().flat_map(|map| map.iter());
    for (key, value) in keys {
        let mut alone = bareboat::api::Map::new();
        alone.insert(key, value.clone());
        if from_value::<File>(&Value::Object(alone)).is_err() {
            return format!(" (see {key})");
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_override_the_file_and_the_file_the_defaults() {
        let dir = std::env::temp_dir().join(format!("bareboat-config-{}", std::process::id()));
        std::fs::write(
            &dir,
            "bind: 127.0.0.1:7000\nretainFor: 1h\nretainBytes: 64Mi\nstalledClientTimeout: 90s\nmaxConnections: 500\ninMemory: true\nprofile: bare\ndisableController: [pods]\n",
        )
        .unwrap();
        let flags = ServeFlags {
            config: Some(dir.clone()),
            bind: Some("127.0.0.1:1".parse().unwrap()),
            ..ServeFlags::default()
        };
        let config = Config::assemble(flags).unwrap();
        std::fs::remove_file(&dir).unwrap();
        assert_eq!(config.bind.port(), 1);
        assert_eq!(config.retain_for, Duration::from_secs(3600));
        assert_eq!(config.retain_bytes, 64 << 20);
        assert_eq!(
            config.connections.stalled_client_timeout,
            Some(Duration::from_secs(90))
        );
        assert_eq!(config.connections.total, Some(500));
        assert!(config.in_memory);
        assert_eq!(config.profile, Profile::Bare);
        assert_eq!(config.disabled, ["pods"]);
        assert_eq!(config.data_dir, PathBuf::from("bareboat-data"));
    }

    #[test]
    fn unknown_keys_and_half_a_certificate_are_refused() {
        let path = std::env::temp_dir().join(format!("bareboat-config-bad-{}", std::process::id()));
        std::fs::write(&path, "bindd: 1\n").unwrap();
        assert!(
            Config::assemble(ServeFlags {
                config: Some(path.clone()),
                ..ServeFlags::default()
            })
            .is_err()
        );
        std::fs::remove_file(&path).unwrap();
        for flags in [
            ServeFlags {
                profile: Some("tiny".to_owned()),
                ..ServeFlags::default()
            },
            ServeFlags {
                disable_controller: vec!["gc".to_owned()],
                ..ServeFlags::default()
            },
        ] {
            let error = Config::assemble(flags).unwrap_err();
            assert!(format!("{error:#}").contains("there are"), "{error:#}");
        }
        let half = ServeFlags {
            tls_cert: Some("a".into()),
            ..ServeFlags::default()
        };
        assert!(
            Config::assemble(half)
                .unwrap_err()
                .to_string()
                .contains("--tls-key")
        );
    }
}
