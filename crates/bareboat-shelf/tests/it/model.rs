//! Any interleaving of changes, lists of members, crashes and restarts ends with the shelf equal to the members.

use crate::rig::{MEMBERS, Rig, change_to, progress};
use bareboat_api::value;
use bareboat_shelf::{Batch, Seen};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    /// A member's object is written, and the watch delivers it.
    Put(usize, usize, u8),
    /// A member's object is deleted, and the watch delivers it.
    Delete(usize, usize),
    /// As before, but the watch was away.
    Missed(usize, usize, Option<u8>),
    /// All of a member is listed, in pages of two.
    List(usize),
    /// The process starts again.
    Restart { clean: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_usize, 0..6_usize, 0..4_u8).prop_map(|(m, n, uid)| Step::Put(m, n, uid)),
        2 => (0..3_usize, 0..6_usize).prop_map(|(m, n)| Step::Delete(m, n)),
        2 => (0..3_usize, 0..6_usize, prop::option::of(0..4_u8)).prop_map(|(m, n, uid)| Step::Missed(m, n, uid)),
        1 => (0..3_usize).prop_map(Step::List),
        1 => any::<bool>().prop_map(|clean| Step::Restart { clean }),
    ];
    prop::collection::vec(step, 1..40)
}

type Truth = BTreeMap<(usize, usize), (u8, u64)>;

fn list(rig: &Rig, truth: &Truth, member: usize) {
    let mut seen = Seen::default();
    let objects: Vec<_> = truth.range((member, 0)..(member + 1, 0)).collect();
    for page in objects.chunks(2) {
        let changes = page.iter().map(|((member, name), (uid, version))| {
            change_to(MEMBERS[*member], object(*name, *uid, *version))
        });
        let batch = Batch {
            member: rig.members[member],
            kind: rig.pods,
            changes: changes.collect(),
            progress: None,
        };
        let applied = rig.shelf.apply(&[batch], 1).expect("a page is written");
        applied
            .into_iter()
            .flat_map(|one| one.rows)
            .for_each(|row| seen.insert(row));
    }
    rig.shelf
        .complete(rig.members[member], rig.pods, &seen, progress("9"), 1)
        .expect("a list is completed");
}

fn object(name: usize, uid: u8, version: u64) -> bareboat_api::Value {
    value!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": (format!("p{name}")), "namespace": "a", "uid": (format!("u{name}-{uid}")),
            "resourceVersion": (version.to_string()),
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_shelf_ends_up_equal_to_the_members(steps in steps()) {
        let mut rig = Rig::new();
        let mut truth = Truth::new();
        let mut version = 0;
        for step in steps {
            version += 1;
            match step {
                Step::Put(member, name, uid) => {
                    truth.insert((member, name), (uid, version));
                    rig.change(member, change_to(MEMBERS[member], object(name, uid, version)));
                }
                Step::Delete(member, name) => {
                    truth.remove(&(member, name));
                    rig.delete(member, "a", &format!("p{name}"));
                }
                Step::Missed(member, name, Some(uid)) => {
                    truth.insert((member, name), (uid, version));
                }
                Step::Missed(member, name, None) => {
                    truth.remove(&(member, name));
                }
                Step::List(member) => list(&rig, &truth, member),
                Step::Restart { clean } => rig.reopen(clean),
            }
        }
        for member in 0..3 {
            list(&rig, &truth, member);
        }
        let page = rig.shelf.page(&rig.query(), 1000).expect("a list works");
        let found: BTreeMap<(String, String), (String, String)> = page.items.into_iter().map(|item| {
            let row = item.narrow;
            let cluster = rig.shelf.directory().member_name(row.member).to_owned();
            ((cluster, row.name), (row.uid, row.member_version))
        }).collect();
        let expected = truth.iter().map(|((member, name), (uid, version))| {
            ((MEMBERS[*member].to_owned(), format!("p{name}")), (format!("u{name}-{uid}"), version.to_string()))
        }).collect();
        prop_assert_eq!(found, expected);
    }
}
