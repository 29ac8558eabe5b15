//! Settings of aggregation: how this server proves its identity to other API servers, and how it finds them.

use std::path::PathBuf;

/// Requests that other API servers answer.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Aggregation")]
pub(crate) struct AggregationSettings {
    /// Present this client certificate (PEM) to other API servers [default: one of an own CA]
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_PROXY_CLIENT_CERT_FILE",
        requires = "proxy_client_key_file",
        requires = "requestheader_client_ca_file"
    )]
    pub(crate) proxy_client_cert_file: Option<PathBuf>,

    /// The key of --proxy-client-cert-file (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_PROXY_CLIENT_KEY_FILE",
        requires = "proxy_client_cert_file"
    )]
    pub(crate) proxy_client_key_file: Option<PathBuf>,

    /// Connect to endpoints of services only, never to cluster IPs
    #[arg(
        long,
        env = "BAREBOAT_ENABLE_AGGREGATOR_ROUTING",
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub(crate) enable_aggregator_routing: bool,
}
