//! Deletions while the server that has some of the objects does not answer: they wait where they must, and nothing is lost.

use super::behind::{Fleet, SHIPS, fleet, ship};
use super::garbage::{create, owned, touch_service, until_gone};
use super::*;

const SEA: &str = "v1.sea.example.com";
const LEAVING: &str = "/api/v1/namespaces/leaving";
const SHIPS_LEAVING: &str = "/apis/sea.example.com/v1/namespaces/leaving/ships";

/// Waits until the collector has listed all ships that exist now: it deletes one whose owner never existed.
async fn until_listed(hub: &TestServer, name: &str) {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never", "uid": "never"}});
    create(hub, SHIPS, &owned(ship(name), &owner, false)).await;
    touch_service(hub).await;
    until_gone(hub, &format!("{SHIPS}/{name}")).await;
}

/// What happens to the cable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It is cut, and the hub finds out when it uses it.
    Cut,
    /// It is cut, and the condition of the APIService says so.
    Noticed,
    /// The other server does not answer, and closes no connection.
    Silence,
}

async fn harm(fleet: &Fleet, fault: Fault) {
    match fault {
        Fault::Cut | Fault::Noticed => fleet.cable.cut(),
        Fault::Silence => fleet.cable.hold(),
    }
    if fault == Fault::Noticed {
        touch_service(&fleet.hub).await;
        until(&fleet.hub, SEA, "False", "FailedDiscoveryCheck").await;
    }
}

/// Mends the cable, and makes the hub notice it.
async fn mend(fleet: &Fleet) {
    fleet.cable.mend();
    touch_service(&fleet.hub).await;
    until(&fleet.hub, SEA, "True", "Passed").await;
}

async fn delete(hub: &TestServer, name: &str, policy: &str) {
    let options = json!({"propagationPolicy": policy});
    let path = format!("{MAPS}/{name}");
    hub.delete_with(&path, &options).await.expect(200);
}

/// Deletes an owner that a ship names while the cable is harmed, and other owners, which do not wait.
async fn delete_meanwhile(fleet: &Fleet, policy: &str, fault: Fault) {
    let hub = &fleet.hub;
    let owner = create(hub, MAPS, &config_map("owner")).await;
    create(hub, MAPS, &config_map("other")).await;
    create(hub, SHIPS, &owned(ship("one"), &owner, true)).await;
    until_listed(hub, "lost").await;
    harm(fleet, fault).await;
    delete(hub, "owner", policy).await;
    delete(hub, "other", policy).await;
    until_gone(hub, &format!("{MAPS}/other")).await;
    // One that is deleted after that shows that the collector has looked at the first one.
    create(hub, MAPS, &config_map("another")).await;
    delete(hub, "another", policy).await;
    until_gone(hub, &format!("{MAPS}/another")).await;
    hub.get(&format!("{MAPS}/owner")).await.expect(200);
    mend(fleet).await;
    until_gone(hub, &format!("{MAPS}/owner")).await;
}

#[tokio::test]
async fn an_orphaning_deletion_waits_for_a_server_whose_objects_named_the_owner() {
    for fault in [Fault::Cut, Fault::Noticed, Fault::Silence] {
        let fleet = fleet().await;
        let hub = &fleet.hub;
        delete_meanwhile(&fleet, "Orphan", fault).await;
        let one = hub.get(&format!("{SHIPS}/one")).await.expect(200).json();
        assert_eq!(one["metadata"]["ownerReferences"], Value::Null);
        until_listed(hub, "later").await;
        hub.get(&format!("{SHIPS}/one")).await.expect(200);
    }
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_a_server_whose_objects_named_the_owner() {
    for fault in [Fault::Cut, Fault::Noticed] {
        let fleet = fleet().await;
        delete_meanwhile(&fleet, "Foreground", fault).await;
        fleet.hub.get(&format!("{SHIPS}/one")).await.expect(404);
    }
}

/// Creates a namespace with a config map and a ship, which has a finalizer or not.
async fn namespace_with_ship(hub: &TestServer, finalizers: Value) {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}});
    create(hub, "/api/v1/namespaces", &namespace).await;
    create(hub, &format!("{LEAVING}/configmaps"), &config_map("map")).await;
    let mut one = ship("one");
    one["metadata"]["finalizers"] = finalizers;
    create(hub, SHIPS_LEAVING, &one).await;
}

/// Waits until one of some conditions of the namespace holds, and returns its message.
async fn until_condition(hub: &TestServer, wanted: &[&str]) -> String {
    soon(async {
        loop {
            let namespace = hub.get(LEAVING).await.expect(200).json();
            let conditions = namespace["status"]["conditions"].as_array();
            let found = conditions.into_iter().flatten().find(|condition| {
                condition["status"] == "True" && wanted.contains(&text(&condition["type"]))
            });
            if let Some(found) = found {
                return text(&found["message"]).to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_namespace_goes_after_the_objects_that_another_server_has_in_it() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    create(hub, SHIPS, &ship("elsewhere")).await;
    namespace_with_ship(hub, json!(["example.com/wait"])).await;
    create(hub, SHIPS_LEAVING, &ship("two")).await;
    hub.delete(LEAVING).await.expect(200);
    assert_eq!(
        until_condition(hub, &["NamespaceContentRemaining"]).await,
        "Some resources are remaining: ships.sea.example.com has 1 resource instances"
    );
    assert_eq!(
        until_condition(hub, &["NamespaceFinalizersRemaining"]).await,
        "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances"
    );
    hub.get(&format!("{SHIPS_LEAVING}/two")).await.expect(404);
    hub.get(&format!("{LEAVING}/configmaps/map"))
        .await
        .expect(404);
    let release = json!({"metadata": {"finalizers": null}});
    let one = format!("{SHIPS_LEAVING}/one");
    hub.patch(&one, MERGE, &release).await.expect(200);
    until_gone(hub, LEAVING).await;
    hub.get(&one).await.expect(404);
    hub.get(&format!("{SHIPS}/elsewhere")).await.expect(200);
}

#[tokio::test]
async fn a_namespace_waits_for_a_server_that_does_not_answer_and_loses_the_rest() {
    for fault in [Fault::Cut, Fault::Noticed] {
        let fleet = fleet().await;
        let hub = &fleet.hub;
        namespace_with_ship(hub, Value::Null).await;
        harm(&fleet, fault).await;
        hub.delete(LEAVING).await.expect(200);
        until_gone(hub, &format!("{LEAVING}/configmaps/map")).await;
        // The hub may notice by itself, which changes the condition.
        let conditions = [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionContentFailure",
        ];
        let wanted = if fault == Fault::Noticed {
            &conditions[..1]
        } else {
            &conditions
        };
        let message = until_condition(hub, wanted).await;
        assert!(message.contains("sea.example.com"), "{message}");
        fleet.cable.mend();
        touch_service(hub).await;
        until_gone(hub, LEAVING).await;
        hub.get(&format!("{SHIPS_LEAVING}/one")).await.expect(404);
    }
}
