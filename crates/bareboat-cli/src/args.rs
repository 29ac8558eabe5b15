//! What can be said on the command line. Every flag is also a key of the configuration file and
//! an environment variable.

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The Kubernetes API without Kubernetes.
#[derive(Parser, Debug)]
#[command(name = "bareboat", version, propagate_version = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  bareboat serve                              serve on 127.0.0.1:6443, data in ./bareboat-data
  bareboat serve --in-memory --bind 127.0.0.1:0
                                              a throw-away server on any free port
  bareboat serve --config bareboat.yaml       settings from a file (flags override it)
  bareboat migrate --dry-run                  which stored objects are in old versions
  bareboat restore backup.db                  put a backup in place of ./bareboat-data/state.db
  bareboat completions bash > /etc/bash_completion.d/bareboat";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the API server
    Serve(Box<ServeFlags>),
    /// Rewrite stored objects in the storage version of their definition
    #[command(long_about = MIGRATE, after_help = MIGRATE_AFTER)]
    Migrate(MigrateFlags),
    /// Put a backup in place of the state of a stopped server
    #[command(long_about = RESTORE, after_help = RESTORE_AFTER)]
    Restore(RestoreFlags),
    /// Print the version
    Version,
    /// Print a completion script for a shell
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
}

const MIGRATE: &str = "\
A definition (CustomResourceDefinition) may change the version its objects are stored in. Objects \
that are there already stay in the old one until somebody writes them, and status.storedVersions \
keeps the old version, which therefore cannot be removed from spec.versions.

This command writes every object once, as it is, so that the server stores it in the storage \
version. When all objects of a definition are done, status.storedVersions is trimmed to the storage \
version. Others may read and write meanwhile. It may be interrupted and run again: objects that are \
in the storage version already are not written.

To retire a version v1 in favour of v2:
  1. add v2 to spec.versions, with a conversion if it has another form
  2. set storage: true for v2, false for v1, and apply the definition
  3. bareboat migrate foos.example.com
  4. set served: false for v1 when nobody asks for it any more, then remove it";

const RESTORE: &str = "\
Clients may have seen versions that a backup lacks. If the server went on counting from the backup, they would take the \
new history for the one they knew, and miss changes. This command puts the backup in place and raises the counter above \
every version that was given out, so that all clients must list again.

The server must be stopped. What was there before is kept as state.db.before-restore.

Without a backup, the state.db that is in the data directory counts as restored: use this after you copied it there \
yourself, or restored the whole directory.";

const RESTORE_AFTER: &str = "\
Examples:
  bareboat restore /backup/state.db --data-dir /var/lib/bareboat
  bareboat restore --data-dir /var/lib/bareboat   the directory was copied back by other means

Exit codes:
  0  it is restored
  1  it is not; it was said why, and what was there before is unchanged
  2  the command line makes no sense";

/// Flags of `bareboat restore`.
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreFlags {
    /// The backup: a state.db [default: the one in the data directory]
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: Option<PathBuf>,

    /// The data directory of the stopped server
    #[arg(
        long,
        value_name = "DIR",
        env = "BAREBOAT_DATA_DIR",
        default_value = "./bareboat-data"
    )]
    pub(crate) data_dir: PathBuf,

    /// A version that is known to have been given out, if neither the backup nor the data directory knows it
    #[arg(long, value_name = "VERSION")]
    pub(crate) beyond: Option<u64>,
}

const MIGRATE_AFTER: &str = "\
Examples:
  bareboat migrate                            all definitions, with ./bareboat-data/admin.kubeconfig
  bareboat migrate foos.example.com           one definition
  bareboat migrate --dry-run                  try everything, write nothing
  bareboat migrate --kubeconfig ~/.kube/config --context prod

Exit codes:
  0  all objects are in the storage version of their definition
  1  something could not be migrated, or the server could not be reached; it was said what
  2  the command line makes no sense";

/// Flags of `bareboat migrate`.
#[derive(clap::Args, Debug)]
pub(crate) struct MigrateFlags {
    /// The definitions, such as foos.example.com [default: all]
    #[arg(value_name = "DEFINITION")]
    pub(crate) definitions: Vec<String>,

    /// How to reach the server [default: ./bareboat-data/admin.kubeconfig, else ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Ask the server at this URL instead of the one in the kubeconfig
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// Try everything, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Flags of `bareboat serve`.
///
/// A setting is looked for on the command line, then in the environment, then in the
/// configuration file; what is nowhere has a default.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct ServeFlags {
    /// Read settings from this YAML file (key: the flag's name in camelCase, e.g. dataDir)
    #[arg(long, value_name = "FILE", env = "BAREBOAT_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Keep data, certificates and the admin kubeconfig here [default: ./bareboat-data]
    #[arg(long, value_name = "DIR", env = "BAREBOAT_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Listen on this address; port 0 takes any free one [default: 127.0.0.1:6443]
    #[arg(long, value_name = "ADDR", env = "BAREBOAT_BIND")]
    pub(crate) bind: Option<SocketAddr>,

