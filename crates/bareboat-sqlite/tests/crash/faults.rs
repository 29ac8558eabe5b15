//! Tests of a disk that fails at times. Without space or quota, or while the disk is read-only, nothing is lost and the store stays up. After a failed
//! sync the store stops, and all writes that it acknowledged are durable.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::check::Ledger;
use crate::child::Work;
use crate::preload::{self, Control, EDQUOT, EIO, ENOSPC, EROFS, SYNCS, WRITES};

/// The injected errors, and whether the child may end because of them.
const KINDS: [(u32, u32, u32, bool); 7] = [
    (ENOSPC, WRITES, 1000, false),
    (ENOSPC, WRITES, 100, false),
    (EDQUOT, WRITES, 1000, false),
    (EROFS, WRITES, 1000, false),
    (EIO, WRITES, 100, true),
    (EIO, WRITES | SYNCS, 300, true),
    (EIO, SYNCS, 1000, true),
];

#[test]
fn a_failing_disk_loses_no_acknowledged_write_and_keeps_no_refused_one() {
    let Some(library) = preload::library() else {
        return;
    };
    let (time, mut dice) = preload::plan();
    let start = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let path = data.join("state.db");
    let control = Control::new(folder.path().join("control"));
    let environment = control.environment(library, &data);
    let mut ledger = Ledger::default();
    let (mut rounds, mut ends) = (0, 0);
    while rounds < 2 * KINDS.len() || start.elapsed() < time {
        let (error, calls, permille, may_end) = KINDS[rounds % KINDS.len()];
        let mut work = Work::start(&path, rounds as u64, &environment);
        let (to, lines) = mpsc::sync_channel(1024);
        let reader = std::thread::spawn(move || {
            for line in work.lines.by_ref().map_while(Result::ok) {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        let mut hear = |enough: &dyn Fn(&Ledger) -> bool| -> bool {
            while !enough(&ledger) {
                match lines.recv_timeout(Duration::from_secs(120)) {
                    Ok(line) => {
                        assert!(!line.starts_with("not "), "{line}");
                        if line.starts_with("over") {
                            println!("{line}");
                        }
                        ledger.hear(&line);
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => return false,
                    Err(mpsc::RecvTimeoutError::Timeout) => panic!("the child says nothing"),
                }
            }
            true
        };
        let begun = ledger_of(&mut hear, 30);
        assert!(begun, "it ended before anything failed");
        control.fail(error, calls, permille);
        let failed = control.failed();
        std::thread::sleep(Duration::from_millis(20 + dice.roll(80)));
        control.heal();
        assert!(
            control.failed() > failed || permille < 1000,
            "nothing failed"
        );
        let goes_on = ledger_of(&mut hear, 30);
        assert!(goes_on || may_end, "it ended for errno {error}");
        ends += u64::from(!goes_on);
        work.child.kill().unwrap();
        work.child.wait().unwrap();
        // The reader waits while the queue is full, so it is emptied until the reader ends.
        lines.iter().for_each(|line| ledger.hear(&line));
        reader.join().unwrap();
        ledger.check(&path);
        rounds += 1;
    }
    assert!(ends > 0, "a failed sync must end it");
    assert!(ledger.refused > 0, "without space something is refused");
    println!(
        "{} acknowledged, {} refused, {} unknown; {rounds} rounds, {ends} ends",
        ledger.acknowledged, ledger.refused, ledger.unknown
    );
}

/// Reads the child's lines until the condition on the ledger holds. Returns false if the child ended first.
type Hear<'a> = &'a mut dyn FnMut(&dyn Fn(&Ledger) -> bool) -> bool;

/// Reads the child's lines until `more` further writes were acknowledged. Returns false if the child ended first.
fn ledger_of(hear: Hear<'_>, more: u64) -> bool {
    let before = std::cell::Cell::new(None);
    hear(&|ledger| {
        let start = before.get().unwrap_or(ledger.acknowledged);
        before.set(Some(start));
        ledger.acknowledged >= start + more
    })
}
