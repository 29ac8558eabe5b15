//! Tests of an upgrade of the file that is interrupted: by a kill or a power failure between any two writes. The next
//! start finishes it, and nothing is lost.

use std::path::Path;
use std::process::Command;

use bareboat_sqlite::Sqlite;
use bareboat_storage::{Backend as _, Stop};

use crate::old_file::old_file;
use crate::power::{Disk, Journal, Step};
use crate::preload;

const FILE: &str = "BAREBOAT_MIGRATION_TEST_FILE";
/// What the child says before it opens the file. The name of a test does not contain it: where tests run one at a time, it comes first.
const BEGINS: &str = "the older release has ended";

#[test]
fn child_that_upgrades_a_file() {
    let Ok(path) = std::env::var(FILE) else {
        return;
    };
    let path = Path::new(&path);
    old_file(path);
    // Everything before this line is the work of the older release.
    println!("\n{BEGINS}");
    Sqlite::open(path).unwrap().close().unwrap();
}

#[test]
fn an_upgrade_that_is_interrupted_anywhere_is_finished_by_the_next_start() {
    let Some(library) = preload::library() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let journal = folder.path().join("journal");
    let done = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "migration::child_that_upgrades_a_file",
            "--nocapture",
        ])
        .env(FILE, data.join("state.db"))
        .env("LD_PRELOAD", library)
        .env("TORTURE_DIR", &data)
        .env("TORTURE_RECORD", &journal)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let journal = Journal::read(&journal);
    let (_, mut dice) = preload::plan();
    let begins = |step: &Step| matches!(step, Step::Said(text) if text.contains(BEGINS));
    let start = journal.steps.iter().position(begins).unwrap();
    let mut disk = Disk::default();
    for step in &journal.steps[..start] {
        disk.take(step);
    }
    // What the older release wrote is on the disk.
    disk.sync_all();
    let mut cuts = 0;
    for step in &journal.steps[start..] {
        disk.take(step);
        let place = folder.path().join("cut");
        std::fs::create_dir(&place).unwrap();
        disk.after_a_cut(&mut dice, &place);
        check(&place.join("state.db"));
        std::fs::remove_dir_all(&place).unwrap();
        cuts += 1;
    }
    println!("{cuts} moments of an upgrade");
    assert!(cuts > 20, "{cuts}");
}

/// Opens the file twice: the first start finishes what was interrupted.
fn check(path: &Path) {
    for _ in 0..2 {
        let file = Sqlite::open(path).unwrap();
        assert_eq!((file.mark().unwrap().last, file.compacted()), (6, 3));
        let mut keys = Vec::new();
        let visit = &mut |record: bareboat_storage::Record| keys.push(record.key.to_string());
        file.read_at("core/configmaps", 6, visit, &Stop::default())
            .unwrap();
        keys.sort();
        assert_eq!(keys, ["changed", "kept"]);
        file.close().unwrap();
    }
}
