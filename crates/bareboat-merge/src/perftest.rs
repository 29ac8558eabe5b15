#![allow(clippy::unwrap_used)]
use crate::{apply::*, apply::tests::transcripts::deployment, fields::FieldSet};
use bareboat_api::{typing::TypeNode, Value};
struct V(crate::testing::Node, FieldSet);
impl Versions for V {
    fn type_of(&self, v: &str) -> Option<&dyn TypeNode> { (v == "apps/v1").then_some(&self.0 as _) }
    fn reset_fields(&self, _: &str) -> Option<&FieldSet> { Some(&self.1) }
}
fn time(what: &str, n: u32, mut f: impl FnMut()) {
    for _ in 0..200 { f(); }
    let t = std::time::Instant::now();
    for _ in 0..n { f(); }
    println!("{what}: {:?}", t.elapsed() / n);
}
#[test]
fn perf() {
    let text = std::fs::read_to_string(crate::test_vectors("transcript").unwrap().join("writes.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let v = V(deployment(), FieldSet::of_names(&["status"]));
    let fm = FieldManager { api_version: "apps/v1", kind: "Deployment", versions: &v, converter: &NoConversion, empty: None };
    let w = |m| Writer { manager: m, subresource: "", now: "2024-01-01T00:00:00Z" };
    let config = lines[16].at(&["request", "body"]).unwrap().clone();
    let live = lines[16].at(&["answer", "body"]).unwrap().clone();
    let two = lines[21].at(&["answer", "body"]).unwrap().clone();
    println!("object {} bytes, managed {}", live.to_json().len(), crate::managed::of(&live).unwrap().to_json().len());
    time("clone live", 20000, || drop(live.clone()));
    time("equal", 20000, || assert!(live == live.clone()));
    let mut new = two.clone();
    let n = 20000;
    let mut i = 0;
    time("update: same manager changes replicas (incl. clone of new)", n, || {
        i += 1;
        new.at_mut(&["spec"]).unwrap().make_object().insert("replicas", Value::Int(i));
        let r = fm.update(Some(&two), new.clone(), w("upd")).unwrap(); std::hint::black_box(r);
    });
    time("update: other manager changes replicas", n, || {
        let r = fm.update(Some(&two), new.clone(), w("x")).unwrap(); std::hint::black_box(r);
    });
    time("update: nothing", n, || {
        let r = fm.update(Some(&two), two.clone(), w("x")).unwrap(); std::hint::black_box(r);
    });
    time("create", n, || {
        let mut o = live.clone(); crate::managed::take(&mut o);
        let r = fm.update(None, o, w("x")).unwrap(); std::hint::black_box(r);
    });
    time("apply same", n, || { std::hint::black_box(fm.apply(Some(&live), &config, false, w("one")).unwrap()); });
    time("apply create", n, || { std::hint::black_box(fm.apply(None, &config, false, w("one")).unwrap()); });
    let mut changed = config.clone();
    changed.at_mut(&["spec"]).unwrap().make_object().insert("replicas", Value::Int(77));
    time("apply change", n, || { std::hint::black_box(fm.apply(Some(&live), &changed, false, w("one")).unwrap()); });
    let less = lines[23].at(&["request", "body"]).unwrap().clone();
    time("apply drops (prune)", n, || { std::hint::black_box(fm.apply(Some(&live), &less, false, w("one")).unwrap()); });
    time("apply same, two managers", n, || { std::hint::black_box(fm.apply(Some(&two), &less, true, w("one")).unwrap()); });
}
