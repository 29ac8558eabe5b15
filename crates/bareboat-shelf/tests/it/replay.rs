//! Applying the changes from a version to the state at that version gives the state now, with and without a selector.

use crate::rig::Rig;
use bareboat_api::labels::Selector;
use bareboat_api::value;
use bareboat_shelf::{Column, EventType, Predicate, Query, Settings, Term};
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

fn follow(rig: &Rig, query: &Query, state: &mut State, mut rev: i64, strict: bool) -> i64 {
    loop {
        let replayed = rig
            .shelf
            .changes(query, rev, 3)
            .expect("it reads")
            .expect("it is not too old");
        for event in &replayed.events {
            let row = &event.narrow;
            assert!(row.rev > rev, "versions rise");
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
        if replayed.rev == rev {
            return rev;
        }
        rev = replayed.rev;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize, bool, u8),
    Delete(usize, usize),
    Check,
    Restart(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..3_usize, 0..4_usize, any::<bool>(), 0..2_u8).prop_map(|(m, n, l, u)| Step::Put(m, n, l, u)),
        2 => (0..3_usize, 0..4_usize).prop_map(|(m, n)| Step::Delete(m, n)),
        2 => Just(Step::Check),
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
            query.scope.and(Predicate::one_of(Column::Cluster, ["c1", "c2"]));
            let selector = Selector::parse("app=web").expect("it parses");
            for requirement in selector.requirements() {
                query.filter.and(Predicate::Term(Term::Label(requirement.clone())));
            }
        }
        let (mut followed, mut rev) = state(&rig, &query);
        let mut restarted = false;
        for step in steps {
            match step {
                Step::Put(member, name, web, uid) => {
                    let app = if web { "web" } else { "db" };
                    rig.put(member, "a", &format!("p{name}"), &format!("u{name}-{uid}"), value!({"app": app}));
                }
                Step::Delete(member, name) => rig.delete(member, "a", &format!("p{name}")),
                Step::Check => {
                    // From memory every event is exact. Rows know the last state only.
                    rev = follow(&rig, &query, &mut followed, rev, live && !restarted);
                    restarted = false;
                    prop_assert_eq!(&followed, &state(&rig, &query).0);
                }
                Step::Restart(clean) => {
                    drop(following.take());
                    rig.reopen(clean);
                    restarted = true;
                    following = live.then(|| rig.shelf.follow());
                }
            }
        }
        follow(&rig, &query, &mut followed, rev, false);
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
