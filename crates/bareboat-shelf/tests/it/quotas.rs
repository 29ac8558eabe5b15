//! Limits of one member.

use crate::rig::{MEMBERS, Rig, change_to};
use bareboat_api::value;
use bareboat_shelf::{Batch, Settings, ShelfError};

#[test]
fn the_bytes_of_a_member_are_limited_and_others_are_not_concerned() {
    let limit = 20_000;
    let mut rig = Rig::with(Settings {
        bytes_per_member: limit,
        ..Settings::default()
    });
    let put = |rig: &Rig, member: usize, number: usize, version: usize| {
        let object = value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": (format!("p{number}")), "namespace": "a", "uid": (format!("u{number}")),
                "resourceVersion": (version.to_string()),
            },
            "spec": {"text": ("x".repeat(900))},
        });
        let batch = Batch {
            member: rig.members[member],
            kind: rig.pods,
            changes: vec![change_to(MEMBERS[member], object)],
            progress: None,
        };
        rig.shelf.apply(&[batch], 1).map(drop)
    };
    let mut written = 0;
    let refused = loop {
        match put(&rig, 0, written, 1) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "nothing is refused");
    };
    assert!(matches!(refused, ShelfError::QuotaBytes(found) if found == limit));
    assert!((14..=20).contains(&written), "{written}");
    // It stays refused, and what was written stays.
    for _ in 0..50 {
        assert!(put(&rig, 0, 500, 1).is_err());
    }
    assert_eq!(rig.names(&rig.query()).len(), written);
    put(&rig, 1, 0, 1).expect("another member has room");
    // The same bytes again are no more than before, however often they are written.
    for version in 2..200 {
        put(&rig, 0, 3, version).expect("it replaces what was there");
    }
    rig.delete(0, "a", "p0");
    rig.delete(0, "a", "p1");
    put(&rig, 0, 500, 1).expect("there is room again");
    // A shelf that is opened again knows what it has.
    rig.reopen(true);
    assert_eq!(rig.names(&rig.query()).len(), written);
}
