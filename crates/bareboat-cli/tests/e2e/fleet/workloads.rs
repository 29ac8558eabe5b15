//! Workloads that the real kube-controller-manager makes in every member: Deployments, their ReplicaSets, their Pods.

use super::{Fleet, deployment, places};
use crate::controller_manager::{Kubelet, controller_manager};
use crate::process::{Followed, eventually};
use std::collections::BTreeSet;

const REPLICAS: u32 = 10;

fn words(text: &str) -> Vec<Vec<String>> {
    let line = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    text.lines().map(line).collect()
}

#[test]
fn pods_of_deployments_are_shown_and_found_as_in_the_members() {
    let Some(fleet) = Fleet::joined(3) else {
        return;
    };
    let managers = fleet.members.iter().map(controller_manager);
    let Some(_managers) = managers.collect::<Option<Vec<Followed>>>() else {
        return;
    };
    let members = fleet.members.iter();
    let _kubelets: Vec<Kubelet> = members.map(|member| Kubelet::start(&member.home)).collect();
    for member in &fleet.members {
        member.gives_for("apply -f -", &deployment("web", REPLICAS));
        member.gives_for("apply -f -", &deployment("other", 1));
    }
    let mut all = BTreeSet::new();
    for (index, member) in fleet.members.iter().enumerate() {
        let name = format!("c{}", index + 1);
        member.gives("rollout status deployment/web --timeout=240s");
        member.gives("rollout status deployment/other --timeout=240s");
        // The whole table is the member's own, apart from the first column. Ages may differ while a second passes.
        eventually("the view shows what the member shows", || {
            let own = words(&member.gives("get pod -o wide"));
            let view = words(&fleet.shows(&format!("--cluster {name} get pod -o wide")));
            assert_eq!(view[0][0], "CLUSTER");
            let rows = view.len() == REPLICAS as usize + 2;
            let named = view[1..].iter().all(|line| line[0] == name);
            let rest: Vec<Vec<String>> = view.iter().map(|line| line[1..].to_vec()).collect();
            (rows && named && rest == own).then_some(())
        });
        let pods = member.gives("get pods -l app=web -o name");
        let pods = pods.lines().map(|line| line.trim_start_matches("pod/"));
        all.extend(pods.map(|pod| format!("{name}/default/{pod}")));
    }
    assert_eq!(all.len(), 3 * REPLICAS as usize);
    // The Pods of the Deployments of all members, two generations below them.
    let found = |query: &str| {
        let path = format!("/api/v1/namespaces/default/pods?{query}");
        places(&fleet.raw(&path)).into_iter().collect()
    };
    let by_name = "ownerName=web&ownerGR=deployments.apps&ownerSeniority=1";
    let everywhere: BTreeSet<String> = found(by_name);
    assert_eq!(everywhere, all);
    let two: BTreeSet<String> = found(&format!("{by_name}&clusters=c1,c3"));
    let expected = all.iter().filter(|place| !place.starts_with("c2/"));
    assert_eq!(two, expected.cloned().collect());
    let uid = fleet.members[1].gives("get deployment web -o jsonpath={.metadata.uid}");
    let by_uid: BTreeSet<String> = found(&format!("ownerUID={uid}&ownerSeniority=1"));
    let expected = all.iter().filter(|place| place.starts_with("c2/"));
    assert_eq!(by_uid, expected.cloned().collect());
    assert_eq!(
        found("ownerName=web&ownerGR=deployments.apps"),
        BTreeSet::new()
    );
    let sets = places(&fleet.raw("/apis/apps/v1/replicasets?ownerName=web"));
    assert_eq!(sets.len(), 3, "{sets:?}");
    let pods: BTreeSet<String> = {
        let name = sets[0].rsplit('/').next().unwrap();
        found(&format!(
            "clusters=c1&ownerName={name}&ownerGR=replicasets.apps"
        ))
    };
    let expected = all.iter().filter(|place| place.starts_with("c1/"));
    assert_eq!(pods, expected.cloned().collect());
    let table = fleet.shows("--cluster clusterpedia get deploy -A");
    let ready = words(&table)
        .into_iter()
        .filter(|line| line[2] == "web" && line[3] == "10/10");
    assert_eq!(ready.count(), 3, "{table}");
}
