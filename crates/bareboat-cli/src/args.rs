//! The command line: subcommands and their flags. The flags of `bareboat serve` are in `settings`.

use crate::backup::BackupFlags;
use crate::certificates::Part;
use crate::doctor::DoctorFlags;
use crate::epoch::EpochFlags;
use crate::fleet::FleetCommand;
use crate::history::HistoryFlags;
use crate::init_shared::InitSharedFlags;
use crate::kubeconfig::{CreateFlags, CredentialFlags};
use crate::output::Format;
use crate::plugin::PluginFlags;
use crate::restore::RestoreFlags;
use crate::scaffold::{AddFlags, NewFlags};
use crate::settings::Settings;
use crate::who_can::WhoCanFlags;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

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
  bareboat backup monday.backup               all objects and their history, in one file
  bareboat restore --from monday.backup       put it in place of ./bareboat-data/state.db
  bareboat doctor                             whether the store is whole, and what takes its space
  bareboat init-shared keys                   keys for several servers of one database
  bareboat kubeconfig create alice --group dev
                                              a kubeconfig for a user, good for a day
  bareboat certificates list                  when which certificate ends
  bareboat who-can delete pods -n default     who has that right
  bareboat new operator boats --kind Boat --group example.com
                                              a project that builds, with tests that pass
  bareboat fleet join c1 --member-kubeconfig c1.kubeconfig
                                              search objects of another server as well
  bareboat plugin create posts --dir ~/bin    kubectl create post hello --title Hello
  bareboat completions bash > /etc/bash_completion.d/bareboat";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the API server
    Serve(Box<Settings>),
    /// Rewrite stored objects in the storage version of their definition, or with other encryption keys
    #[command(long_about = MIGRATE, after_help = MIGRATE_AFTER)]
    Migrate(MigrateFlags),
    /// Write everything in a store to a file, while servers use it
    #[command(long_about = crate::backup::ABOUT, after_help = crate::backup::AFTER)]
    Backup(BackupFlags),
    /// Put a backup, or the content of another store, into a store
    #[command(long_about = crate::restore::ABOUT, after_help = crate::restore::AFTER)]
    Restore(RestoreFlags),
    /// Make all clients list again, after a store was restored by the tools of its database
    #[command(long_about = crate::epoch::ABOUT, after_help = crate::epoch::AFTER)]
    Epoch(EpochFlags),
    /// Examine a store and say what looks wrong
    #[command(long_about = crate::doctor::ABOUT, after_help = crate::doctor::AFTER)]
    Doctor(DoctorFlags),
    /// Show objects as they were at an earlier time
    #[command(long_about = crate::history::ABOUT, after_help = crate::history::AFTER)]
    History(HistoryFlags),
    /// Make the keys that all servers of a shared store have in common
    #[command(long_about = crate::init_shared::ABOUT, after_help = crate::init_shared::AFTER)]
    InitShared(InitSharedFlags),
    /// Make kubeconfigs for users and service accounts
    Kubeconfig {
        #[command(subcommand)]
        command: KubeconfigCommand,
    },
    /// List and rotate the certificates and keys of a data directory
    Certificates {
        #[command(subcommand)]
        command: CertificatesCommand,
    },
    /// Make a project: an operator, an API server or webhooks
    #[command(long_about = crate::scaffold::NEW, after_help = crate::scaffold::NEW_AFTER)]
    New(NewFlags),
    /// Add a kind, a version, a subresource or a webhook to a project
    #[command(long_about = crate::scaffold::ADD, after_help = crate::scaffold::ADD_AFTER)]
    Add(AddFlags),
    /// Write kubectl plug-ins for kinds, with flags from their schemas
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Manage and search a fleet: other API servers whose objects this server knows (see serve --fleet)
    Fleet {
        #[command(subcommand)]
        command: FleetCommand,
    },
    /// List the users, groups and service accounts that may do something
    #[command(after_help = WHO_CAN_AFTER)]
    WhoCan(WhoCanFlags),
    /// Print the version
    Version,
    /// Print a completion script for a shell
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
}

/// Subcommands of `bareboat kubeconfig`.
#[derive(Subcommand, Debug)]
pub(crate) enum KubeconfigCommand {
    /// Make a kubeconfig for a user or a service account
    #[command(after_help = CREATE_AFTER)]
    Create(CreateFlags),
    /// Print a credential for a client that runs this program (see create --exec)
    Credential(CredentialFlags),
}

