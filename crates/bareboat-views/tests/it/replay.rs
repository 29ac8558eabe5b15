//! A property: what a watch sends from a version on, applied to the list at that version, gives the list now.

use crate::rig::{Events, Rig, name, pod};
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::{collection, prop_oneof, proptest};
use std::collections::BTreeMap;

const PODS: &str = "/apis/clusterpedia.io/v1beta1/resources/api/v1/pods";

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, bool),
    Delete(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u8, 0..4_u8, any::<bool>()).prop_map(|(member, name, runs)| Step::Put(member, name, runs)),
        1 => (0..3_u8, 0..4_u8).prop_map(|(member, name)| Step::Delete(member, name)),
    ]
}

impl Step {
    fn take(&self, rig: &Rig) {
        let member = |number: &u8| ["c1", "c2", "c3"][usize::from(*number)];
        match self {
            Step::Put(cluster, name, runs) => {
                let phase = if *runs { "Running" } else { "Failed" };
                rig.put(member(cluster), pod("a", &format!("p{name}"), phase));
            }
            Step::Delete(cluster, name) => {
                rig.delete(member(cluster), "Pod", "a", &format!("p{name}"));
            }
        }
    }
}

type State = BTreeMap<String, String>;

async fn state(rig: &Rig, query: &str) -> (State, String) {
    let body = rig.get(&format!("{PODS}?{query}")).await.expect(200).json();
    let items = body["items"].as_array().expect("items").iter();
    let state = items.map(|item| (name(item), item["status"]["phase"].to_string()));
    let version = body["metadata"]["resourceVersion"].as_str().unwrap_or("");
    (state.collect(), version.to_owned())
}

async fn apply(events: &mut Events, state: &mut State, last: &str) {
    loop {
        let event = events.next().await.expect("the watch goes on");
        let object = &event["object"];
        let key = name(object);
        if key.ends_with("/last") {
            assert_eq!(key, last);
            return;
        }
        match event["type"].as_str() {
            Some("DELETED") => drop(state.remove(&key)),
            _ => drop(state.insert(key, object["status"]["phase"].to_string())),
        }
    }
}

async fn check(before: Vec<Step>, missed: Vec<Step>, live: Vec<Step>, query: &str) {
    let rig = Rig::start().await;
    before.iter().for_each(|step| step.take(&rig));
    let (mut state, version) = self::state(&rig, query).await;
    missed.iter().for_each(|step| step.take(&rig));
    let path = format!("{PODS}?watch=true&resourceVersion={version}&{query}");
    let mut events = rig.watch(&path).await;
    live.iter().for_each(|step| step.take(&rig));
    // The events of the steps end where this one comes.
    rig.put("c1", pod("z", "last", "Running"));
    apply(&mut events, &mut state, "c1/z/last").await;
    let (mut now, _) = self::state(&rig, query).await;
    now.remove("c1/z/last");
    assert_eq!(state, now);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn events_lead_from_one_list_to_the_next(
        before in collection::vec(step(), 0..12),
        missed in collection::vec(step(), 0..12),
        live in collection::vec(step(), 0..12),
        selects in any::<bool>(),
    ) {
        let query = match selects {
            true => "fieldSelector=status.phase%3DRunning",
            false => "limit=0",
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        runtime.block_on(check(before, missed, live, query));
    }
}
