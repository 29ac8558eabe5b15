//! Settings of connections: TLS, limits, timeouts.

use super::values;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// TLS and limits of client connections.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionSettings {
    /// Names and addresses the serving certificate is also good for (repeatable)
    #[arg(
        long = "san",
        value_name = "NAME",
        env = "BAREBOAT_SAN",
        value_delimiter = ','
    )]
    pub(crate) san: Vec<String>,

    /// The address at which other machines reach this server, for the endpoints of the service default/kubernetes and the
    /// serving certificate [default: the address of --bind, or this machine's own if that is all addresses]
    #[arg(long, value_name = "IP", env = "BAREBOAT_ADVERTISE_ADDRESS")]
    pub(crate) advertise_address: Option<IpAddr>,

    /// Serve with this certificate chain (PEM) instead of one made here; needs --tls-key
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_TLS_CERT",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key (PEM) of --tls-cert
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_TLS_KEY",
        requires = "tls_cert"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// Trust client certificates of this CA (PEM) beside the one made here
    #[arg(long, value_name = "FILE", env = "BAREBOAT_CLIENT_CA")]
    pub(crate) client_ca: Option<PathBuf>,

    /// Decide by FlowSchemas and PriorityLevelConfigurations which requests run, wait or are refused; without it, reads and
    /// writes have a limit each, and requests beyond it are refused
    #[arg(
        long,
        env = "BAREBOAT_ENABLE_PRIORITY_AND_FAIRNESS",
        num_args = 0..=1,
        default_value = "true",
        default_missing_value = "true",
        hide_possible_values = true,
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub(crate) enable_priority_and_fairness: bool,

    /// Answer at most this many reads at once; priority levels share this number and that of writes
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_MAX_READS_IN_FLIGHT",
        default_value = "400"
    )]
    pub(crate) max_reads_in_flight: usize,

    /// Carry out at most this many writes at once
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_MAX_WRITES_IN_FLIGHT",
        default_value = "200"
    )]
    pub(crate) max_writes_in_flight: usize,

    /// Keep at most this many connections open [default: the limit of open files, less 128]
    #[arg(long, value_name = "N", env = "BAREBOAT_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,

    /// Of them, at most this many without credentials [default: a quarter, at most 1024]
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_MAX_UNAUTHENTICATED_CONNECTIONS"
    )]
    pub(crate) max_unauthenticated_connections: Option<usize>,

    /// At most this many connections without credentials from one address; raise it if clients share a proxy [default: 256]
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_MAX_UNAUTHENTICATED_CONNECTIONS_PER_ADDRESS"
    )]
    pub(crate) max_unauthenticated_connections_per_address: Option<usize>,

    /// Close connections whose client reads nothing of an answer for this long [default: 1m]
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_STALLED_CLIENT_TIMEOUT",
        value_parser = values::duration
    )]
    pub(crate) stalled_client_timeout: Option<Duration>,
}

impl ConnectionSettings {
    /// The names and addresses beyond the usual ones that the serving certificate is good for.
    pub(crate) fn certificate_names(&self) -> Vec<String> {
        let advertised = self.advertise_address.iter().map(ToString::to_string);
        self.san.iter().cloned().chain(advertised).collect()
    }
}
