//! Pages: every object once, in any order, while others come and go.

use crate::rig::{MEMBERS, Rig, change_to, progress};
use bareboat_api::{Value, value};
use bareboat_shelf::{
    Batch, Column, Cursor, Order, Path, Predicate, Query, Term, parse_field_selector,
};
use std::collections::BTreeSet;

fn walk(
    rig: &mut Rig,
    query: &Query,
    most: usize,
    mut between: impl FnMut(&mut Rig),
) -> Vec<String> {
    let mut names = Vec::new();
    let mut query = query.clone();
    let mut rev = None;
    loop {
        let page = rig.shelf.page(&query, most).expect("the search works");
        assert_eq!(
            *rev.get_or_insert(page.rev),
            page.rev,
            "all pages have the version of the first"
        );
        assert!(page.items.len() <= most);
        names.extend(
            page.items
                .iter()
                .map(|item| format!("{}/{}", item.narrow.member, item.narrow.name)),
        );
        let Some(next) = page.next else {
            return names;
        };
        query.after = Cursor::parse(&next.print());
        between(rig);
    }
}

fn filled() -> Rig {
    let mut rig = Rig::new();
    for index in 0..24 {
        let spec = value!({"n": (i32::try_from(index % 11).unwrap_or(0))});
        rig.put_object(
            index % 3,
            ["a", "b"][index % 2],
            &format!("p{index:02}"),
            &format!("u{index}"),
            value!({}),
            spec,
        );
    }
    rig
}

#[test]
fn pages_in_any_order_have_every_object_once() {
    let mut rig = filled();
    let n = Path::parse("spec.n").expect("it parses");
    rig.shelf
        .declare(rig.pods, &[n], 1)
        .expect("it is declared");
    assert!(
        walk(&mut rig, &Query::default(), 5, |_| {}).is_empty(),
        "no kinds, no rows"
    );
    let orders = [
        Order::default(),
        Order::parse_orderby(["namespace", "name desc"]).expect("it parses"),
        Order::parse_orderby(["cluster desc", "created_at"]).expect("it parses"),
        Order::parse_orderby(["resource_version desc"]).expect("it parses"),
        Order::parse_sort("-spec.n,name").expect("it parses"),
    ];
    for order in orders {
        let query = Query {
            order: order.clone(),
            ..rig.query()
        };
        let at_once = walk(&mut rig, &query, 1000, |_| {});
        assert_eq!(at_once.len(), 24);
        for most in [1, 5, 23, 24] {
            assert_eq!(
                walk(&mut rig, &query, most, |_| {}),
                at_once,
                "{order:?} by {most}"
            );
        }
    }
}

#[test]
fn numbers_sort_as_numbers() {
    let mut rig = filled();
    let n = Path::parse("spec.n").expect("it parses");
    let query = Query {
        order: Order::parse_sort("-spec.n").expect("it parses"),
        ..rig.query()
    };
    assert!(
        rig.shelf.page(&query, 1).is_err(),
        "only declared fields can be sorted by"
    );
    rig.shelf
        .declare(rig.pods, &[n], 1)
        .expect("it is declared");
    let page = rig.shelf.page(&query, 3).expect("it works");
    let fields = page.items.iter();
    let fields = fields.map(|item| item.narrow.fields.replace(' ', ""));
    let first: Vec<String> = fields.collect();
    assert_eq!(
        first,
        [
            r#"{"spec.n":"10"}"#,
            r#"{"spec.n":"10"}"#,
            r#"{"spec.n":"9"}"#
        ]
    );
    let names = walk(&mut rig, &query, 24, |_| {});
    assert_eq!(names.len(), 24);
}

#[test]
fn objects_that_stay_are_visited_once_while_others_change() {
    let mut rig = filled();
    let mut scope = Predicate::default();
    scope.and(Predicate::one_of(Column::Namespace, ["a"]));
    let query = Query {
        scope,
        ..rig.query()
    };
    let mut count = 0;
    let names = walk(&mut rig, &query, 2, |rig| {
        count += 1;
        rig.put(
            0,
            "a",
            &format!("new{count}"),
            &format!("n{count}"),
            value!({}),
        );
        rig.delete(1, "a", "p04");
    });
    let once: BTreeSet<&String> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "nothing comes twice");
    for index in (0..24).step_by(2).filter(|index| *index != 4) {
        let name = format!("p{index:02}");
        assert!(
            names.iter().any(|found| found.ends_with(&name)),
            "{name} is missing"
        );
    }
}

#[test]
fn offsets_count_rows_and_foreign_tokens_are_refused() {
    let rig = filled();
    let query = Query {
        offset: 20,
        ..rig.query()
    };
    assert_eq!(rig.shelf.page(&query, 10).expect("it works").items.len(), 4);
    assert_eq!(rig.shelf.count(&query).expect("it works"), 24);
    let page = rig.shelf.page(&rig.query(), 1).expect("it works");
    let other = Query {
        order: Order::parse_orderby(["name"]).expect("it parses"),
        after: page.next,
        ..rig.query()
    };
    assert!(rig.shelf.page(&other, 1).is_err());
}

/// Rows of several members that a search finds by their bodies: few at first, and then many.
#[test]
fn searches_by_body_have_whole_rows_wherever_matches_are() {
    let mut rig = Rig::new();
    let matches = |number: usize| number.is_multiple_of(97) || number >= 1_900;
    for (member, name) in MEMBERS.iter().enumerate() {
        let change = |number: usize| {
            let spec = value!({"x": (if matches(number) { "wanted" } else { "other" })});
            let object = value!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": (format!("p{number:04}")), "namespace": "a", "uid": (format!("{name}-{number}")),
                    "resourceVersion": (number.to_string()), "creationTimestamp": "2022-03-25T00:00:00Z",
                },
                "spec": (spec),
            });
            change_to(name, object)
        };
        let batch = Batch {
            member: rig.members[member],
            kind: rig.pods,
            changes: (1..2_000).map(change).collect(),
            progress: Some(progress("1")),
        };
        rig.shelf.apply(&[batch], 1).expect("changes are written");
    }
    let mut query = rig.query();
    for requirement in parse_field_selector("spec.x=wanted").expect("it parses") {
        query.filter.and(Predicate::Term(Term::Field(requirement)));
    }
    let expected: Vec<String> = (1..2_000)
        .filter(|number| matches(*number))
        .flat_map(|number| (1..=3).map(move |member| format!("{member}/p{number:04}")))
        .collect();
    for most in [7, 50, 5_000] {
        assert_eq!(walk(&mut rig, &query, most, |_| {}), expected, "{most}");
    }
    assert_eq!(rig.shelf.count(&query).ok(), Some(expected.len() as u64));
    let page = rig.shelf.page(&query, 400).expect("the search works");
    for item in &page.items {
        let version = item.narrow.member_version.clone();
        let object = item.value(&version);
        let text = |keys: &[&str]| object.at(keys).and_then(Value::as_str).map(str::to_owned);
        assert_eq!(text(&["metadata", "uid"]), Some(item.narrow.uid.clone()));
        assert_eq!(text(&["spec", "x"]).as_deref(), Some("wanted"));
        assert_eq!(
            item.narrow.uid.split_once('-').map(|(_, number)| number),
            Some(&*version)
        );
    }
}
