//! The settings of `bareboat serve`.
//!
//! [`Settings`] is the only list of them: each field is a flag, an environment variable and a key of the configuration
//! file, and the table in `docs/operating.md` is made from it. To add a setting, add a field here or in the file of its
//! group. A value on the command line overrides one in the environment, which overrides one in the file, which overrides
//! the default.

mod accounts;
mod aggregation;
mod audit;
mod connections;
mod file;
mod fleet;
mod identity;
mod kubelets;
mod logging;
mod outbound;
mod services;
mod storage;
#[cfg(test)]
mod table;
#[cfg(feature = "otlp")]
mod tracing;
mod values;

pub(crate) use accounts::AccountSettings;
pub(crate) use aggregation::AggregationSettings;
pub(crate) use audit::{AuditMode, AuditSettings};
pub(crate) use connections::ConnectionSettings;
pub(crate) use file::parse;
pub(crate) use fleet::{FleetAuthorization, FleetSettings, FleetShelf};
pub(crate) use identity::IdentitySettings;
pub(crate) use kubelets::KubeletFlags;
pub(crate) use logging::{LogFormat, LogSettings};
pub(crate) use outbound::OutboundSettings;
pub(crate) use services::ServiceSettings;
pub(crate) use storage::StorageSettings;
#[cfg(feature = "otlp")]
pub(crate) use tracing::TracingSettings;
pub(crate) use values::duration;

