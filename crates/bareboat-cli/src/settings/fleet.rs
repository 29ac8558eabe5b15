//! Settings of the fleet: other API servers whose objects can be searched here.

use super::values;
use std::path::PathBuf;
use std::time::Duration;

/// Who may search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FleetAuthorization {
    /// Users with rights to what they read, on this server
    Hub,
    /// Users who may get the path, as in Clusterpedia: they read everything below it
    Path,
}

/// Where the objects of members are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FleetShelf {
    /// In a file of this server
    Local,
    /// In the database of --storage, together with the other servers: each syncs some of the members, and all answer
    Shared,
}

/// The fleet, and how much memory and disk it takes.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetSettings {
    /// Serve the kinds and views of a fleet: search objects of other API servers, described by PediaClusters
    #[arg(
        long,
        env = "BAREBOAT_FLEET",
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true,
        value_name = "BOOL"
    )]
    pub(crate) fleet: bool,

    /// Keep the objects of members in this file. It is a cache: without it, everything is listed again [default: fleet.db in the data directory]
    #[arg(long, value_name = "FILE", env = "BAREBOAT_FLEET_FILE")]
    pub(crate) fleet_file: Option<PathBuf>,

    /// Where the objects of members are: in a file of this server (local), or in the database of --storage, which is PostgreSQL,
    /// MariaDB or MySQL, so that the servers of one store sync the members together (shared)
    #[arg(
        long,
        value_enum,
        value_name = "PLACE",
        env = "BAREBOAT_FLEET_SHELF",
        default_value = "local"
    )]
    pub(crate) fleet_shelf: FleetShelf,

    /// The namespace of Secrets with credentials of members, and of ClusterProfiles
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "BAREBOAT_FLEET_NAMESPACE",
        default_value = "clusterpedia-system"
    )]
    pub(crate) fleet_namespace: String,

    /// Sync only members whose spec.shardingName is this or empty
    #[arg(
        long,
        value_name = "NAME",
        env = "BAREBOAT_FLEET_SHARDING_NAME",
        default_value = ""
    )]
    pub(crate) fleet_sharding_name: String,

    /// Remember deletions of members' objects for this long, so that watches of views can resume
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_FLEET_RETAIN",
        default_value = "10m",
        value_parser = values::duration
    )]
    pub(crate) fleet_retain: Duration,

    /// Keep at most this many bytes of recent changes in memory, for watches of views
    #[arg(
        long,
        value_name = "BYTES",
        env = "BAREBOAT_FLEET_RECENT_BYTES",
        default_value = "64Mi",
        value_parser = values::bytes
    )]
    pub(crate) fleet_recent_bytes: u64,

    /// Keep at most this many bytes of the file in memory
    #[arg(
        long,
        value_name = "BYTES",
        env = "BAREBOAT_FLEET_CACHE_BYTES",
        default_value = "64Mi",
        value_parser = values::bytes
    )]
    pub(crate) fleet_cache_bytes: u64,

    /// Sync at most this many objects of one member
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_FLEET_MAX_OBJECTS",
        default_value = "1000000"
    )]
    pub(crate) fleet_max_objects: u64,

    /// Sync at most this many bytes of objects of one member
    #[arg(
        long,
        value_name = "BYTES",
        env = "BAREBOAT_FLEET_MAX_BYTES",
        default_value = "8Gi",
        value_parser = values::bytes
    )]
    pub(crate) fleet_max_bytes: u64,

    /// List at most this many types of members at the same time
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_FLEET_MAX_LISTS",
        default_value = "4"
    )]
    pub(crate) fleet_max_lists: usize,

    /// Ask members for their health this often
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_FLEET_PROBE_INTERVAL",
        default_value = "5s",
        value_parser = values::duration
    )]
    pub(crate) fleet_probe_interval: Duration,

    /// Let a search take this long, apart from what it returns
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_FLEET_SEARCH_TIME",
        default_value = "2s",
        value_parser = values::duration
    )]
    pub(crate) fleet_search_time: Duration,

    /// Let a search read this many bytes of objects that it does not return
    #[arg(
        long,
        value_name = "BYTES",
        env = "BAREBOAT_FLEET_SEARCH_BYTES",
        default_value = "200Mi",
        value_parser = values::bytes
    )]
    pub(crate) fleet_search_bytes: u64,

    /// On a store that several servers share: verify the certificates of the other servers by this bundle (PEM) [default: the CA of
    /// the data directory, and the chain of --tls-cert]
    #[arg(long, value_name = "FILE", env = "BAREBOAT_FLEET_PEER_CA_FILE")]
    pub(crate) fleet_peer_ca_file: Option<PathBuf>,

    /// On a store that several servers share: a name that the certificates of the other servers have [default:
    /// kubernetes.default.svc; with --tls-cert, their addresses]
    #[arg(long, value_name = "NAME", env = "BAREBOAT_FLEET_PEER_SERVER_NAME")]
    pub(crate) fleet_peer_server_name: Option<String>,

    /// Who may search: users with rights to the objects on this server (hub), or to the path (path)
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        env = "BAREBOAT_FLEET_AUTHORIZATION",
        default_value = "hub"
    )]
    pub(crate) fleet_authorization: FleetAuthorization,
}
