//! Garbage collection across servers: owners and dependents in groups that another server has.

use super::behind::{SHIPS, fleet, ship};
use super::*;

/// Adds an owner to an object.
pub(super) fn owned(mut object: Value, owner: &Value, blocks: bool) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    }]);
    object
}

/// Creates an object and returns it as it is stored.
pub(super) async fn create(hub: &TestServer, path: &str, object: &Value) -> Value {
    hub.post(path, object).await.expect(201).json()
}

pub(super) async fn until_gone(hub: &TestServer, path: &str) {
    soon(async {
        while hub.get(path).await.code != 404 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Makes the collector list what the other server has, which it does now and then.
pub(super) async fn touch_service(hub: &TestServer) {
    let path = format!("{SERVICES}/v1.sea.example.com");
    let text = format!("{:?}", std::time::Instant::now());
    let patch = json!({"metadata": {"annotations": {"touched": text}}});
    hub.patch(&path, MERGE, &patch).await.expect(200);
}

#[tokio::test]
async fn owners_that_another_server_has_are_looked_up_there() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    let owner = create(hub, SHIPS, &ship("owner")).await;
    create(hub, MAPS, &owned(config_map("cargo"), &owner, false)).await;
    let mut unknown = owner.clone();
    unknown["metadata"]["uid"] = json!("another");
    // An object whose owner never existed shows that those before it were looked at, too.
    create(hub, MAPS, &owned(config_map("lost"), &unknown, false)).await;
    until_gone(hub, &format!("{MAPS}/lost")).await;
    hub.get(&format!("{MAPS}/cargo")).await.expect(200);
}

#[tokio::test]
async fn an_object_goes_after_its_owner_on_another_server() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    let owner = create(hub, SHIPS, &ship("owner")).await;
    let cargo = create(hub, MAPS, &owned(config_map("cargo"), &owner, false)).await;
    hub.delete(&format!("{SHIPS}/owner")).await.expect(200);
    // A change of its owners is a reason to look at it at once, instead of within a minute.
    let mut references = cargo["metadata"]["ownerReferences"].clone();
    references[0]["controller"] = json!(true);
    let patch = json!({"metadata": {"ownerReferences": references}});
    let path = format!("{MAPS}/cargo");
    let patched = hub.patch(&path, MERGE, &patch).await;
    let may_be_gone = matches!(patched.code, 200 | 404);
    assert!(may_be_gone, "{}", patched.text());
    until_gone(hub, &path).await;
}

#[tokio::test]
async fn only_metadata_is_asked_for() {
    let (_server, backend) = start(Speaks::Http1).await;
    let list = format!("{ROOT}/things?limit=500");
    let accept = soon(async {
        loop {
            if let Some(accept) = backend.accepted(&list) {
                return accept;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,";
    let accept = accept.await;
    assert!(accept.starts_with(metadata), "{accept}");
}

#[tokio::test]
async fn objects_of_another_server_go_with_their_owner() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    let owner = create(hub, MAPS, &config_map("owner")).await;
    let other = create(hub, MAPS, &config_map("other")).await;
    create(hub, SHIPS, &owned(ship("one"), &owner, false)).await;
    create(hub, SHIPS, &ship("free")).await;
    let mut both = owned(ship("both"), &owner, false);
    let second = owned(ship("both"), &other, false);
    let more = second["metadata"]["ownerReferences"][0].clone();
    both["metadata"]["ownerReferences"]
        .as_array_mut()
        .unwrap()
        .push(more);
    create(hub, SHIPS, &both).await;
    hub.delete(&format!("{MAPS}/owner")).await.expect(200);
    touch_service(hub).await;
    until_gone(hub, &format!("{SHIPS}/one")).await;
    // The other owner exists, so only the reference goes.
    soon(async {
        loop {
            let ship = hub.get(&format!("{SHIPS}/both")).await.expect(200).json();
            let owners = ship["metadata"]["ownerReferences"]
                .as_array()
                .unwrap()
                .len();
            if owners == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    hub.get(&format!("{SHIPS}/free")).await.expect(200);
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_objects_of_another_server() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    let owner = create(hub, MAPS, &config_map("owner")).await;
    let mut dependent = owned(ship("one"), &owner, true);
    dependent["metadata"]["finalizers"] = json!(["example.com/wait"]);
    create(hub, SHIPS, &dependent).await;
    let options = json!({"propagationPolicy": "Foreground"});
    hub.delete_with(&format!("{MAPS}/owner"), &options)
        .await
        .expect(200);
    soon(async {
        loop {
            let ship = hub.get(&format!("{SHIPS}/one")).await.expect(200).json();
            if ship["metadata"]["deletionTimestamp"].is_string() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    hub.get(&format!("{MAPS}/owner")).await.expect(200);
    let release = json!({"metadata": {"finalizers": null}});
    hub.patch(&format!("{SHIPS}/one"), MERGE, &release)
        .await
        .expect(200);
    until_gone(hub, &format!("{MAPS}/owner")).await;
}

#[tokio::test]
async fn orphans_of_another_server_lose_their_owner() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    let owner = create(hub, MAPS, &config_map("owner")).await;
    create(hub, SHIPS, &owned(ship("one"), &owner, true)).await;
    let options = json!({"propagationPolicy": "Orphan"});
    hub.delete_with(&format!("{MAPS}/owner"), &options)
        .await
        .expect(200);
    until_gone(hub, &format!("{MAPS}/owner")).await;
    let ship = hub.get(&format!("{SHIPS}/one")).await.expect(200).json();
    assert_eq!(ship["metadata"]["ownerReferences"], Value::Null);
}

#[tokio::test]
async fn a_dead_group_stops_no_collection() {
    let fleet = fleet().await;
    let hub = &fleet.hub;
    // Nobody listens there.
    let dead = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.dead.example.com", "annotations": {"bareboat.dev/url": "https://127.0.0.1:1"}},
        "spec": {
            "group": "dead.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1,
            "service": {"namespace": "default", "name": "dead"}, "insecureSkipTLSVerify": true,
        },
    });
    hub.post(SERVICES, &dead).await.expect(201);
    until(hub, "v1.dead.example.com", "False", "FailedDiscoveryCheck").await;
    let owner = create(hub, MAPS, &config_map("owner")).await;
    create(hub, SHIPS, &owned(ship("one"), &owner, true)).await;
    let options = json!({"propagationPolicy": "Foreground"});
    hub.delete_with(&format!("{MAPS}/owner"), &options)
        .await
        .expect(200);
    until_gone(hub, &format!("{MAPS}/owner")).await;
    hub.get(&format!("{SHIPS}/one")).await.expect(404);
}
