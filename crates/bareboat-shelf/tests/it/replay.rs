//! Applying the changes from a version to the state at that version gives the state now, with and without a selector.

use crate::rig::{Rig, change_to, kind};
use bareboat_api::labels::Selector;
use bareboat_api::value;
use bareboat_shelf::{Batch, Column, EventType, Position, Predicate, Query, Settings, Term};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

type State = BTreeMap<String, String>;

fn state(rig: &Rig, query: &Query) -> (State, i64) {
    let page = rig.shelf.page(query, 1000).expect("a list works");
    let items = page.items.iter().map(|item| {
        let row = &item.narrow;
        (
            format!("{}/{}/{}", row.member, row.namespace, row.name),
            row.member_version.clone(),
        )
    });
    (items.collect(), page.rev)
}

/// How many changes are read at once.
const PART: usize = 3;

/// Follows to the present state, and returns where that is.
fn follow(
    rig: &Rig,
    query: &Query,
    state: &mut State,
    mut position: Position,
    strict: bool,
) -> Position {
    loop {
        let next = follow_some(rig, query, state, position, strict);
        if next.rev == position.rev {
            return next;
        }
        position = next;
    }
}

/// Follows some changes.
fn follow_some(
    rig: &Rig,
    query: &Query,
    state: &mut State,
    position: Position,
    strict: bool,
) -> Position {
    let replayed = rig
        .shelf
        .changes(query, position, PART)
        .expect("it reads")
        .expect("it is not too old");
    for event in &replayed.events {
        let row = &event.narrow;
        assert!(row.rev > position.rev, "versions rise");
        let key = format!("{}/{}/{}", row.member, row.namespace, row.name);
        match rig.shelf.seen_through(query, event).expect("it is judged") {
            Some(EventType::Added) => {
                let old = state.insert(key, row.member_version.clone());
                assert!(!strict || old.is_none(), "an object is added once");
            }
            Some(EventType::Modified) => {
                let old = state.insert(key, row.member_version.clone());
                assert!(!strict || old.is_some(), "what changes was there");
            }
            Some(EventType::Deleted) => {
                let old = state.remove(&key);
                assert!(!strict || old.is_some(), "what is deleted was there");
            }
            None => {}
        }
    }
    replayed.next
}

/// Restricts a query to two members and a label.
fn select(query: &mut Query) {
    let members = Predicate::one_of(Column::Cluster, ["c1", "c2"]);
    query.scope.and(members);
    let selector = Selector::parse("app=web").expect("it parses");
    for requirement in selector.requirements() {
        let label = Term::Label(requirement.clone());
        query.filter.and(Predicate::Term(label));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize, bool, u8),
    Delete(usize, usize),
    Check,
    /// Follows a part of the changes. Then the client may lose its connection, and resume from its version.
    Part(bool),
    Restart(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..3_usize, 0..4_usize, any::<bool>(), 0..2_u8).prop_map(|(m, n, l, u)| Step::Put(m, n, l, u)),
        2 => (0..3_usize, 0..4_usize).prop_map(|(m, n)| Step::Delete(m, n)),
        2 => Just(Step::Check),
        2 => any::<bool>().prop_map(Step::Part),
        1 => any::<bool>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn changes_lead_from_any_state_to_the_present_one(steps in steps(), live in any::<bool>(), selected in any::<bool>()) {
        let mut rig = Rig::new();
        let mut following = live.then(|| rig.shelf.follow());
        let mut query = rig.query();
        if selected {
            select(&mut query);
        }
        let (mut followed, rev) = state(&rig, &query);
        let mut position = follow(&rig, &query, &mut followed, rev.into(), false);
        // From memory every event is exact. Rows know the last state only.
        let mut exact = live;
        for step in steps {
            match step {
                Step::Put(member, name, web, uid) => {
                    let app = if web { "web" } else { "db" };
                    rig.put(member, "a", &format!("p{name}"), &format!("u{name}-{uid}"), value!({"app": app}));
                }
                Step::Delete(member, name) => rig.delete(member, "a", &format!("p{name}")),
                Step::Check => {
                    position = follow(&rig, &query, &mut followed, position, exact);
                    exact = live;
                    prop_assert_eq!(&followed, &state(&rig, &query).0);
                }
                Step::Part(resume) => {
                    position = follow_some(&rig, &query, &mut followed, position, exact);
                    if resume {
                        position = position.rev.into();
                        exact = false;
                    }
                }
                Step::Restart(clean) => {
                    drop(following.take());
                    rig.reopen(clean);
                    position = position.rev.into();
                    exact = false;
                    following = live.then(|| rig.shelf.follow());
                }
            }
        }
        follow(&rig, &query, &mut followed, position, false);
        prop_assert_eq!(&followed, &state(&rig, &query).0);
        drop(following);
    }
}

