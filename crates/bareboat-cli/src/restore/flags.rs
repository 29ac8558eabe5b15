//! The flags of `bareboat restore`.

use crate::output::Format;
use crate::store_flags::StoreFlags;

/// The help of the command.
pub(crate) const ABOUT: &str = "\
Clients may have seen versions that a backup lacks. If the server went on counting from the backup, they would take the \
new history for the one they knew, and miss changes. This command puts the backup in place and raises the counter above \
every version that was given out, so that all clients must list again.

A backup is a file of bareboat backup, which goes into any store; or a state.db, or the address of another store, whose content is \
taken as it is. A backup made with --since comes after those it continues. All checksums are checked before anything is written, and the store is read back before it can be used.

All servers of the store must be stopped. A store with objects is refused without --replace. What was in a state.db before is kept as \
state.db.before-restore.

To move to another store: stop all servers, then restore --from the old store --storage the new one --keep-epoch. Objects keep their \
resourceVersions, history is moved with them, and watches go on as if nothing had happened.

Without a backup, the state.db that is in the data directory counts as restored: use this after you copied it there \
yourself, or restored the whole directory. For other stores, see bareboat epoch.";

/// Examples of the command.
pub(crate) const AFTER: &str = "\
Examples:
  bareboat restore --from monday.backup --storage 'postgres://bareboat@db.example/bareboat'
  bareboat restore --from monday.backup --from tuesday.backup --storage URL     tuesday.backup was made with --since
  bareboat restore --from sqlite:/var/lib/bareboat/state.db --storage URL --keep-epoch   a planned move
  bareboat restore /backup/state.db --data-dir /var/lib/bareboat
  bareboat restore --data-dir /var/lib/bareboat   the directory was copied back by other means

Exit codes:
  0  it is restored
  1  it is not; it was said why. A state.db is unchanged; another store is not served until a restore has ended
  2  the command line makes no sense";

/// Flags of `bareboat restore`.
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreFlags {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// The backup, the same as --from [default: the state.db in the data directory]
    #[arg(value_name = "BACKUP", conflicts_with = "from")]
    pub(crate) backup: Vec<String>,

    /// The backup: a file of bareboat backup, followed by those that continue it (repeatable); a state.db; or the address of a store
    #[arg(long, value_name = "BACKUP", env = "BAREBOAT_FROM")]
    pub(crate) from: Vec<String>,

    /// Keep all resourceVersions valid, for a planned move. Use it only if nothing was written after the backup was made
    #[arg(long, env = "BAREBOAT_KEEP_EPOCH", conflicts_with = "beyond")]
    pub(crate) keep_epoch: bool,

    /// Give up the objects that are in the store
    #[arg(long, env = "BAREBOAT_REPLACE")]
    pub(crate) replace: bool,

    /// A version that is known to have been given out, if neither the backup nor the store knows it
    #[arg(
        long,
        value_name = "VERSION",
        env = "BAREBOAT_BEYOND",
        default_value = "0"
    )]
    pub(crate) beyond: u64,

    /// Print nothing but errors
    #[arg(long, short, env = "BAREBOAT_QUIET")]
    pub(crate) quiet: bool,

    /// How to print what was restored
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) output: Format,
}