    /// Names and addresses the serving certificate is also good for (repeatable)
    #[arg(
        long = "san",
        value_name = "NAME",
        env = "BAREBOAT_SAN",
        value_delimiter = ','
    )]
    pub(crate) san: Vec<String>,

    /// Keep objects in memory only: everything is gone when the server stops
    #[arg(long, env = "BAREBOAT_IN_MEMORY", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) in_memory: Option<bool>,

    /// Serve all built-in kinds (full), or only what a control plane for your own kinds needs (bare) [default: full]
    #[arg(long, value_name = "PROFILE", env = "BAREBOAT_PROFILE")]
    pub(crate) profile: Option<String>,

    /// Leave this to somebody else (repeatable): namespaces, garbage, definitions, expiry, pods, residents, quotas,
    /// roles, addresses, api-services, default-roles or bootstrap
    #[arg(
        long = "disable-controller",
        value_name = "NAME",
        env = "BAREBOAT_DISABLE_CONTROLLER",
        value_delimiter = ','
    )]
    pub(crate) disable_controller: Vec<String>,

    /// Accept bearer tokens of this CSV file: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE", env = "BAREBOAT_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Name this issuer in tokens of service accounts; further ones are accepted (repeatable)
    /// [default: the URL of the service kubernetes in a cluster]
    #[arg(
        long,
        value_name = "URL",
        env = "BAREBOAT_SERVICE_ACCOUNT_ISSUER",
        value_delimiter = ','
    )]
    pub(crate) service_account_issuer: Vec<String>,

    /// Sign tokens of service accounts with this private key (PEM) instead of one made here
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_SERVICE_ACCOUNT_SIGNING_KEY_FILE"
    )]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,

    /// Also accept tokens that the keys in this file signed (PEM, public or private; repeatable)
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_SERVICE_ACCOUNT_KEY_FILE",
        value_delimiter = ','
    )]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// Let tokens of service accounts live at most this long [default: 8760h]
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_SERVICE_ACCOUNT_MAX_TOKEN_EXPIRATION"
    )]
    pub(crate) service_account_max_token_expiration: Option<String>,

    /// Audiences that mean this server in tokens (repeatable) [default: the issuers]
    #[arg(
        long,
        value_name = "NAME",
        env = "BAREBOAT_API_AUDIENCES",
        value_delimiter = ','
    )]
    pub(crate) api_audiences: Vec<String>,

    /// Serve with this certificate (PEM) instead of one made here; needs --tls-key
    #[arg(long, value_name = "FILE", env = "BAREBOAT_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key (PEM) of --tls-cert
    #[arg(long, value_name = "FILE", env = "BAREBOAT_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Trust client certificates of this CA (PEM) instead of the one made here
    #[arg(long, value_name = "FILE", env = "BAREBOAT_CLIENT_CA")]
    pub(crate) client_ca: Option<PathBuf>,

    /// Give services addresses of this network, or of one of IPv4 and one of IPv6 [default: 10.0.0.0/24]
    #[arg(
        long,
        value_name = "CIDR[,CIDR]",
        env = "BAREBOAT_SERVICE_CLUSTER_IP_RANGE"
    )]
    pub(crate) service_cluster_ip_range: Option<String>,

    /// Give services node ports of this range [default: 30000-32767]
    #[arg(long, value_name = "FROM-TO", env = "BAREBOAT_SERVICE_NODE_PORT_RANGE")]
    pub(crate) service_node_port_range: Option<String>,

    /// Keep history for this long, so that watches can resume [default: 10m]
    #[arg(long, value_name = "DURATION", env = "BAREBOAT_RETAIN_FOR")]
    pub(crate) retain_for: Option<String>,

    /// Keep at most this many revisions of history [default: 1000000]
    #[arg(long, value_name = "N", env = "BAREBOAT_RETAIN_REVISIONS")]
    pub(crate) retain_revisions: Option<u64>,

    /// Keep at most this many bytes of history, such as 512Mi [default: 1Gi]
    #[arg(long, value_name = "BYTES", env = "BAREBOAT_RETAIN_BYTES")]
    pub(crate) retain_bytes: Option<String>,

    /// Answer at most this many reads at once [default: 400]
    #[arg(long, value_name = "N", env = "BAREBOAT_MAX_READS_IN_FLIGHT")]
    pub(crate) max_reads_in_flight: Option<usize>,

    /// Carry out at most this many writes at once [default: 200]
    #[arg(long, value_name = "N", env = "BAREBOAT_MAX_WRITES_IN_FLIGHT")]
    pub(crate) max_writes_in_flight: Option<usize>,

    /// Keep at most this many connections open [default: as many as the limit of open files allows]
    #[arg(long, value_name = "N", env = "BAREBOAT_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,

    /// Of them, at most this many without credentials [default: a quarter, at most 1024]
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_MAX_UNAUTHENTICATED_CONNECTIONS"
    )]
    pub(crate) max_unauthenticated_connections: Option<usize>,

    /// At most this many connections without credentials from one address [default: 256]
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_MAX_UNAUTHENTICATED_CONNECTIONS_PER_ADDRESS"
    )]
    pub(crate) max_unauthenticated_connections_per_address: Option<usize>,

    /// Cut off clients that read nothing of what they are sent for this long [default: 1m]
    #[arg(long, value_name = "DURATION", env = "BAREBOAT_STALLED_CLIENT_TIMEOUT")]
    pub(crate) stalled_client_timeout: Option<String>,

    /// What to log: error, warn, info, debug, or per module [default: warn]
    #[arg(long, value_name = "FILTER", env = "BAREBOAT_LOG")]
    pub(crate) log: Option<String>,

    /// Print nothing but errors
    #[arg(long, short, env = "BAREBOAT_QUIET", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) quiet: Option<bool>,
}