#[test]
fn a_version_older_than_the_retention_is_refused() {
    let settings = Settings {
        retain: Duration::from_secs(1),
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    rig.put(0, "a", "p1", "u1", value!({}));
    let (_, old) = state(&rig, &rig.query());
    rig.delete(0, "a", "p1");
    rig.put(0, "a", "p2", "u2", value!({}));
    let (_, new) = state(&rig, &rig.query());
    assert!(
        rig.shelf
            .changes(&rig.query(), old, 10)
            .expect("it reads")
            .is_ok()
    );
    rig.shelf.upkeep(10_000).expect("upkeep works");
    assert!(
        rig.shelf
            .changes(&rig.query(), old, 10)
            .expect("it reads")
            .is_err()
    );
    assert!(
        rig.shelf
            .changes(&rig.query(), new, 10)
            .expect("it reads")
            .is_ok()
    );
    assert!(
        rig.shelf
            .changes(&rig.query(), new + 1, 10)
            .expect("it reads")
            .is_err()
    );
}

/// An object stops to match, and changes again: rows have only the second change, which alone does not say that it did.
#[test]
fn a_replay_that_began_with_rows_does_not_miss_what_stopped_to_match() {
    for resume in [false, true] {
        let mut rig = Rig::new();
        let mut query = rig.query();
        select(&mut query);
        rig.put(0, "a", "p1", "u1", value!({"app": "web"}));
        let (mut followed, rev) = state(&rig, &query);
        assert_eq!(followed.len(), 1);
        rig.put(0, "a", "p1", "u1", value!({"app": "db"}));
        rig.reopen(true);
        let following = rig.shelf.follow();
        for name in ["x", "y", "z"] {
            rig.put(2, "a", name, name, value!({}));
        }
        rig.put(0, "a", "p1", "u1", value!({"app": "cache"}));
        let mut position = follow_some(&rig, &query, &mut followed, rev.into(), false);
        assert_eq!(followed.len(), 1, "the first part has other objects");
        if resume {
            position = position.rev.into();
        }
        follow(&rig, &query, &mut followed, position, false);
        assert_eq!(followed, State::new(), "resumed: {resume}");
        drop(following);
    }
}

#[test]
fn parts_have_the_changes_of_all_kinds() {
    let mut rig = Rig::new();
    let nodes = rig.shelf.add_kind(&kind("", "nodes", "Node"));
    let nodes = nodes.expect("a kind can be added");
    let mut query = rig.query();
    query.kinds.push(nodes);
    let (mut followed, rev) = state(&rig, &query);
    for number in 0..2 * PART {
        rig.put(
            0,
            "a",
            &format!("p{number}"),
            &format!("u{number}"),
            value!({}),
        );
    }
    let node = value!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n1", "resourceVersion": "1"}});
    let batch = Batch {
        member: rig.members[0],
        kind: nodes,
        changes: vec![change_to("c1", node)],
        progress: None,
    };
    rig.shelf.apply(&[batch], 1).expect("a change is written");
    follow(&rig, &query, &mut followed, rev.into(), false);
    assert_eq!(followed.len(), 2 * PART + 1);
}
