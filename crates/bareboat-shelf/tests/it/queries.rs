//! Searches by owner, by SQL, with bounds, and summaries.

use crate::rig::{Rig, change_to, kind, progress};
use bareboat_api::value;
use bareboat_shelf::{
    Batch, Bounds, Column, Owner, OwnerSearch, Path, Predicate, Query, ShelfError, SortColumn,
    Term, parse_field_selector, parse_where,
};
use std::time::Duration;

fn owned(rig: &Rig, member: usize, resource: &str, name: &str, uid: &str, owner: &str) {
    let kind = rig
        .shelf
        .add_kind(&kind("apps", resource, resource))
        .expect("a kind is added");
    let object = value!({
        "apiVersion": "apps/v1", "kind": resource,
        "metadata": {
            "name": name, "namespace": "a", "uid": uid, "resourceVersion": "1",
            "ownerReferences": [{"uid": owner, "controller": true}],
        },
    });
    let batch = Batch {
        member: rig.members[member],
        kind,
        changes: vec![change_to(crate::rig::MEMBERS[member], object)],
        progress: Some(progress("1")),
    };
    rig.shelf.apply(&[batch], 1).expect("it is written");
}

#[test]
fn descendants_are_found_over_generations_and_members() {
    let rig = Rig::new();
    for (member, cluster) in ["x", "y"].iter().enumerate() {
        owned(
            &rig,
            member,
            "deployments",
            "web",
            &format!("d{cluster}"),
            "",
        );
        owned(
            &rig,
            member,
            "replicasets",
            "web-1",
            &format!("r{cluster}"),
            &format!("d{cluster}"),
        );
    }
    let deployments = rig.shelf.directory().kind("apps", "deployments");
    let search = |seniority, members: &[usize], kind| {
        let mut uids = rig
            .shelf
            .owners(&OwnerSearch {
                owner: Owner::Name {
                    name: "web".to_owned(),
                    kind,
                },
                seniority,
                members: members.iter().map(|member| rig.members[*member]).collect(),
                namespaces: vec!["a".to_owned()],
            })
            .expect("it works");
        uids.sort();
        uids
    };
    assert_eq!(search(0, &[0, 1], deployments), ["dx", "dy"]);
    assert_eq!(search(1, &[0, 1], None), ["rx", "ry"]);
    assert_eq!(search(1, &[0], None), ["rx"]);
    assert_eq!(search(2, &[0], None), Vec::<String>::new());
    let by_uid = OwnerSearch {
        owner: Owner::Uid("dx".to_owned()),
        seniority: 1,
        members: rig.members.clone(),
        namespaces: Vec::new(),
    };
    assert_eq!(rig.shelf.owners(&by_uid).expect("it works"), ["rx"]);
}

#[test]
fn conditions_in_sql_answer_as_sql_does() {
    let mut rig = Rig::new();
    rig.put_object(
        0,
        "kube-system",
        "dns",
        "u1",
        value!({}),
        value!({"replicas": 3}),
    );
    rig.put_object(
        1,
        "default",
        "web",
        "u2",
        value!({}),
        value!({"replicas": 20}),
    );
    rig.put_object(1, "other", "we_b", "u3", value!({}), value!({}));
    let found = |text: &str| {
        let mut query = rig.query();
        query.filter.and(parse_where(text, &[]).expect("it parses"));
        rig.names(&query)
    };
    assert_eq!(
        found("(cluster='c1') OR (namespace IN ('kube-system','default'))"),
        ["c2/default/web", "c1/kube-system/dns"]
    );
    assert_eq!(found("object->>'$.spec.replicas' > 3"), ["c2/default/web"]);
    assert_eq!(
        found("NOT (object->>'$.spec.replicas' > 3)"),
        ["c1/kube-system/dns"],
        "NULL is neither"
    );
    assert_eq!(
        found("JSON_EXTRACT(object, '$.spec.replicas') IS NULL"),
        ["c2/other/we_b"]
    );
    assert_eq!(found(r"name LIKE 'we\_%'"), ["c2/other/we_b"]);
    assert_eq!(
        found(
            "created_at >= '2022-03-25' AND created_at < '2022-03-26 00:00:00' AND NOT cluster = 'c2'"
        ),
        ["c1/kube-system/dns"]
    );
    assert_eq!(
        found("resource_version >= 2 AND name <> 'web'"),
        ["c2/other/we_b"]
    );
    assert_eq!(found("deleted_at IS NOT NULL"), Vec::<String>::new());
}

