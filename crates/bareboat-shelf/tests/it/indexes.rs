//! Indexes change how long a search takes, never what it finds.

use crate::rig::Rig;
use bareboat_api::value;
use bareboat_shelf::{Path, Predicate, Settings, Term, parse_field_selector};
use std::time::Duration;

fn labelled(rig: &Rig, selector: &str) -> bareboat_shelf::Query {
    let selector = bareboat_api::labels::Selector::parse(selector).expect("it parses");
    let mut query = rig.query();
    for requirement in selector.requirements() {
        query
            .filter
            .and(Predicate::Term(Term::Label(requirement.clone())));
    }
    query
}

/// Some databases have one index for everything.
fn assert_indexed(rig: &Rig, wanted: &[&str]) {
    match crate::site::LEARNS {
        true => assert_eq!(rig.shelf.indexed(), wanted),
        false => assert!(rig.shelf.indexed().is_empty()),
    }
}

#[test]
fn a_label_gets_an_index_after_some_use_and_loses_it_unused() {
    let settings = Settings {
        forget_after: Duration::from_secs(60),
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    rig.put(0, "a", "p1", "u1", value!({"app": "web", "tier": "1"}));
    rig.put(1, "a", "p2", "u2", value!({"my/app": "web", "tier": "12"}));
    rig.put(2, "a", "p3", "u3", value!({"app": "webshop"}));
    let found = |rig: &Rig| {
        let mut all = Vec::new();
        for selector in [
            "app=web",
            "app!=web",
            "app",
            "!app",
            "app in (web,webshop)",
            "app notin (web)",
            "tier>2",
            "my/app=web",
        ] {
            all.push((selector, rig.names(&labelled(rig, selector))));
        }
        all
    };
    let before = found(&rig);
    assert_eq!(before[0].1, ["c1/a/p1"]);
    assert_eq!(before[1].1, ["c2/a/p2", "c3/a/p3"]);
    assert_eq!(before[6].1, ["c2/a/p2"]);
    rig.shelf.upkeep(0).expect("upkeep works");
    assert_indexed(&rig, &[]);
    found(&rig);
    rig.shelf.upkeep(0).expect("upkeep works");
    assert_indexed(&rig, &["label app"]);
    assert_eq!(found(&rig), before);
    rig.put(0, "a", "p4", "u4", value!({"app": "web"}));
    assert_eq!(
        rig.names(&labelled(&rig, "app=web")),
        ["c1/a/p1", "c1/a/p4"]
    );
    rig.reopen(false);
    assert_eq!(
        rig.names(&labelled(&rig, "app=web")),
        ["c1/a/p1", "c1/a/p4"]
    );
    rig.shelf.upkeep(1_000_000_000_000).expect("upkeep works");
    rig.shelf.upkeep(2_000_000_000_000).expect("upkeep works");
    assert_indexed(&rig, &[]);
    assert_eq!(
        rig.names(&labelled(&rig, "app=web")),
        ["c1/a/p1", "c1/a/p4"]
    );
}

#[test]
fn declared_fields_answer_as_bodies_do() {
    let mut rig = Rig::new();
    for (index, node) in ["n1", "n2", ""].iter().enumerate() {
        let number = i32::try_from(index).unwrap_or(0);
        let spec = match node.is_empty() {
            true => value!({"priority": (number)}),
            false => value!({"nodeName": (*node), "priority": (number * 10)}),
        };
        rig.put_object(
            index,
            "a",
            &format!("p{index}"),
            &format!("u{index}"),
            value!({}),
            spec,
        );
    }
    let selectors = [
        "spec.nodeName=n1",
        "spec.nodeName!=n1",
        "spec.nodeName",
        "!spec.nodeName",
        "spec.priority>5",
        "spec.nodeName in (n1,n2)",
    ];
    let found = |rig: &Rig| {
        let search = |selector: &&str| {
            let mut query = rig.query();
            for requirement in parse_field_selector(selector).expect("it parses") {
                query.filter.and(Predicate::Term(Term::Field(requirement)));
            }
            rig.names(&query)
        };
        selectors.iter().map(search).collect::<Vec<_>>()
    };
    let before = found(&rig);
    assert_eq!(before[0], ["c1/a/p0"]);
    assert_eq!(before[1], ["c2/a/p1", "c3/a/p2"]);
    assert_eq!(before[4], ["c2/a/p1"]);
    let paths =
        ["spec.nodeName", "spec.priority"].map(|path| Path::parse(path).expect("it parses"));
    rig.shelf
        .declare(rig.pods, &paths, 1)
        .expect("it is declared");
    assert_indexed(&rig, &["field spec.nodeName", "field spec.priority"]);
    assert_eq!(found(&rig), before);
    rig.put_object(0, "a", "p9", "u9", value!({}), value!({"nodeName": "n1"}));
    assert_eq!(found(&rig)[0], ["c1/a/p0", "c1/a/p9"]);
}

#[test]
fn long_texts_are_told_apart_by_their_ends() {
    let mut rig = Rig::new();
    let path = Path::parse("spec.nodeName").expect("it parses");
    rig.shelf
        .declare(rig.pods, &[path], 1)
        .expect("it is declared");
    let texts = [199, 200, 300].map(|length| "n".repeat(length));
    for (index, text) in texts.iter().enumerate() {
        let name = format!("p{index}");
        let spec = value!({"nodeName": (text.as_str())});
        rig.put_object(0, "a", &name, &name, value!({}), spec);
    }
    let other = format!("{}x", texts[2]);
    let found = |selector: String| {
        let mut query = rig.query();
        for requirement in parse_field_selector(&selector).expect("it parses") {
            query.filter.and(Predicate::Term(Term::Field(requirement)));
        }
        rig.names(&query)
    };
    for (index, text) in texts.iter().enumerate() {
        let name = format!("c1/a/p{index}");
        assert_eq!(found(format!("spec.nodeName={text}")), [name.as_str()]);
        assert_eq!(found(format!("spec.nodeName!={text}")).len(), 2);
        assert_eq!(found(format!("spec.nodeName in ({text},{other})")), [name]);
    }
    assert!(found(format!("spec.nodeName={other}")).is_empty());
    assert_eq!(found(format!("spec.nodeName!={other}")).len(), 3);
}
