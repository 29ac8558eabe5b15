use std::time::{Duration, Instant};

use super::Retention;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn history_goes_when_it_is_old_and_then_the_clock_stops() {
    let start = Instant::now();
    let at = |seconds: u32| start + SECOND * seconds;
    let mut retention = Retention::new(SECOND * 60, u64::MAX, SECOND * 10);
    assert_eq!(retention.deadline(), None, "nothing written, nothing armed");
    retention.note(at(0), 5);
    retention.note(at(3), 7);
    retention.note(at(12), 9);
    assert_eq!(retention.deadline(), Some(at(60)));
    assert_eq!(retention.due(at(59), 9, 1), None);
    assert_eq!(retention.due(at(60), 9, 1), Some(5));
    assert_eq!(retention.due(at(72), 9, 5), Some(9));
    assert_eq!(retention.deadline(), None);
}

#[test]
fn what_was_written_between_two_marks_is_not_forgotten_about() {
    let start = Instant::now();
    let mut retention = Retention::new(SECOND * 60, u64::MAX, SECOND * 10);
    retention.note(start, 5);
    retention.note(start + SECOND, 6);
    assert_eq!(retention.due(start + SECOND * 60, 6, 1), Some(5));
    assert_eq!(retention.deadline(), Some(start + SECOND * 120));
    assert_eq!(retention.due(start + SECOND * 120, 6, 5), Some(6));
    assert_eq!(retention.deadline(), None);
}

#[test]
fn too_many_revisions_go_however_young() {
    let now = Instant::now();
    let mut retention = Retention::new(SECOND * 60, 800, SECOND * 10);
    assert_eq!(retention.due(now, 1000, 100), None, "within the slack");
    assert_eq!(retention.due(now, 1001, 100), Some(201));
    assert_eq!(retention.due(now, u64::MAX, 100), Some(u64::MAX - 800));
}
