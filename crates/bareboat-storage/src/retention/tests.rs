//! Tests of how long history is kept.

use std::time::{Duration, Instant};

use super::Retention;
use crate::StoreOptions;

const SECOND: Duration = Duration::from_secs(1);

/// Returns a retention of one minute, marked every ten seconds.
fn keeping(revisions: u64, bytes: u64) -> Retention {
    Retention::new(&StoreOptions {
        retain_for: SECOND * 60,
        retain_revisions: revisions,
        retain_bytes: bytes,
        compact_every: SECOND * 10,
        ..StoreOptions::default()
    })
}

#[test]
fn too_many_bytes_are_compacted_at_any_age() {
    let now = Instant::now();
    let mut retention = keeping(u64::MAX, 6400);
    let mut floor = 1;
    for revision in 2..1000 {
        retention.note(now, revision, 100);
        if let Some(due) = retention.due(now, revision, floor) {
            floor = due;
        }
        let kept = (revision - floor) * 100;
        assert!(kept <= 6400 + 100, "{kept} bytes are kept");
        assert!(
            revision < 80 || kept >= 6400 - 200,
            "only {kept} bytes are kept"
        );
    }
    assert!(retention.marks.len() <= 70, "{}", retention.marks.len());
}

#[test]
fn old_history_is_compacted_and_then_the_clock_stops() {
    let start = Instant::now();
    let at = |seconds: u32| start + SECOND * seconds;
    let mut retention = keeping(u64::MAX, u64::MAX);
    assert_eq!(retention.deadline(), None, "nothing written, nothing armed");
    retention.note(at(0), 5, 0);
    retention.note(at(3), 7, 0);
    retention.note(at(12), 9, 0);
    assert_eq!(retention.deadline(), Some(at(60)));
    assert_eq!(retention.due(at(59), 9, 1), None);
    assert_eq!(retention.due(at(60), 9, 1), Some(5));
    assert_eq!(retention.due(at(72), 9, 5), Some(9));
    assert_eq!(retention.deadline(), None);
}

#[test]
fn revisions_between_two_marks_are_compacted_too() {
    let start = Instant::now();
    let mut retention = keeping(u64::MAX, u64::MAX);
    retention.note(start, 5, 0);
    retention.note(start + SECOND, 6, 0);
    assert_eq!(retention.due(start + SECOND * 60, 6, 1), Some(5));
    assert_eq!(retention.deadline(), Some(start + SECOND * 120));
    assert_eq!(retention.due(start + SECOND * 120, 6, 5), Some(6));
    assert_eq!(retention.deadline(), None);
}

#[test]
fn too_many_revisions_are_compacted_at_any_age() {
    let now = Instant::now();
    let mut retention = keeping(800, u64::MAX);
    assert_eq!(retention.due(now, 1000, 100), None, "within the slack");
    assert_eq!(retention.due(now, 1001, 100), Some(201));
    assert_eq!(retention.due(now, u64::MAX, 100), Some(u64::MAX - 800));
}
