//! Events, which are one kind in two groups: members are synced once, and views show both.

use crate::rig::{BIRTHDAY, P, Rig, TABLE, member, name, pod, synced};
use bareboat::api::{Value, value};
use bareboat_shelf::Path;
use serde_json::json;

const CORE: &str = "/apis/clusterpedia.io/v1beta1/resources/api/v1/events";
const NEWER: &str = "/apis/clusterpedia.io/v1beta1/resources/apis/events.k8s.io/v1/events";
const C: &str = "/apis/clusterpedia.io/v1beta1/collectionresources";

/// An event of the core group.
fn event(name: &str, about: &str, reason: &str) -> Value {
    value!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "a", "name": name},
        "involvedObject": {"kind": "Pod", "namespace": "a", "name": about, "uid": (format!("c1-Pod-a-{about}"))},
        "reason": reason, "message": "it happened", "type": "Normal",
        "source": {"component": "kubelet", "host": "n1"}, "reportingComponent": "kubelet", "reportingInstance": "n1",
        "firstTimestamp": "2022-03-24T23:00:00Z", "lastTimestamp": "2022-03-24T23:30:00Z", "count": 3,
        "eventTime": (Value::Null), "series": {"count": 4, "lastObservedTime": "2022-03-24T23:50:00.000000Z"},
    })
}

/// An event of `events.k8s.io`.
fn newer_event(name: &str) -> Value {
    value!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": "a", "name": name},
        "regarding": {"kind": "Node", "name": "n1"}, "reason": "Ready", "note": "it is ready", "type": "Normal",
        "reportingController": "kubelet", "reportingInstance": "n1", "action": "Check",
        "eventTime": "2022-03-24T23:59:00.000000Z",
    })
}

async fn filled() -> Rig {
    let rig = Rig::start().await;
    rig.put("c1", event("e1", "x", "Started"));
    rig.put("c2", event("e2", "y", "Killed"));
    rig
}

#[tokio::test]
async fn discovery_has_both_groups() {
    let rig = filled().await;
    for prefix in [P.to_owned(), format!("{P}/clusters/c1")] {
        let groups = rig.get(&format!("{prefix}/apis")).await.expect(200).json();
        let groups = groups["groups"].as_array().expect("groups").clone();
        let found = groups.iter().find(|one| one["name"] == "events.k8s.io");
        assert_eq!(
            found.expect("the group")["preferredVersion"]["version"],
            "v1"
        );
        let path = format!("{prefix}/apis/events.k8s.io/v1");
        let resources = rig.get(&path).await.expect(200).json();
        assert_eq!(resources["groupVersion"], "events.k8s.io/v1");
        assert_eq!(resources["resources"][0]["name"], "events");
        assert_eq!(resources["resources"].as_array().map(Vec::len), Some(1));
    }
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let headers = [("accept", accept)];
    let groups = rig.send("GET", &format!("{P}/apis"), "", &headers).await;
    let groups = groups.expect(200).json();
    let items = groups["items"].as_array().expect("groups").clone();
    let found = items
        .iter()
        .find(|one| one["metadata"]["name"] == "events.k8s.io");
    let kind = &found.expect("the group")["versions"][0]["resources"][0]["responseKind"];
    assert_eq!(
        *kind,
        json!({"group": "events.k8s.io", "version": "v1", "kind": "Event"})
    );
}

#[tokio::test]
async fn lists_convert_to_the_group_that_is_asked_for() {
    let rig = filled().await;
    let list = rig.get(NEWER).await;
    assert_eq!(list.names(), ["c1/a/e1", "c2/a/e2"]);
    let body = list.json();
    assert_eq!(
        (&body["apiVersion"], &body["kind"]),
        (&json!("events.k8s.io/v1"), &json!("EventList"))
    );
    let item = &body["items"][0];
    assert_eq!(item["apiVersion"], "events.k8s.io/v1");
    assert_eq!(item["note"], "it happened");
    assert_eq!(item["regarding"]["name"], "x");
    assert_eq!(item["reportingController"], "kubelet");
    assert_eq!(
        item["deprecatedSource"],
        json!({"component": "kubelet", "host": "n1"})
    );
    assert_eq!(item["deprecatedFirstTimestamp"], "2022-03-24T23:00:00Z");
    assert_eq!(item["deprecatedLastTimestamp"], "2022-03-24T23:30:00Z");
    assert_eq!(item["deprecatedCount"], 3);
    assert_eq!(item["series"]["count"], 4);
    for core in [
        "message",
        "involvedObject",
        "source",
        "count",
        "firstTimestamp",
        "reportingComponent",
    ] {
        assert!(item.get(core).is_none(), "{core}: {item:#}");
    }
    // Both groups show the same objects at the same versions.
    let core = rig.get(CORE).await.expect(200).json();
    assert_eq!(core["items"][0]["apiVersion"], "v1");
    assert_eq!(core["items"][0]["message"], "it happened");
    assert!(core["items"][0].get("note").is_none());
    for index in 0..2 {
        assert_eq!(
            core["items"][index]["metadata"],
            body["items"][index]["metadata"]
        );
    }
    assert_eq!(core["metadata"], body["metadata"]);
    // The view of one member, a page, and one object.
    let one = format!("{P}/clusters/c2/apis/events.k8s.io/v1/namespaces/a/events");
    let list = rig.get(&one).await;
    assert_eq!(list.names(), ["c2/a/e2"]);
    assert_eq!(
        list.json()["items"][0]["metadata"]["resourceVersion"],
        "101"
    );
    let page = rig
        .get(&format!("{NEWER}?limit=1&withRemainingCount=true"))
        .await;
    assert_eq!(page.json()["metadata"]["remainingItemCount"], 1);
    let object = rig.get(&format!("{one}/e2")).await.expect(200).json();
    assert_eq!(
        (&object["apiVersion"], &object["note"]),
        (&json!("events.k8s.io/v1"), &json!("it happened"))
    );
    let other = format!("{P}/clusters/c2/api/v1/namespaces/a/events/e2");
    assert_eq!(
        rig.get(&other).await.expect(200).json()["message"],
        "it happened"
    );
    let missing = rig.get(&format!("{one}/e3")).await.expect(404);
    assert_eq!(missing.message(), "events.events.k8s.io \"e3\" not found");
    // There is no other version.
    rig.get(&format!("{P}/apis/events.k8s.io/v1beta1/events"))
        .await
        .expect(404);
}