use crate::store_flags::StoreFlags;
use bareboat::control_plane::Profile;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Flags of `bareboat serve`.
///
/// A setting is looked for on the command line, then in the environment, then in the
/// configuration file; what is nowhere has a default.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// Listen on this address; port 0 takes any free one
    #[arg(
        long,
        value_name = "ADDR",
        env = "BAREBOAT_BIND",
        default_value = "127.0.0.1:6443"
    )]
    pub(crate) bind: SocketAddr,

    /// Serve all built-in kinds (full), or only what a control plane for your own kinds needs (bare)
    #[arg(
        long,
        value_name = "PROFILE",
        env = "BAREBOAT_PROFILE",
        default_value = "full"
    )]
    pub(crate) profile: Profile,

    /// Do not run this controller (repeatable)
    #[arg(
        long = "disable-controller",
        value_name = "NAME",
        env = "BAREBOAT_DISABLE_CONTROLLER",
        value_delimiter = ',',
        value_parser = values::controller,
        long_help = values::controllers_help()
    )]
    pub(crate) disable_controller: Vec<String>,

    /// Do not run this admission plug-in (repeatable)
    #[arg(
        long = "disable-admission-plugins",
        value_name = "NAME",
        env = "BAREBOAT_DISABLE_ADMISSION_PLUGINS",
        value_delimiter = ',',
        value_parser = values::admission_plugin,
        long_help = values::admission_plugins_help()
    )]
    pub(crate) disable_admission_plugins: Vec<String>,

    /// Read settings of admission plug-ins from this AdmissionConfiguration (apiserver.config.k8s.io/v1), such as the
    /// credentials for webhooks
    #[arg(
        long = "admission-control-config-file",
        value_name = "FILE",
        env = "BAREBOAT_ADMISSION_CONTROL_CONFIG_FILE"
    )]
    pub(crate) admission_control_config_file: Option<PathBuf>,

    /// What to log: error, warn, info, debug, or per module, such as bareboat_server=debug
    #[arg(
        long,
        value_name = "FILTER",
        env = "BAREBOAT_LOG",
        default_value = "warn"
    )]
    pub(crate) log: String,

    /// Print nothing but errors
    #[arg(
        long,
        short,
        env = "BAREBOAT_QUIET",
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) logging: LogSettings,

    #[command(flatten)]
    pub(crate) storage: StorageSettings,

    #[command(flatten)]
    pub(crate) connections: ConnectionSettings,

    #[command(flatten)]
    pub(crate) outbound: OutboundSettings,

    #[command(flatten)]
    pub(crate) accounts: AccountSettings,

    #[command(flatten)]
    pub(crate) identity: IdentitySettings,

    #[command(flatten)]
    pub(crate) aggregation: AggregationSettings,

    #[command(flatten)]
    pub(crate) services: ServiceSettings,

    #[command(flatten)]
    pub(crate) kubelets: KubeletFlags,

    #[command(flatten)]
    pub(crate) audit: AuditSettings,

    #[command(flatten)]
    pub(crate) fleet: FleetSettings,

    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub(crate) tracing: TracingSettings,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::args::{Args, Command};
    use std::time::Duration;

    fn settings(arguments: &[&str]) -> anyhow::Result<Settings> {
        let all = ["bareboat", "serve"].iter().chain(arguments);
        let Args { command } = parse(all.map(Into::into).collect())?;
        match command {
            Command::Serve(settings) => Ok(*settings),
            other => anyhow::bail!("{other:?}"),
        }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn flags_override_the_file_and_the_file_the_defaults() {
        let file = file(
            "bind: 127.0.0.1:7000\nretainFor: 1h\nretainBytes: 67108864\nstalledClientTimeout: 90s\n\
             maxConnections: 500\ninMemory: true\nprofile: bare\ndisableController: [pods, garbage]\nsan: [a, b]\n",
        );
        let path = file.path().to_str().unwrap();
        let arguments = ["--config", path, "--bind", "127.0.0.1:1", "--san=c"];
        let settings = settings(&arguments).unwrap();
        assert_eq!(settings.bind.port(), 1);
        assert_eq!(settings.connections.san, ["c"]);
        assert_eq!(settings.storage.retain_for, Duration::from_secs(3600));
        assert_eq!(settings.storage.retain_bytes, 64 << 20);
        assert_eq!(
            settings.connections.stalled_client_timeout,
            Some(Duration::from_secs(90))
        );
        assert_eq!(settings.connections.max_connections, Some(500));
        assert!(settings.storage.in_memory);
        assert_eq!(settings.profile, Profile::Bare);
        assert_eq!(settings.disable_controller, ["pods", "garbage"]);
        assert_eq!(settings.store.data_dir, PathBuf::from("./bareboat-data"));
    }

    #[test]
    fn a_shelf_is_shared_in_a_database() {
        let shared = |storage: &str, more: &[&str]| {
            let mut arguments = vec!["--fleet", "--fleet-shelf", "shared"];
            arguments.extend(["--storage", storage]);
            arguments.extend(more);
            let settings = settings(&arguments).unwrap();
            let opened = crate::fleet::open(&settings);
            opened.map(drop).unwrap_err().to_string()
        };
        for storage in ["sqlite:x.db", "etcd://127.0.0.1:1"] {
            assert!(shared(storage, &[]).contains("PostgreSQL"), "{storage}");
        }
        for storage in ["postgres://127.0.0.1:1/x", "mysql://a@127.0.0.1:1/x"] {
            let refused = shared(storage, &["--fleet-sharding-name", "a"]);
            assert!(refused.contains("--fleet-sharding-name"), "{refused}");
        }
    }

    #[test]
    fn defaults() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.storage.retain_for, Duration::from_secs(600));
        assert_eq!(settings.storage.retain_bytes, 1 << 30);
        assert!(!settings.storage.in_memory && !settings.quiet);
        assert!(settings.services.ranges().is_ok());
    }

    #[test]
    fn errors_in_the_file_name_the_key() {
        for (text, named) in [
            ("bindd: 1\n", "bindd"),
            ("data-dir: /tmp\n", "dataDir"),
            ("bind: nowhere\n", "nowhere"),
            ("bind: 127.0.0.1:1\nbind: 127.0.0.1:2\n", "bind"),
            ("bind: [127.0.0.1:1, 127.0.0.1:2]\n", "--bind"),
            ("config: other.yaml\n", "config"),
            ("retainFor: 3 weeks\n", "3 weeks"),
            ("maxReadsInFlight: {a: 1}\n", "maxReadsInFlight"),
            ("- 1\n", "mapping"),
        ] {
            let file = file(text);
            let path = file.path().to_str().unwrap();
            let error = format!("{:#}", settings(&["--config", path]).unwrap_err());
            assert!(error.contains(named), "{text:?}: {error}");
            assert!(error.contains(path), "{text:?}: {error}");
        }
    }

    #[test]
    fn errors_on_the_command_line_list_the_allowed_values() {
        for (arguments, allowed) in [
            (["--profile", "tiny"], "full and bare"),
            (["--disable-controller", "gc"], "namespaces"),
        ] {
            let error = settings(&arguments).unwrap_err();
            assert!(format!("{error:#}").contains(allowed), "{error:#}");
        }
        let half = settings(&["--tls-cert", "a"]).unwrap_err();
        assert!(format!("{half:#}").contains("--tls-key"), "{half:#}");
    }

    #[test]
    fn an_empty_file_changes_nothing() {
        let file = file("# nothing yet\n");
        let path = file.path().to_str().unwrap();
        assert_eq!(
            settings(&["--config", path]).unwrap().bind,
            settings(&[]).unwrap().bind
        );
    }
}
