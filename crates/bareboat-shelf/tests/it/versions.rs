//! Versions are never given twice.

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
fn a_member_that_leaves_takes_its_rows_along() {
    let mut rig = Rig::new();
    for name in ["p1", "p2"] {
        rig.put(0, "a", name, name, value!({}));
        rig.put(1, "a", name, name, value!({}));
    }
    let before = rig.shelf.visible();
    assert_eq!(
        rig.shelf
            .remove_member(rig.members[0], 1)
            .expect("it is removed"),
        2
    );
    assert_eq!(rig.names(&rig.query()), ["c2/a/p1", "c2/a/p2"]);
    assert!(rig.shelf.directory().member("c1").is_none());
    let replayed = rig
        .shelf
        .changes(&rig.query(), before, 10)
        .expect("it reads")
        .expect("it is known");
    assert_eq!(replayed.events.len(), 2);
    assert_eq!(rig.shelf.progress(rig.members[0]).expect("it reads"), []);
    rig.shelf.upkeep(i64::MAX / 2).expect("upkeep works");
    assert_eq!(rig.shelf.directory().member_name(rig.members[0].0), "");
}

#[test]
fn progress_is_kept_over_a_crash_and_forgotten_on_request() {
    let mut rig = Rig::new();
    rig.put(0, "a", "p1", "u1", value!({}));
    rig.reopen(false);
    let progress = rig.shelf.progress(rig.members[0]).expect("it reads");
    assert_eq!(progress[0].1.resource_version, "1");
    rig.shelf
        .forget_progress(rig.members[0])
        .expect("it is forgotten");
    let progress = rig.shelf.progress(rig.members[0]).expect("it reads");
    assert_eq!(progress[0].1.resource_version, "");
}

#[test]
fn a_member_that_became_another_cluster_is_noticed() {
    let rig = Rig::new();
    let join = |uid| rig.shelf.add_member("c9", uid).expect("it is added").1;
    assert!(!join("one"));
    assert!(!join("one"));
    assert!(!join(""));
    assert!(join("two"));
    assert!(!join("two"));
}