#[tokio::test]
async fn tables_and_metadata_are_the_same_in_both_groups() {
    let rig = filled().await;
    let headers = [("accept", TABLE)];
    let cells = async |path: &str| {
        let table = rig.send("GET", path, "", &headers).await.expect(200).json();
        let columns = table["columnDefinitions"][1]["name"].clone();
        (columns, table["rows"][0]["cells"].clone())
    };
    let newer = cells(NEWER).await;
    assert_eq!(newer, cells(CORE).await);
    assert_eq!(newer.0, "Last Seen");
    let shown: Vec<&str> = (0..5).filter_map(|at| newer.1[at].as_str()).collect();
    assert_eq!(shown, ["c1", "10m", "Normal", "Started", "pod/x"]);
    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = rig.send("GET", NEWER, "", &[("accept", accept)]).await;
    assert_eq!(list.names(), ["c1/a/e1", "c2/a/e2"]);
    let list = rig.get(&format!("{NEWER}?onlyMetadata=true")).await.json();
    assert_eq!(list["items"][0]["apiVersion"], "events.k8s.io/v1");
    assert!(list["items"][0].get("note").is_none() && list["items"][0].get("message").is_none());
}

#[tokio::test]
async fn conditions_use_the_names_of_the_group() {
    let rig = filled().await;
    for query in [
        "fieldSelector=regarding.name%3Dx",
        "fieldSelector=regarding.name!%3Dy",
        "fieldSelector=deprecatedSource.component%3Dkubelet,reason%3DStarted",
        "filter=object.regarding.name%3D%3D%22x%22",
        "filter=object.note%20%3D%3D%20%22it%20happened%22%20%26%26%20object.reason%3D%3D%22Started%22",
        "whereSQL=JSON_EXTRACT(object,'$.regarding.name')%3D'x'",
        "names=e1",
    ] {
        let names = rig.get(&format!("{NEWER}?{query}")).await.names();
        assert_eq!(names, ["c1/a/e1"], "{query}");
    }
    for query in [
        "fieldSelector=involvedObject.name%3Dx",
        "filter=object.involvedObject.name%3D%3D%22x%22",
    ] {
        assert_eq!(
            rig.get(&format!("{CORE}?{query}")).await.names(),
            ["c1/a/e1"],
            "{query}"
        );
    }
}

#[tokio::test]
async fn declared_fields_have_the_names_of_the_group() {
    let rig = filled().await;
    let kind = rig.shelf.directory().kind("", "events");
    let path = Path::parse("involvedObject.name").expect("a path");
    let declared = rig
        .shelf
        .declare(kind.expect("the kind"), &[path], BIRTHDAY);
    declared.expect("a field can be declared");
    for (list, field) in [(CORE, "involvedObject.name"), (NEWER, "regarding.name")] {
        let sorted = rig.get(&format!("{list}?sort=-{field}")).await.names();
        assert_eq!(sorted, ["c2/a/e2", "c1/a/e1"], "{field}");
        let summary = rig.get(&format!("{list}?summary={field}")).await;
        let summary = summary.expect(200).json();
        assert_eq!(summary["fields"], json!([field]));
        assert_eq!(
            summary["groups"][0],
            json!({"values": {field: "x"}, "count": 1})
        );
    }
}

