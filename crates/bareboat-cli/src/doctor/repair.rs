//! What `bareboat doctor --repair` does: work that is safe at any time and that servers may have left undone.

use crate::store_flags::Place;
use anyhow::{Context as _, Result};
use bareboat::storage::Sweep;

/// The number of rows that one step of a sweep deletes.
const ROWS: usize = 1_000;

/// Repairs a store, and says what was done.
pub(super) fn run(place: &Place) -> Result<String> {
    let log = place.open()?;
    let failed = || format!("{} cannot be repaired", place.name());
    log.mark().with_context(failed)?;
    let before = log.stats().bytes;
    let mut steps = 0;
    // The floor stays where it is: only what is below it is deleted.
    let held = loop {
        steps += 1;
        match log.compact(log.compacted(), ROWS).with_context(failed)? {
            Sweep::More => {}
            Sweep::Done => break false,
            Sweep::Held => break true,
        }
    };
    let released = log.release_space().with_context(failed)?;
    log.mark().with_context(failed)?;
    let after = log.stats().bytes;
    log.close().with_context(failed)?;
    let mut text = format!("swept below the floor in {steps} steps");
    if held {
        text.push_str("; a backup is running");
    }
    if released {
        let (before, after) = (before >> 20, after >> 20);
        text.push_str(&format!(
            "; unused space was released ({before} MiB before, {after} MiB after)"
        ));
    }
    Ok(text)
}
