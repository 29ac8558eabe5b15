//! Settings of authentication and authorization: configurations, front proxies, webhooks, bootstrap tokens.

use super::values;
use bareboat::server::authn::ReviewVersion;
use std::path::PathBuf;
use std::time::Duration;

/// How users are recognized, beside certificates and tokens of service accounts, and who decides what they may do.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Identity")]
pub(crate) struct IdentitySettings {
    /// Accept tokens of the JWT issuers of this AuthenticationConfiguration; read again when it changes
    #[arg(long, value_name = "FILE", env = "BAREBOAT_AUTHENTICATION_CONFIG")]
    pub(crate) authentication_config: Option<PathBuf>,

    /// Let the authorizers of this AuthorizationConfiguration decide; read again when it changes [default: RBAC]
    #[arg(long, value_name = "FILE", env = "BAREBOAT_AUTHORIZATION_CONFIG")]
    pub(crate) authorization_config: Option<PathBuf>,

    /// Let these decide, in this order (repeatable): RBAC, Webhook, AlwaysAllow, AlwaysDeny [default: RBAC]
    #[arg(
        long,
        value_name = "MODE",
        env = "BAREBOAT_AUTHORIZATION_MODE",
        value_delimiter = ',',
        conflicts_with = "authorization_config"
    )]
    pub(crate) authorization_mode: Vec<String>,

    /// Kubeconfig of the webhook of the mode Webhook
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_AUTHORIZATION_WEBHOOK_CONFIG_FILE",
        requires = "authorization_mode"
    )]
    pub(crate) authorization_webhook_config_file: Option<PathBuf>,

    /// Believe headers that name users from front proxies with certificates of this CA (PEM); needs
    /// --requestheader-allowed-names
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_REQUESTHEADER_CLIENT_CA_FILE",
        requires = "requestheader_allowed_names"
    )]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// Common names that certificates of front proxies may have (repeatable)
    #[arg(
        long,
        value_name = "NAME",
        env = "BAREBOAT_REQUESTHEADER_ALLOWED_NAMES",
        value_delimiter = ',',
        requires = "requestheader_client_ca_file"
    )]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Headers in which front proxies name the user (repeatable); the first that is there counts
    #[arg(
        long,
        value_name = "HEADER",
        env = "BAREBOAT_REQUESTHEADER_USERNAME_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-User"
    )]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Headers in which front proxies name the uid of the user (repeatable)
    #[arg(
        long,
        value_name = "HEADER",
        env = "BAREBOAT_REQUESTHEADER_UID_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-Uid"
    )]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers in which front proxies name groups of the user (repeatable)
    #[arg(
        long,
        value_name = "HEADER",
        env = "BAREBOAT_REQUESTHEADER_GROUP_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-Group"
    )]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// How headers begin in which front proxies say more about the user (repeatable)
    #[arg(
        long,
        value_name = "PREFIX",
        env = "BAREBOAT_REQUESTHEADER_EXTRA_HEADERS_PREFIX",
        value_delimiter = ',',
        default_value = "X-Remote-Extra-"
    )]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,

    /// Let the webhook in this kubeconfig review bearer tokens that nothing else accepts
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_AUTHENTICATION_TOKEN_WEBHOOK_CONFIG_FILE"
    )]
    pub(crate) authentication_token_webhook_config_file: Option<PathBuf>,

    /// Remember tokens that the webhook accepted this long
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL",
        default_value = "2m",
        value_parser = values::duration
    )]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,

    /// Version of the TokenReviews that the webhook gets: v1 or v1beta1
    #[arg(
        long,
        value_name = "VERSION",
        env = "BAREBOAT_AUTHENTICATION_TOKEN_WEBHOOK_VERSION",
        default_value = "v1"
    )]
    pub(crate) authentication_token_webhook_version: ReviewVersion,

    /// Accept bootstrap tokens, which are secrets in kube-system
    #[arg(
        long,
        env = "BAREBOAT_ENABLE_BOOTSTRAP_TOKEN_AUTH",
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub(crate) enable_bootstrap_token_auth: bool,
}