#[tokio::test]
async fn watches_convert_too() {
    let rig = filled().await;
    let list = rig.get(NEWER).await.json();
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    rig.put("c1", event("e3", "x", "Pulled"));
    rig.delete("c2", "Event", "a", "e2");
    let path = format!("{NEWER}?watch=true&resourceVersion={version}");
    let mut following = rig.watch(&path).await;
    let one = format!("{P}/clusters/c1/apis/events.k8s.io/v1/events?watch=true");
    let mut single = rig.watch(&one).await;
    let event_of = |event: &serde_json::Value| {
        let object = &event["object"];
        assert_eq!(object["apiVersion"], "events.k8s.io/v1", "{event:#}");
        assert!(object.get("message").is_none(), "{event:#}");
        format!("{} {}", event["type"].as_str().unwrap_or(""), name(object))
    };
    // Replayed, and a deletion without a body.
    let first = following.next().await.expect("an event");
    assert_eq!(event_of(&first), "ADDED c1/a/e3");
    assert_eq!(first["object"]["note"], "it happened");
    assert_eq!(
        event_of(&following.next().await.expect("an event")),
        "DELETED c2/a/e2"
    );
    for place in ["ADDED c1/a/e1", "ADDED c1/a/e3"] {
        assert_eq!(event_of(&single.next().await.expect("an event")), place);
    }
    // Live.
    rig.put("c1", event("e3", "x", "Created"));
    rig.delete("c1", "Event", "a", "e3");
    for events in [&mut following, &mut single] {
        let changed = events.next().await.expect("an event");
        assert_eq!(event_of(&changed), "MODIFIED c1/a/e3");
        assert_eq!(
            (
                &changed["object"]["reason"],
                &changed["object"]["regarding"]["name"]
            ),
            (&json!("Created"), &json!("x"))
        );
        assert_eq!(
            event_of(&events.next().await.expect("an event")),
            "DELETED c1/a/e3"
        );
    }
}

#[tokio::test]
async fn collections_show_an_event_once() {
    let rig = filled().await;
    let versions = async |query: &str| {
        let body = rig.get(&format!("{C}/{query}")).await.expect(200).json();
        let items = body["items"].as_array().expect("items").clone();
        let versions = items
            .iter()
            .map(|item| item["apiVersion"].as_str().unwrap_or("").to_owned());
        versions.collect::<Vec<_>>()
    };
    let (core, newer) = (vec!["v1"; 2], vec!["events.k8s.io/v1"; 2]);
    assert_eq!(versions("kuberesources").await, core);
    assert_eq!(versions("any?groups=*").await, core);
    assert_eq!(versions("any?groups=events.k8s.io").await, newer);
    assert_eq!(
        versions("any?resources=events.k8s.io/v1/events").await,
        newer
    );
    assert_eq!(
        versions("any?resources=events.k8s.io/events,events").await,
        newer
    );
    assert_eq!(
        versions("any?resources=events,events.k8s.io/events").await,
        core
    );
    let table = rig
        .send(
            "GET",
            &format!("{C}/any?groups=events.k8s.io"),
            "",
            &[("accept", TABLE)],
        )
        .await;
    let cells = table.expect(200).json()["rows"][0]["cells"].clone();
    assert_eq!(
        (&cells[1], &cells[3]),
        (&json!("events.k8s.io"), &json!("Event"))
    );
}

#[tokio::test]
async fn events_of_an_object_are_injected_in_the_core_form() {
    let rig = filled().await;
    rig.put("c1", pod("a", "x", "Running"));
    let path = format!("{P}/clusters/c1/api/v1/namespaces/a/pods/x?injectEvents=true");
    let pod = rig.get(&path).await.expect(200).json();
    let text = pod["metadata"]["annotations"]["shadow.clusterpedia.io/events"].as_str();
    let events: serde_json::Value = serde_json::from_str(text.expect("events")).expect("JSON");
    assert_eq!(events[0]["message"], "it happened");
    assert_eq!(events.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_member_with_the_newer_group_alone_is_shown_in_both() {
    let rig = filled().await;
    let mut other = member("c3");
    other.types.retain(|one| one.resource != "events");
    other
        .types
        .push(synced("events.k8s.io", "v1", "events", "Event").into());
    rig.join(other);
    rig.put("c3", newer_event("e9"));
    let mut core = rig.get(CORE).await.names();
    core.sort();
    assert_eq!(core, ["c1/a/e1", "c2/a/e2", "c3/a/e9"]);
    let mut newer = rig.get(NEWER).await.names();
    newer.sort();
    assert_eq!(newer, core);
    let path = format!("{P}/clusters/c3/api/v1/namespaces/a/events/e9");
    let object = rig.get(&path).await.expect(200).json();
    assert_eq!(
        (&object["apiVersion"], &object["message"]),
        (&json!("v1"), &json!("it is ready"))
    );
    assert_eq!(object["involvedObject"]["kind"], "Node");
    let path = format!("{P}/clusters/c3/apis/events.k8s.io/v1/namespaces/a/events/e9");
    assert_eq!(
        rig.get(&path).await.expect(200).json()["note"],
        "it is ready"
    );
}
