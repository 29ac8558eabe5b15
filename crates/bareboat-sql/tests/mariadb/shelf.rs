//! The shelf in MariaDB: indexes that all servers use, rows in parts, and what an idle server asks.

use crate::cluster::Cluster;
use crate::rig::{Rig, change_to, kind, progress};
use crate::site::Site;
use bareboat_api::{labels::Selector, value};
use bareboat_shelf::{
    Batch, Bounds, Column, Comparison, Literal, Predicate, Query, Settings, SortColumn, Term,
};
use std::time::Duration;

fn labelled(rig: &Rig, selector: &str) -> Query {
    let mut query = rig.query();
    for one in Selector::parse(selector).unwrap().requirements() {
        query.filter.and(Predicate::Term(Term::Label(one.clone())));
    }
    query
}

#[test]
fn an_index_is_used_by_all_servers_and_dropped_after_all_have_left_it() {
    let mut rig = Rig::new();
    rig.put(0, "a", "p1", "u1", value!({"app": "web"}));
    let other = rig.site.open(Settings::default());
    let query = labelled(&rig, "app=web");
    for _ in 0..12 {
        other.page(&query, 5).unwrap();
    }
    other.upkeep(1000).unwrap();
    assert_eq!(other.indexed(), ["label app"]);
    assert!(rig.shelf.indexed().is_empty(), "no news have arrived yet");
    rig.shelf.refresh().unwrap();
    assert_eq!(rig.shelf.indexed(), ["label app"]);
    assert_eq!(rig.names(&query), ["c1/a/p1"]);
    let columns = "SELECT count(*) FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'object' AND column_name LIKE 'x%'";
    // A day later it was not used; a server that has not heard so still finds its rows.
    let day = 200_000_000;
    other.page(&query, 5).unwrap();
    other.upkeep(day).unwrap();
    assert!(!other.indexed().is_empty(), "it was used until now");
    other.upkeep(2 * day).unwrap();
    assert!(other.indexed().is_empty());
    assert_eq!(rig.site.ask(columns), "1");
    assert_eq!(rig.names(&query), ["c1/a/p1"]);
    rig.shelf.refresh().unwrap();
    assert!(rig.shelf.indexed().is_empty());
    other.upkeep(2 * day + 61_000).unwrap();
    assert_eq!(rig.site.ask(columns), "0");
    assert_eq!(rig.names(&query), ["c1/a/p1"]);
}

#[test]
fn an_index_that_was_not_completed_is_made_again() {
    let rig = Rig::new();
    // A server died while it made the index of a field.
    rig.site.ask(
        "INSERT INTO learnt (sort, `key`, used) VALUES ('field', 'spec.nodeName', -1);
         ALTER TABLE object ADD COLUMN x1 VARBINARY(200) GENERATED ALWAYS AS (LEFT(uid, 200)) VIRTUAL",
    );
    let path = bareboat_shelf::Path::parse("spec.nodeName").unwrap();
    rig.shelf.declare(rig.pods, &[path], 5).unwrap();
    assert!(rig.shelf.indexed().is_empty());
    rig.shelf.upkeep(100_000).unwrap();
    rig.shelf.upkeep(100_001).unwrap();
    assert_eq!(rig.shelf.indexed(), ["field spec.nodeName"]);
}

#[test]
fn a_search_that_reads_many_parts_finds_every_row_once() {
    let site = Site::new();
    let shelf = site.open(Settings::default());
    let (member, _) = shelf.add_member("c1", "").unwrap();
    let pods = shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    let object = |number: i64| {
        value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": (format!("p{number}")), "namespace": (format!("n{}", number % 7)), "uid": (format!("u{number}")),
                "resourceVersion": (number.to_string()),
            },
            "spec": {"size": (number % 10)},
        })
    };
    let changes: Vec<_> = (0..2500)
        .map(|number| change_to("c1", object(number)))
        .collect();
    let batch = Batch {
        member,
        kind: pods,
        changes,
        progress: Some(progress("1")),
    };
    shelf.apply(&[batch], 1).unwrap();
    let mut query = Query {
        kinds: vec![pods],
        // A busy machine may take longer than clients wait.
        bounds: Bounds {
            time: Duration::from_secs(60),
            ..Bounds::default()
        },
        ..Query::default()
    };
    assert_eq!(shelf.count(&query).unwrap(), 2500);
    // A field that is not declared, and a comparison that SQL does not know.
    for one in bareboat_shelf::parse_field_selector("spec.size>4").unwrap() {
        query.filter.and(Predicate::Term(Term::Field(one)));
    }
    assert_eq!(shelf.count(&query).unwrap(), 1250);
    for sort in ["", "-name"] {
        query.order = bareboat_shelf::Order::parse_sort(sort).unwrap();
        query.offset = 3;
        let page = shelf.page(&query, usize::MAX).unwrap();
        assert_eq!(page.items.len(), 1247, "{sort}");
        query.offset = 0;
        let mut names: Vec<String> = Vec::new();
        loop {
            let page = shelf.page(&query, 600).unwrap();
            names.extend(page.items.iter().map(|item| item.narrow.name.clone()));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(names.len(), 1250, "{sort}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 1250, "{sort}");
    }
    query.order = bareboat_shelf::Order::default();
    let by = [SortColumn::Column(Column::Namespace)];
    let summary = shelf.summary(&query, &by).unwrap();
    let all: u64 = summary.groups.iter().map(|group| group.count).sum();
    assert_eq!((summary.groups.len(), all), (7, 1250));
}

#[test]
fn texts_that_differ_only_in_case_or_spaces_are_not_the_same() {
    let mut rig = Rig::new();
    for (name, uid) in [("p1", "u"), ("P1", "U"), ("p1 ", "u ")] {
        rig.put(0, "a", name, uid, value!({}));
    }
    assert_eq!(rig.names(&rig.query()), ["c1/a/P1", "c1/a/p1", "c1/a/p1 "]);
    let mut query = rig.query();
    let same = Comparison::In(vec![Literal::Text("p1".to_owned())]);
    let term = Term::Column(Column::Name, same);
    query.filter.and(Predicate::Term(term));
    assert_eq!(rig.names(&query), ["c1/a/p1"]);
}

#[test]
fn an_idle_server_asks_one_statement_at_a_time() {
    let cluster = Cluster::start(&[]).unwrap();
    let shelf = Site(cluster.fresh()).open(Settings::default());
    let asked = || -> usize {
        let status = cluster.ask("SHOW GLOBAL STATUS LIKE 'Questions'").unwrap();
        status.rsplit('|').next().unwrap().parse().unwrap()
    };
    shelf.refresh().unwrap();
    let before = asked();
    for _ in 0..20 {
        shelf.refresh().unwrap();
    }
    let statements = asked() - before;
    assert!(statements <= 25, "{statements} statements for 20 looks");
}
