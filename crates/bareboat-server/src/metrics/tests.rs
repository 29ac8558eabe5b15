//! Metrics: names, labels, and the text that is served.

use super::*;
use crate::kinds::catalog::{Backing, Catalog};
use crate::kinds::stored_kind::StoredKind;
use crate::reply::plain_text;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use bareboat_api::kind::{Kind, Names, PublishedSchema, Scope};
use bareboat_storage::{MemoryBackend, Store, StoreOptions, StoreStats};
use http::{HeaderMap, Method, StatusCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn readings() -> Readings {
    Readings {
        store: StoreStats::default(),
        under_way: 0,
        connections: (0, 0),
        unread_bytes: 0,
        in_flight: (0, 0),
        objects: vec![(String::new(), "pods".to_owned(), 3)],
    }
}

fn print(metrics: &Metrics) -> String {
    let bytes = metrics.print(&readings()).expect("metrics print");
    String::from_utf8(bytes).expect("text")
}

fn serve(catalog: &Catalog, store: &Store, group: &str) {
    let version = crate::openapi::sample::version("v1", PublishedSchema::Untyped, Vec::new());
    let mut kind = Kind::new(group, Names::new("things", "Thing"), Scope::Cluster);
    kind = kind.into_custom();
    let served = StoredKind::new(kind.with_version(version), store);
    catalog.insert(Backing::Stored(Arc::new(served)));
}

fn list(metrics: &Metrics, catalog: &Catalog, group: &str) {
    let query = Query::default();
    let path = format!("/apis/{group}/v1/things");
    let info = RequestInfo::parse(&Method::GET, &path, &query).expect("a path");
    let answered = Answered {
        remote: None,
        sight: Sight::of(&Method::GET, &HeaderMap::new(), Some(&query)),
        info: Some(&info),
        kind: None,
        started: Instant::now(),
        took: Duration::ZERO,
        terminated: false,
    };
    let mut response = plain_text(StatusCode::OK, "ok");
    metrics
        .requests
        .observe(&catalog.table(), &answered, &mut response);
}

fn count(text: &str, labels: &str) -> usize {
    text.lines()
        .filter(|line| line.starts_with("apiserver_request_total{") && line.contains(labels))
        .count()
}

#[test]
fn label_sets_are_bounded_and_make_room_for_kinds_that_are_served() {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default());
    let store = store.expect("a store in memory");
    let catalog = Catalog::default();
    let metrics = Metrics::new(Vec::new()).expect("metrics");
    for number in 0..2_100 {
        let group = format!("g{number}");
        serve(&catalog, &store, &group);
        list(&metrics, &catalog, &group);
    }
    let text = print(&metrics);
    assert_eq!(count(&text, "resource=\"things\""), 2_000);
    let overflow = text
        .lines()
        .find(|line| line.starts_with("apiserver_request_total{") && line.contains("\"other\""))
        .expect("those without room share labels");
    assert!(overflow.ends_with(" 100"), "{overflow}");
    for number in 0..2_000 {
        catalog.remove(&format!("g{number}"), "things");
    }
    list(&metrics, &catalog, "g2050");
    let text = print(&metrics);
    assert_eq!(count(&text, "group=\"g2050\""), 1, "there is room again");
    assert_eq!(
        count(&text, "group=\"g5\""),
        0,
        "what is not served is forgotten"
    );
    // A resource that is not served has no labels.
    list(&metrics, &catalog, "nowhere");
    assert_eq!(count(&print(&metrics), "nowhere"), 0);
}

#[test]
fn label_values_are_escaped() {
    let odd = IntCounterVec::new(Opts::new("odd_total", "A\nhelp."), &["name"]).expect("a counter");
    odd.with_label_values(&["x\"} 1\nforged_total 2\\"]).inc();
    let metrics = Metrics::new(vec![Box::new(odd)]).expect("metrics");
    let text = print(&metrics);
    assert!(
        text.contains("odd_total{name=\"x\\\"} 1\\nforged_total 2\\\\\"} 1\n"),
        "{text}"
    );
    assert!(!text.lines().any(|line| line.starts_with("forged")));
}

#[test]
fn two_metrics_of_one_name_are_refused() {
    let collector = || IntCounter::new("bareboat_store_revision", "Taken.").expect("a counter");
    assert!(Metrics::new(vec![Box::new(collector())]).is_err());
}
