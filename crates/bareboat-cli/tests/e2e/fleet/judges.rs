//! A member that decides itself who reads its objects.

use super::{Fleet, kubeconfig};
use serde_json::json;

#[test]
fn a_member_may_decide_who_reads_its_objects() {
    let Some(fleet) = Fleet::new(2) else {
        return;
    };
    for (number, annotations) in [
        (1, json!({"fleet.bareboat.dev/authorization": "Member"})),
        (2, json!({})),
    ] {
        let member = &fleet.members[number - 1];
        member.gives("create namespace closed");
        for namespace in ["default", "closed"] {
            member.gives(&format!(
                "create configmap one -n {namespace} --from-literal a=1"
            ));
        }
        let spec = json!({
            "kubeconfig": kubeconfig(member, None),
            "syncResources": [{"group": "", "resources": ["configmaps"]}],
        });
        fleet.apply(&format!("c{number}"), spec, annotations);
    }
    fleet.synced("c1");
    fleet.synced("c2");
    fleet.contexts();
    // On the hub ann may read members, and nothing of them.
    fleet
        .hub
        .gives("create clusterrole members --verb=get --resource=resources.clusterpedia.io");
    fleet
        .hub
        .gives("create clusterrolebinding members --clusterrole=members --user=ann");
    let own = &fleet.members[0];
    own.gives("create role reader --verb=get,list,watch --resource=configmaps");
    own.gives("create rolebinding reader --role=reader --user=ann");
    let one = fleet.shows("--context c1 --as ann get configmap one -n default -o name");
    assert_eq!(one.trim(), "configmap/one");
    let list = fleet.shows("--context c1 --as ann get configmaps -n default --no-headers");
    assert!(list.contains("one"), "{list}");
    let closed = fleet.view("--context c1 --as ann get configmaps -n closed");
    assert!(
        !closed.status.success() && closed.stderr.contains("the cluster c1 decides"),
        "{}",
        closed.all()
    );
    // The other member is the hub's business.
    let other = fleet.view("--context c2 --as ann get configmaps -n default");
    assert!(
        !other.status.success() && other.stderr.contains("Forbidden"),
        "{}",
        other.all()
    );
    let all = fleet.shows("--context clusterpedia --as ann get configmaps -n default --no-headers");
    assert!(all.contains("c1 ") && !all.contains("c2 "), "{all}");
    // Administrators of the hub have no rights in the member.
    let admin = fleet.view("--context c1 get configmaps -n default");
    assert!(
        !admin.status.success() && admin.stderr.contains("fleet.bareboat.dev/masters"),
        "{}",
        admin.all()
    );
}