#[test]
fn summaries_count_combinations() {
    let mut rig = Rig::new();
    for index in 0..9 {
        let spec = value!({"phase": (["Running", "Failed"][usize::from(index > 5)])});
        rig.put_object(
            index % 2,
            "a",
            &format!("p{index}"),
            &format!("u{index}"),
            value!({}),
            spec,
        );
    }
    rig.put(2, "a", "none", "none", value!({}));
    let phase = Path::parse("spec.phase").expect("it parses");
    let by = [
        SortColumn::Column(Column::Cluster),
        SortColumn::Field(phase.clone()),
    ];
    let summary = rig.shelf.summary(&rig.query(), &by).expect("it works");
    let text: Vec<String> = summary
        .groups
        .iter()
        .map(|group| {
            let values: Vec<&str> = group
                .values
                .iter()
                .map(|value| value.as_deref().unwrap_or("-"))
                .collect();
            format!("{} {}", values.join(" "), group.count)
        })
        .collect();
    assert_eq!(
        text,
        [
            "c1 Running 3",
            "c2 Running 3",
            "c1 Failed 2",
            "c2 Failed 1",
            "c3 - 1"
        ]
    );
    rig.shelf
        .declare(rig.pods, &[phase], 1)
        .expect("it is declared");
    assert_eq!(
        rig.shelf
            .summary(&rig.query(), &by)
            .expect("it works")
            .groups,
        summary.groups
    );
}

#[test]
fn a_search_that_reads_too_much_names_the_field() {
    let mut rig = Rig::new();
    for index in 0..50 {
        rig.put_object(
            0,
            "a",
            &format!("p{index}"),
            &format!("u{index}"),
            value!({}),
            value!({"x": ("y".repeat(1000))}),
        );
    }
    let mut query = Query {
        bounds: Bounds {
            time: Duration::from_secs(60),
            bytes: 10_000,
        },
        ..rig.query()
    };
    for requirement in parse_field_selector("spec.z=1").expect("it parses") {
        query.filter.and(Predicate::Term(Term::Field(requirement)));
    }
    match rig.shelf.page(&query, 10) {
        Err(ShelfError::TooLong { hint }) => assert!(hint.contains("spec.z"), "{hint}"),
        other => panic!("{other:?}"),
    }
    assert!(rig.shelf.count(&query).is_err());
}

#[test]
fn pages_of_one_request_share_its_bounds() {
    let mut rig = Rig::new();
    for index in 0..50 {
        let wanted = ["web", "other"][index % 2];
        rig.put_object(
            0,
            "a",
            &format!("p{index:02}"),
            &format!("u{index}"),
            value!({}),
            value!({"z": wanted, "x": ("web".repeat(300))}),
        );
    }
    let field = |text: &str| {
        let mut query = Query {
            bounds: Bounds {
                time: Duration::from_secs(60),
                bytes: 20_000,
            },
            ..rig.query()
        };
        for requirement in parse_field_selector(text).expect("it parses") {
            query.filter.and(Predicate::Term(Term::Field(requirement)));
        }
        query
    };
    // Every body contains the text, so half of them are read in vain.
    let mut query = field("spec.z=web");
    let mut pages = 0;
    let refused = loop {
        let page = match rig.shelf.page(&query, 2) {
            Ok(page) => page,
            Err(error) => break error,
        };
        assert!(page.left.bytes < query.bounds.bytes);
        (query.after, query.bounds) = (page.next, page.left);
        pages += 1;
        assert!(pages < 20, "the bounds are never reached");
    };
    assert!(matches!(refused, ShelfError::TooLong { .. }), "{refused:?}");
    assert!(pages >= 2, "{pages}");
    // No body contains this one: a glance is enough, and does not count.
    let query = field("spec.z=nobody");
    let page = rig.shelf.page(&query, 2).expect("it is within its bounds");
    assert_eq!((page.items.len(), page.left.bytes), (0, 20_000));
    assert_eq!(rig.shelf.count(&query).expect("it is within its bounds"), 0);
}

#[test]
fn a_page_judges_few_rows_beyond_its_end() {
    let rig = Rig::new();
    let changes = (0..4000).map(|index| {
        let object = value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": (format!("p{index:04}")), "namespace": "a", "uid": (format!("u{index:04}")), "resourceVersion": "1",
            },
            "spec": {"z": (if index % 5 == 0 { "web" } else { "job" })},
        });
        change_to(crate::rig::MEMBERS[0], object)
    });
    let batch = Batch {
        member: rig.members[0],
        kind: rig.pods,
        changes: changes.collect(),
        progress: Some(progress("1")),
    };
    rig.shelf.apply(&[batch], 1).expect("it is written");
    let mut query = rig.query();
    for requirement in parse_field_selector("spec.z!=job").expect("it parses") {
        query.filter.and(Predicate::Term(Term::Field(requirement)));
    }
    query.bounds.bytes = 1 << 30;
    let page = rig
        .shelf
        .page(&query, 500)
        .expect("it is within its bounds");
    assert_eq!(page.items.len(), 500);
    // All bodies have the same length. The page ends before row 2501, and four of five rows are read in vain.
    let in_vain = (query.bounds.bytes - page.left.bytes) / page.items[0].body.len();
    assert!((2000..2256).contains(&in_vain), "{in_vain}");
}

#[test]
fn names_contain_texts_and_no_patterns() {
    let mut rig = Rig::new();
    for name in ["test-1", "my-test", "te_st", "other"] {
        rig.put(0, "a", name, name, value!({}));
    }
    let found = |part: &str| {
        let mut query = rig.query();
        query.filter.and(Predicate::column(
            Column::Name,
            bareboat_shelf::Comparison::Contains(part.to_owned()),
        ));
        rig.names(&query).len()
    };
    assert_eq!((found("test"), found("te_st"), found("%")), (2, 1, 0));
}
