//! Settings of bearer tokens: static ones and those of service accounts.

use super::values;
use std::path::PathBuf;
use std::time::Duration;

/// Accepted bearer tokens, and the signing of service account tokens.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Tokens")]
pub(crate) struct AccountSettings {
    /// Accept bearer tokens of this CSV file: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE", env = "BAREBOAT_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Issuer of service account tokens (repeatable): the first signs, tokens of all are accepted
    /// [default: https://kubernetes.default.svc.cluster.local]
    #[arg(
        long,
        value_name = "URL",
        env = "BAREBOAT_SERVICE_ACCOUNT_ISSUER",
        value_delimiter = ','
    )]
    pub(crate) service_account_issuer: Vec<String>,

    /// Sign service account tokens with this private key (PEM) [default: certificates/service-accounts.key]
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_SERVICE_ACCOUNT_SIGNING_KEY_FILE"
    )]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,

    /// Also accept tokens signed by the keys in this file (PEM, public or private; repeatable)
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_SERVICE_ACCOUNT_KEY_FILE",
        value_delimiter = ','
    )]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// Longest life of a service account token
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_SERVICE_ACCOUNT_MAX_TOKEN_EXPIRATION",
        default_value = "8760h",
        value_parser = values::duration
    )]
    pub(crate) service_account_max_token_expiration: Duration,

    /// Audiences that mean this server in tokens (repeatable) [default: the issuers]
    #[arg(
        long,
        value_name = "NAME",
        env = "BAREBOAT_API_AUDIENCES",
        value_delimiter = ','
    )]
    pub(crate) api_audiences: Vec<String>,

    /// Longest life of certificates that are signed for approved CertificateSigningRequests
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_CLUSTER_SIGNING_DURATION",
        default_value = "24h",
        value_parser = values::duration
    )]
    pub(crate) cluster_signing_duration: Duration,
}
