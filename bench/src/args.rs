//! Command line of the benchmark.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::attack::Attack;

/// Measures Bareboat and kube-apiserver + etcd with the same load, one after the other, and prints both with their
/// ratio.
#[derive(Clone, Debug, Parser)]
#[command(name = "bareboat-bench", version)]
pub(crate) struct Args {
    /// Measure only one of the two servers.
    #[arg(long, value_enum)]
    pub(crate) only: Option<Side>,

    /// Rows to measure, separated by commas; all of them when not given.
    #[arg(long, value_delimiter = ',', value_name = "ROW,…")]
    pub(crate) only_rows: Vec<Row>,

    /// Compare storage engines instead: PostgreSQL, MariaDB and etcd with SQLite, with kine, with kube-apiserver on the
    /// same etcd; events on other servers, several writers, restarts, idle load. Rows separated by commas.
    #[arg(long, value_delimiter = ',', num_args = 0.., value_name = "ROW,…", default_missing_value = "creates,kine,etcd,events,writers,restart,idle")]
    pub(crate) engines: Vec<EngineRow>,

    /// Read the results of kube-apiserver from a file written with --save instead of measuring them.
    #[arg(long, value_name = "FILE")]
    pub(crate) theirs_from: Option<PathBuf>,

    /// Read the results of Bareboat from a file written with --save instead of measuring them.
    #[arg(long, value_name = "FILE")]
    pub(crate) ours_from: Option<PathBuf>,

    /// Write the results to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// A tenth of the load: for a quick try, not for publishing.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Maximum duration of one row, in seconds; a fifth of it with --quick.
    #[arg(long, default_value_t = 15, value_name = "SECONDS")]
    pub(crate) row_seconds: u64,

    /// Objects in the measured collection.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) objects: usize,

    /// Number of watchers, each on its own connection.
    #[arg(long, default_value_t = 500)]
    pub(crate) watchers: usize,

    /// Also measure the deletion of a namespace on kube-apiserver, which needs kube-controller-manager.
    #[arg(long)]
    pub(crate) controller_manager: bool,

    /// Start a server, print the path of its kubeconfig and wait until interrupted. It is kube-apiserver unless `--only
    /// ours`; with --controller-manager that runs too.
    #[arg(long)]
    pub(crate) hold: bool,

    /// Keep the server's folder here instead of in a temporary place.
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,

    /// The bareboat binary; built with `make dist` when not given.
    #[arg(long, value_name = "FILE", env = "BAREBOAT_BIN")]
    pub(crate) bareboat: Option<PathBuf>,

    /// Compare with another bareboat binary, such as an older one, instead of kube-apiserver. Both are measured in turn,
    /// --rounds times. The rows are idle, create1, create, get, get-by-token, list and apply unless --only-rows is given.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "theirs_from", "ours_from", "save"])]
    pub(crate) against: Option<PathBuf>,

    /// How often each binary is measured with --against.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Folder with etcd, kube-apiserver and kube-controller-manager, as built by `scripts/peers.sh kubernetes servers`.
    #[arg(long, value_name = "DIR", env = "BAREBOAT_PEERS")]
    pub(crate) peers: Option<PathBuf>,

    /// Attacks of the rows `attacks` and `storms`, separated by commas; all of them when not given.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ATTACK,…")]
    pub(crate) attacks: Vec<Attack>,

    /// Attack the server of --kubeconfig until killed; the row `attacks` starts such processes.
    #[arg(long, value_enum, requires = "kubeconfig", hide = true)]
    pub(crate) attack: Option<Attack>,

    /// The server to attack.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Serve as the backend of rows about extensions until killed, with the certificate in this folder; those rows start
    /// such a process.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) backend: Option<PathBuf>,

    /// The number of groups of that backend.
    #[arg(long, default_value_t = 0, hide = true)]
    pub(crate) groups: usize,

    /// More flags for a held kube-apiserver, after `--`.
    #[arg(last = true, requires = "hold", value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
}

impl Args {
    /// Returns whether a row is selected.
    pub(crate) fn wants(&self, row: Row) -> bool {
        self.only_rows.is_empty() || self.only_rows.contains(&row)
    }

    /// Returns a number of operations, reduced with --quick.
    pub(crate) fn scaled(&self, operations: usize) -> usize {
        if self.quick {
            (operations / 10).max(1)
        } else {
            operations
        }
    }
}

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// kube-apiserver and etcd.
    Theirs,
    /// Bareboat.
    Ours,
}

/// A group of quantities that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Row {
    /// Time from spawn to ready.
    Start,
    /// Resident memory of an idle server.
    Idle,
    /// Durable creation by one client.
    Create1,
    /// Durable creation by 64 clients.
    Create,
    /// Resident memory with all objects.
    Memory,
    /// Reading one object, by certificate.
    Get,
    /// Reading one object, by the token of a service account.
    GetByToken,
    /// Listing all objects over HTTP/1.1.
    List,
    /// Listing all objects over HTTP/2.
    ListH2,
    /// Listing a page of 500 objects.
    Page,
    /// Listing a tenth of the objects by label.
    Label,
    /// JSON merge patch.
    Patch,
    /// Server-side apply.
    Apply,
    /// Deletion.
    Delete,
    /// Memory of idle watchers and delivery of events to them.
    Watch,
    /// Creation under a schema of 100 fields and ten CEL rules.
    Cel,
    /// Creation of a Deployment in protobuf.
    Protobuf,
    /// Reading an object of an aggregated server.
    Aggregated,
    /// Creation under one mutating and one validating webhook.
    Webhooks,
    /// Creation under ten policies that match.
    Policies,
    /// Creation beside 100 webhook and 100 policy configurations that do not match.
    Unmatched,
    /// Processor time of an idle server with 500 APIServices.
    ApiServices,
    /// Processor time of an idle server that has objects and watchers.
    Quiet,
    /// Deletion of a namespace with objects.
    Namespace,
    /// Installation of large CRDs.
    Crds,
    /// Latency of another client, health and memory during each attack.
    Attacks,
    /// Latency of a user while another one lists everything over 200 connections.
    Neighbour,
    /// Latency of a user while another one sends very many requests or opens very many streams.
    Storms,
}

/// A group of quantities about storage engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineRow {
    /// Creation by 64 clients on SQLite, PostgreSQL and MariaDB.
    Creates,
    /// The statements of kine, and kube-apiserver over kine, on PostgreSQL.
    Kine,
    /// Creation and lists on the same etcd as kube-apiserver.
    Etcd,
    /// Time until an event arrives on another server.
    Events,
    /// Three servers that all write.
    Writers,
    /// Restart with many objects.
    Restart,
    /// Statements of an idle server.
    Idle,
}