/// Subcommands of `bareboat plugin`.
#[derive(Subcommand, Debug)]
pub(crate) enum PluginCommand {
    /// Write `kubectl create KIND`: a plug-in that creates objects of a kind
    #[command(long_about = crate::plugin::ABOUT, after_help = crate::plugin::AFTER)]
    Create(PluginFlags),
}

/// Subcommands of `bareboat certificates`.
#[derive(Subcommand, Debug)]
pub(crate) enum CertificatesCommand {
    /// List all certificates and keys, what they are for and when they expire
    List {
        /// The data directory of the server
        #[arg(
            long,
            value_name = "DIR",
            env = "BAREBOAT_DATA_DIR",
            default_value = "./bareboat-data"
        )]
        data_dir: PathBuf,
        /// How to print it
        #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
        output: Format,
    },
    /// Make new keys and certificates; a running server uses them within seconds, and open connections go on
    Rotate {
        /// What to rotate [default: everything]
        #[arg(value_enum, value_name = "PART")]
        parts: Vec<Part>,
        /// How long the old key of service accounts still checks tokens: the longest life of a token
        #[arg(
            long,
            value_name = "DURATION",
            default_value = "8760h",
            value_parser = crate::settings::duration
        )]
        keep: Duration,
        /// The data directory of the server
        #[arg(
            long,
            value_name = "DIR",
            env = "BAREBOAT_DATA_DIR",
            default_value = "./bareboat-data"
        )]
        data_dir: PathBuf,
        /// How to print it
        #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
        output: Format,
    },
}

const CREATE_AFTER: &str = "\
Examples:
  bareboat kubeconfig create alice --group dev --group ops --save alice.kubeconfig
  bareboat kubeconfig create alice --expires 1h --exec       clients fetch a new certificate every hour
  bareboat kubeconfig create --service-account default/robot

A certificate cannot be taken back before it expires: keep --expires short. Anyone who can read the data directory can create a \
kubeconfig for any user.

A new user has no rights until a binding grants some:
  kubectl create rolebinding dev --clusterrole edit --group dev";

const WHO_CAN_AFTER: &str = "\
Examples:
  bareboat who-can get secrets                     in all namespaces
  bareboat who-can delete deployments.apps -n shop
  bareboat who-can get pods/log web-0 -n shop
  bareboat who-can get /metrics

Only roles and bindings are looked at. Members of a group are not known to the server: groups are listed as they are.";

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
  4. set served: false for v1 when nobody asks for it any more, then remove it

With --encryption every stored value that is not encrypted with the first provider of its resource is written again, history \
included, and the file is built anew, so that nothing of the old values is left in it. Writes wait meanwhile. Afterwards keys \
that are no longer first can be removed from the configuration. In a store that several servers share, objects are written again instead, \
and old values leave with the history: keep old keys for as long as --retain-for says. With --encryption-provider-config the same is done in the data \
directory of a stopped server.

To replace an encryption key:
  1. put the new key first and leave the old one behind it; a running server takes the file within seconds
  2. bareboat migrate --encryption
  3. remove the old key from the file; backups made before still need it";

const MIGRATE_AFTER: &str = "\
Examples:
  bareboat migrate                            all definitions, with ./bareboat-data/admin.kubeconfig
  bareboat migrate foos.example.com           one definition
  bareboat migrate --dry-run                  try everything, write nothing
  bareboat migrate --kubeconfig ~/.kube/config --context prod
  bareboat migrate --encryption               encrypt everything with the first keys
  bareboat migrate --encryption-provider-config encryption.yaml --data-dir /var/lib/bareboat

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

    /// Let the server encrypt everything that is stored with the first providers of its EncryptionConfiguration
    #[arg(long, conflicts_with_all = ["definitions", "dry_run"])]
    pub(crate) encryption: bool,

    /// The same in the data directory of a stopped server, with this EncryptionConfiguration
    #[arg(long, value_name = "FILE", conflicts_with_all = ["definitions", "context", "server", "encryption"])]
    pub(crate) encryption_provider_config: Option<PathBuf>,

    /// The data directory, for --encryption-provider-config
    #[arg(
        long,
        value_name = "DIR",
        env = "BAREBOAT_DATA_DIR",
        default_value = "./bareboat-data"
    )]
    pub(crate) data_dir: PathBuf,

    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::CommandFactory as _;

    #[test]
    fn all_commands_are_well_formed() {
        Args::command().debug_assert();
    }
}
