//! `bareboat epoch`: makes all clients list again, after a store was restored by other means.

use crate::store_flags::{Place, StoreFlags};
use anyhow::{Context as _, Result};

/// The help of the command.
pub(crate) const ABOUT: &str = "\
Begins another epoch of a store: the counter of resourceVersions jumps by 2^20, all watches end, and older resourceVersions \
answer 410, so that clients list again.

Run it after a store was restored by the tools of its database: pg_restore, a snapshot of a disk, mariadb-backup, etcdutl, a copy of \
state.db. Clients may have seen changes that are not in it any more; without another epoch they would take the new history \
for the one they knew, and miss changes. bareboat restore does it by itself.

Servers on PostgreSQL, MariaDB, MySQL or etcd may run: they notice it within a second. A server on SQLite must be stopped.";

/// Examples of the command.
pub(crate) const AFTER: &str = "\
Examples:
  bareboat epoch --storage 'postgres://bareboat@db.example/bareboat'
  bareboat epoch --data-dir /var/lib/bareboat

Exit codes:
  0  another epoch has begun
  1  nothing was changed; it was said why
  2  the command line makes no sense";

/// Flags of `bareboat epoch`.
#[derive(clap::Args, Debug)]
pub(crate) struct EpochFlags {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// A resourceVersion that is known to have been given out, if the store does not know it
    #[arg(
        long,
        value_name = "VERSION",
        env = "BAREBOAT_BEYOND",
        default_value = "0"
    )]
    pub(crate) beyond: u64,
}

/// Begins another epoch and prints where.
pub(crate) fn run(flags: &EpochFlags) -> Result<()> {
    let place = flags.store.place()?;
    // A server holds this one, too.
    let _alone = match (&place, &flags.store.storage) {
        (Place::File(_), None) if flags.store.data_dir.is_dir() => {
            Some(crate::serve::lock(&flags.store.data_dir)?)
        }
        _ => None,
    };
    let log = place.open()?;
    let begun = || format!("no other epoch could begin in {}", place.name());
    let before = log.mark().with_context(begun)?;
    let after = log.next_epoch(flags.beyond).with_context(begun)?;
    log.close().with_context(begun)?;
    let text = format!(
        "epoch {} begins: the last resourceVersion was {}, the next will be above {}\n",
        after.epoch, before.last, after.last
    );
    crate::print(text.as_bytes())
}
