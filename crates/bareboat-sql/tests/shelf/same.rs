//! The same objects and the same search give the same answer in a file and in every database.

use crate::rig::{change_to, kind, progress};
use crate::site::Site;
use crate::{cluster, maria};
use bareboat_api::{Value, labels::Selector, value};
use bareboat_shelf::{
    Batch, Column, Cursor, Order, Path, Predicate, Query, Settings, Shelf, SortColumn, Term,
    parse_field_selector, parse_where,
};
use bareboat_sql::MysqlShelf;
use proptest::prelude::*;
use std::sync::OnceLock;

const LABELS: [&str; 8] = [
    "app=web",
    "app!=web",
    "app",
    "!app",
    "app in (web,db)",
    "tier notin (1)",
    "tier>1",
    "x/y=a.b",
];
/// Longer than what some indexes have of a text.
const LONG: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
    nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";
const FIELDS: [&str; 8] = [
    "spec.node=n1",
    "spec.node!=n1",
    "spec.node",
    "!spec.node",
    "spec.size>5",
    "spec.node in (n2,)",
    "spec.list[].a=1",
    "spec.text=é\"",
];
const WHERES: [&str; 6] = [
    "name LIKE 'p%1'",
    "namespace = 'a' OR name = 'p3'",
    "NOT (namespace = 'a')",
    "created_at > '2022-03-25'",
    "cluster IN ('c1','nobody')",
    "owner_uid = 'o1' AND name <> 'p1'",
];
const ORDERS: [&str; 7] = [
    "name",
    "-spec.size,name",
    "spec.node",
    "-resource_version",
    "cluster,-name",
    "-created_at",
    "kind,-namespace",
];

#[derive(Clone, Debug)]
struct Thing {
    member: usize,
    object: Value,
}

fn thing() -> impl Strategy<Value = Thing> {
    let labels = prop_oneof![
        Just(value!({})),
        Just(value!({"app": "web", "tier": "1"})),
        Just(value!({"app": "db", "tier": "12"})),
        Just(value!({"x/y": "a.b"})),
        Just(value!({"app": "web2"})),
    ];
    let spec = prop_oneof![
        Just(value!({})),
        Just(value!({"node": "n1", "size": 3})),
        Just(value!({"node": "n2", "size": 20})),
        Just(value!({"size": "7Mi", "list": [{"a": 1}, {"a": 2}]})),
        Just(value!({"node": "", "text": "é\""})),
        Just(value!({"size": (-4), "node": "N1"})),
        Just(value!({"size": " 1e1", "node": "n1 "})),
        Just(value!({"size": 2.5, "node": (LONG)})),
    ];
    (0..2_usize, prop::sample::select(vec!["a", "b", ""]), 0..6_u32, 0..3_u32, labels, spec).prop_map(
        |(member, namespace, name, owner, labels, spec)| {
            let mut metadata = value!({
                "name": (format!("p{name}")), "uid": (format!("u{member}{namespace}{name}")), "labels": labels,
                "resourceVersion": ((name * 7 + owner).to_string()),
                "creationTimestamp": (format!("2022-03-2{}T00:00:00Z", 3 + owner)),
                "ownerReferences": [{"uid": (format!("o{owner}")), "controller": true}],
            });
            if !namespace.is_empty() {
                metadata.make_object().insert("namespace", Value::string(namespace));
            }
            let object = value!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            Thing { member, object }
        },
    )
}

/// What a query asks for: indexes into `LABELS`, `FIELDS`, `WHERES` and `ORDERS`.
type Choice = (Option<usize>, Option<usize>, Option<usize>, Option<usize>);

fn query() -> impl Strategy<Value = Choice> {
    (
        prop::option::of(0..LABELS.len()),
        prop::option::of(0..FIELDS.len()),
        prop::option::of(0..WHERES.len()),
        prop::option::of(0..ORDERS.len()),
    )
}

/// Fills a shelf and asks it.
fn answers(shelf: &Shelf, things: &[Thing], queries: &[Choice]) -> Vec<String> {
    let members = ["c1", "c2"].map(|name| (name, shelf.add_member(name, "").unwrap().0));
    let pods = shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    let paths = ["spec.node", "spec.size"].map(|path| Path::parse(path).unwrap());
    shelf.declare(pods, &paths, 1).unwrap();
    for thing in things {
        let (name, member) = members[thing.member];
        let batch = Batch {
            member,
            kind: pods,
            changes: vec![change_to(name, thing.object.clone())],
            progress: Some(progress("1")),
        };
        shelf.apply(&[batch], 1).unwrap();
    }
    let mut out = Vec::new();
    for (label, field, condition, order) in queries {
        let mut query = Query {
            kinds: vec![pods],
            ..Query::default()
        };
        if let Some(label) = label {
            let selector = Selector::parse(LABELS[*label]).unwrap();
            for one in selector.requirements() {
                query.filter.and(Predicate::Term(Term::Label(one.clone())));
            }
        }
        if let Some(field) = field {
            for one in parse_field_selector(FIELDS[*field]).unwrap() {
                query.filter.and(Predicate::Term(Term::Field(one)));
            }
        }
        if let Some(condition) = condition {
            query
                .filter
                .and(parse_where(WHERES[*condition], &[]).unwrap());
        }
        if let Some(order) = order {
            query.order = Order::parse_sort(ORDERS[*order]).unwrap();
        }
        out.push(format!(
            "{} {:?}",
            shelf.count(&query).unwrap(),
            [label, field, condition, order]
        ));
        let by = [
            SortColumn::Column(Column::Cluster),
            SortColumn::Field(Path::parse("spec.node").unwrap()),
        ];
        out.push(format!("{:?}", shelf.summary(&query, &by).unwrap().groups));
        // Pages of two, each from the token of the one before.
        loop {
            let page = shelf.page(&query, 2).unwrap();
            let directory = shelf.directory();
            for item in &page.items {
                let row = &item.narrow;
                let cluster = directory.member_name(row.member);
                out.push(format!(
                    "{cluster}/{}/{} {:?}",
                    row.namespace,
                    row.name,
                    item.value("1")
                ));
            }
            let Some(next) = page.next else {
                break;
            };
            query.after = Cursor::parse(&next.print());
        }
    }
    out
}

/// The MariaDB server of the tests; `None` if it is not installed.
fn mariadb() -> Option<&'static maria::Cluster> {
    static SHARED: OnceLock<Option<maria::Cluster>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| maria::Cluster::start(&[])).as_ref();
    if shared.is_none() {
        let required = std::env::var("CI").as_deref() == Ok("true");
        assert!(!required, "MariaDB is missing");
        eprintln!("not compared: MariaDB is not installed");
    }
    shared
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_search_finds_the_same_everywhere(
        things in prop::collection::vec(thing(), 1..24),
        queries in prop::collection::vec(query(), 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let file = Shelf::open(dir.path().join("fleet.db"), Settings::default()).unwrap();
        let site = Site(cluster::shared().fresh());
        let database = site.open(Settings::default());
        let expected = answers(&file, &things, &queries);
        prop_assert_eq!(&expected, &answers(&database, &things, &queries), "PostgreSQL");
        if let Some(cluster) = mariadb() {
            let engine = MysqlShelf::open(&cluster.fresh(), &Settings::default()).unwrap();
            let database = Shelf::over(Box::new(engine), Settings::default()).unwrap();
            prop_assert_eq!(&expected, &answers(&database, &things, &queries), "MariaDB");
        }
    }
}
