//! Settings of the store.

use super::values;
use std::path::PathBuf;
use std::time::Duration;

/// How objects are stored, and how much history is kept. [`StoreFlags`](crate::store_flags::StoreFlags) says where.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Storage")]
pub(crate) struct StorageSettings {
    /// Keep objects in memory only: everything is gone when the server stops
    #[arg(
        long,
        env = "BAREBOAT_IN_MEMORY",
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub(crate) in_memory: bool,

    /// Keep history for this long, so that watches can resume
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_RETAIN_FOR",
        default_value = "10m",
        value_parser = values::duration
    )]
    pub(crate) retain_for: Duration,

    /// Keep at most this many revisions of history
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_RETAIN_REVISIONS",
        default_value = "1000000"
    )]
    pub(crate) retain_revisions: u64,

    /// Keep at most this many bytes of history
    #[arg(
        long,
        value_name = "BYTES",
        env = "BAREBOAT_RETAIN_BYTES",
        default_value = "1Gi",
        value_parser = values::bytes
    )]
    pub(crate) retain_bytes: u64,

    /// Use a store whose other servers, and their certificate authorities and keys, are gone: take the keys of this server from now on.
    /// Tokens and certificates of before are not accepted any more
    #[arg(
        long,
        env = "BAREBOAT_REPLACE_IDENTITY",
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub(crate) replace_identity: bool,

    /// Encrypt what is stored as this EncryptionConfiguration says (apiserver.config.k8s.io/v1); read again when it changes
    #[arg(long, value_name = "FILE", env = "BAREBOAT_ENCRYPTION_PROVIDER_CONFIG")]
    pub(crate) encryption_provider_config: Option<PathBuf>,
}
