//! Versions are never given twice.

use crate::rig::{Rig, change_to};
use bareboat_api::value;

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

#[test]
fn another_object_of_the_same_version_is_written() {
    let rig = Rig::new();
    let object = |text: &str| {
        value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "a", "uid": "u", "resourceVersion": "7"},
            "spec": {"text": text},
        })
    };
    rig.change(0, change_to("c1", object("before")));
    let first = rig.shelf.visible();
    rig.change(0, change_to("c1", object("before")));
    assert_eq!(rig.shelf.visible(), first, "the same object is no change");
    // A member that was restored from a backup came to the same version on another way.
    rig.change(0, change_to("c1", object("after")));
    assert_eq!(rig.shelf.visible(), first + 1);
    let page = rig.shelf.page(&rig.query(), 10).expect("the search works");
    let spec = page.items[0].value("1");
    let text = spec.at(&["spec", "text"]).and_then(|text| text.as_str());
    assert_eq!(text, Some("after"));
}
