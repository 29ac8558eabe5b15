//! Crash tests: a child process writes under load and is killed, loses power, or gets a failing or full disk,
//! repeatedly. Every acknowledged write must be found, and no refused write.
//!
//! The child is this test binary with a path in its environment; it prints each answer on its
//! stdout. A library preloaded into it (`tests/torture`) simulates the faults of the system. `make
//! torture` runs the same tests for a given time.
#![allow(clippy::unwrap_used)]

mod check;
mod child;
mod faults;
mod full;
mod migration;
#[path = "../shared/old_file.rs"]
mod old_file;
mod power;
mod preload;
mod restart;

use check::Ledger;
use child::Work;

#[test]
fn every_acknowledged_write_survives_the_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (time, _) = preload::plan();
    let start = std::time::Instant::now();
    let mut ledger = Ledger::default();
    let mut round = 0;
    while round < 12 || start.elapsed() < time {
        for line in Work::start(&path, round, &[]).killed_after(20 + 67 * round % 400) {
            ledger.hear(&line);
        }
        ledger.check(&path);
        round += 1;
    }
    println!("{} acknowledged writes, {round} kills", ledger.acknowledged);
}
