//! Versions of shelves in files: each counts for itself.

use crate::rig::Rig;
use bareboat_api::value;

#[test]
fn a_clean_restart_continues_and_an_unclean_one_leaves_a_gap() {
    let mut rig = Rig::new();
    rig.put(0, "a", "p1", "u1", value!({}));
    let first = rig.shelf.visible();
    rig.reopen(true);
    assert_eq!(rig.shelf.visible(), first);
    rig.put(0, "a", "p2", "u2", value!({}));
    let second = rig.shelf.visible();
    assert_eq!(second, first + 1);

    rig.reopen(false);
    let third = rig.shelf.visible();
    assert!(third > second + 1000, "counting goes on in the next block");
    let changes = |rev| rig.shelf.changes(&rig.query(), rev, 10).expect("it reads");
    assert!(changes(second).is_ok(), "what was on disk is known");
    assert!(
        changes(second + 1).is_err(),
        "what may have been lost is not"
    );
    assert!(changes(third).is_ok());
    rig.put(0, "a", "p3", "u3", value!({}));
    assert_eq!(rig.shelf.visible(), third + 1);
    let replayed = rig
        .shelf
        .changes(&rig.query(), second, 10)
        .expect("it reads")
        .expect("it is known");
    assert_eq!(replayed.events.len(), 1);
}

#[test]
fn versions_of_another_server_are_expired() {
    let mut first = Rig::new();
    first.put(0, "a", "p0", "u0", value!({}));
    let alone = first.shelf.visible();
    first.shelf.count_apart(7).expect("it counts apart");
    first.put(0, "a", "p1", "u1", value!({}));
    let old = first.shelf.visible();
    assert_eq!(old, (7 << 20) + 1);
    let mut second = Rig::new();
    second.put(0, "a", "p1", "u1", value!({}));
    second.shelf.count_apart(9).expect("it counts apart");
    let knows = |rig: &Rig, rev: i64| {
        let changes = rig.shelf.changes(&rig.query(), rev, 10);
        let followed = changes.expect("it reads").is_ok();
        assert_eq!(followed, rig.shelf.gave(rev), "{rev}");
        followed
    };
    // What the first one gave is not known to the second; nor is what either gave while it was alone.
    assert!(!knows(&second, old));
    assert!(!knows(&second, alone));
    assert!(!knows(&first, alone));
    second.put(0, "a", "p2", "u2", value!({}));
    let new = second.shelf.visible();
    assert!(new > old && !knows(&first, new));
    // The first one comes back: its own versions are good, those in between are not. So it is after a crash.
    first.shelf.count_apart(12).expect("it counts apart");
    first.put(0, "a", "p3", "u3", value!({}));
    for clean in [true, false] {
        assert!(knows(&first, old), "{clean}");
        assert!(!knows(&first, new), "{clean}");
        let query = first.query();
        let replayed = first.shelf.changes(&query, old, 10);
        let replayed = replayed.expect("it reads").expect("it is known");
        assert_eq!(replayed.events.len(), 1);
        first.reopen(clean);
    }
    assert!(first.shelf.visible() > 12 << 20);
    // A term that is too large is refused, and one that was passed changes nothing.
    assert!(first.shelf.count_apart(u64::MAX).is_err());
    let before = first.shelf.visible();
    first.shelf.count_apart(3).expect("it does nothing");
    assert_eq!(first.shelf.visible(), before);
}
