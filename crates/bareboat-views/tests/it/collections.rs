//! Collection resources: fixed ones and stored ones.

use crate::rig::{Answer, Rig, TABLE, deployment, pod};
use crate::rights::{self, grant, members, read, with_events};
use bareboat::api::value;
use std::collections::HashSet;

const C: &str = "/apis/clusterpedia.io/v1beta1/collectionresources";

async fn filled() -> Rig {
    let rig = Rig::start().await;
    rig.put("c1", deployment("a", "web", 1));
    rig.put("c1", value!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": "a", "name": "agent"}, "spec": {}}));
    rig.put("c2", value!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "a", "name": "db"}, "spec": {}}));
    rig.put("c2", pod("a", "x", "Running"));
    rig
}

fn kinds(body: &serde_json::Value) -> HashSet<String> {
    let items = body["items"].as_array().expect("items").iter();
    items
        .filter_map(|item| item["kind"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn fixed_collections_are_listed_and_read() {
    let rig = filled().await;
    let list = rig.get(C).await.expect(200).json();
    assert_eq!(list["kind"], "CollectionResourceList");
    let names: Vec<&str> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["any", "workloads", "kuberesources"]);
    let workloads = rig.get(&format!("{C}/workloads")).await.expect(200).json();
    assert_eq!(workloads["kind"], "CollectionResource");
    assert_eq!(workloads["resourceTypes"].as_array().map(Vec::len), Some(3));
    let expected = ["Deployment", "DaemonSet", "StatefulSet"].map(str::to_owned);
    assert_eq!(kinds(&workloads), HashSet::from(expected));
    let first = rig
        .get(&format!("{C}/workloads?limit=2&withRemainingCount=true"))
        .await
        .expect(200)
        .json();
    assert_eq!(first["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(first["remainingItemCount"], 1);
    let token = first["continue"].as_str().expect("a token");
    let second = rig
        .get(&format!("{C}/workloads?limit=2&continue={token}"))
        .await
        .expect(200)
        .json();
    assert_eq!(second["items"].as_array().map(Vec::len), Some(1));
    assert!(second["continue"].is_null());
    let all = rig
        .get(&format!("{C}/kuberesources"))
        .await
        .expect(200)
        .json();
    assert!(kinds(&all).contains("Pod"));
    rig.get(&format!("{C}/nothing")).await.expect(404);
}

#[tokio::test]
async fn any_needs_groups_or_resources() {
    let rig = filled().await;
    let refused = rig.get(&format!("{C}/any")).await.expect(400);
    assert_eq!(
        refused.message(),
        "url query - `groups` or `resources` is required"
    );
    let found = rig
        .get(&format!(
            "{C}/any?groups=apps&resources=/pods&onlyMetadata=true"
        ))
        .await;
    let found = found.expect(200).json();
    assert_eq!(kinds(&found).len(), 4);
    for item in found["items"].as_array().expect("items") {
        assert!(item["spec"].is_null(), "{item}");
    }
    let core = rig
        .get(&format!("{C}/any?groups="))
        .await
        .expect(200)
        .json();
    assert_eq!(kinds(&core), HashSet::from(["Pod".to_owned()]));
    let one = rig
        .get(&format!(
            "{C}/any?resources=apps/v1/deployments&clusters=c1"
        ))
        .await;
    assert_eq!(
        kinds(&one.expect(200).json()),
        HashSet::from(["Deployment".to_owned()])
    );
}

#[tokio::test]
async fn tables_have_columns_of_their_own() {
    let rig = filled().await;
    let headers = [("accept", TABLE)];
    let columns = |table: &serde_json::Value| -> Vec<String> {
        let columns = table["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter();
        columns
            .filter_map(|one| one["name"].as_str().map(str::to_owned))
            .collect()
    };
    let table = rig
        .send("GET", &format!("{C}/workloads"), "", &headers)
        .await
        .expect(200)
        .json();
    assert_eq!(
        columns(&table),
        [
            "Cluster",
            "Group",
            "Version",
            "Kind",
            "Namespace",
            "Name",
            "Age"
        ]
    );
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(3));
    let cells = table["rows"][0]["cells"].as_array().expect("cells").clone();
    assert_eq!(&cells[..3], ["c1", "apps", "v1"]);
    let list = rig.send("GET", C, "", &headers).await.expect(200).json();
    assert_eq!(columns(&list), ["Name", "Resources"]);
}

#[tokio::test]
async fn collections_can_be_stored() {
    let rig = filled().await;
    let own = r#"{"apiVersion": "clusterpedia.io/v1beta1", "kind": "CollectionResource", "metadata": {"name": "mine"},
        "resourceTypes": [{"group": "", "resource": "pods"}, {"group": "apps", "version": "v1", "resource": "deployments"}]}"#;
    rig.send("POST", C, own, &[]).await.expect(201);
    let found = rig.get(&format!("{C}/mine")).await.expect(200).json();
    assert_eq!(
        kinds(&found),
        HashSet::from(["Pod", "Deployment"].map(str::to_owned))
    );
    let list = rig.get(C).await.expect(200).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(4));
    rig.send("DELETE", &format!("{C}/mine"), "", &[])
        .await
        .expect(200);
    rig.get(&format!("{C}/mine")).await.expect(404);
}

#[tokio::test]
async fn a_collection_that_is_cut_says_so() {
    let rig = Rig::start().await;
    for number in 0..501 {
        rig.put("c1", pod("a", &format!("p{number:03}"), "Running"));
    }
    let any = format!("{C}/any?resources=/pods");
    let count = |answer: &Answer| answer.json()["items"].as_array().map(Vec::len);
    let cut = rig.get(&any).await.expect(200);
    assert_eq!(count(&cut), Some(500));
    let warnings = cut.warnings();
    assert!(
        warnings[0].contains("only 500 objects are shown") && warnings[0].contains("limit"),
        "{warnings:?}"
    );
    let headers = [("accept", TABLE)];
    let table = rig.send("GET", &any, "", &headers).await.expect(200);
    assert_eq!(table.warnings(), warnings);
    let token = cut.json()["continue"].as_str().expect("a token").to_owned();
    for (more, found) in [
        (format!("continue={token}"), 1),
        ("limit=501".to_owned(), 501),
        ("size=501".to_owned(), 501),
        (
            "labelSelector=search.clusterpedia.io/limit=501".to_owned(),
            501,
        ),
        // Who asks for pages goes on by himself.
        ("limit=500".to_owned(), 500),
    ] {
        let answer = rig.get(&format!("{any}&{more}")).await.expect(200);
        assert_eq!(count(&answer), Some(found), "{more}");
        assert_eq!(answer.warnings(), Vec::<String>::new(), "{more}");
    }
}

fn rules(group: &str, resources: &[&str]) -> serde_json::Value {
    serde_json::json!([{"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]}])
}

/// Lets users read all members and collections.
async fn let_in(rig: &Rig, who: &str) {
    grant(rig, who, "", members(&[])).await;
    grant(
        rig,
        who,
        "",
        rules("clusterpedia.io", &["collectionresources"]),
    )
    .await;
}

/// Returns `apiVersion cluster/namespace/name` of the items, sorted.
fn shown(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let items = body["items"].as_array().expect("items").iter();
    let mut shown: Vec<String> = items
        .map(|item| {
            let version = item["apiVersion"].as_str().unwrap_or("");
            format!("{version} {}", crate::rig::name(item))
        })
        .collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn a_visible_collection_has_what_the_user_may_list_in_each_namespace() {
    let rig = rights::filled().await;
    rig.put("c1", deployment("b", "web", 1));
    rig.put(
        "c1",
        value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    );
    for namespace in ["a", "b"] {
        for kind in ["Secret", "Event"] {
            let name = kind.to_lowercase();
            rig.put("c1", value!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": namespace, "name": (name.as_str())}}));
        }
    }
    let_in(&rig, "ann").await;
    grant(&rig, "ann", "a", read(&["pods", "events", "namespaces"])).await;
    grant(&rig, "ann", "b", rules("apps", &["deployments"])).await;
    grant(&rig, "ann", "b", rules("events.k8s.io", &["events"])).await;
    let any = format!("{C}/any?groups=*");
    rig.get_as("ann", &any).await.expect(403);
    let visible = format!("{any}&visible=true");
    let found = rig.get_as("ann", &visible).await.expect(200);
    let all = [
        "apps/v1 c1/b/web",
        "events.k8s.io/v1 c1/b/event",
        "v1 c1/a/event",
        "v1 c1/a/x",
        "v1 c2/a/x",
    ];
    assert_eq!(shown(&found), all);
    assert_eq!(found.warnings(), Vec::<String>::new());
    let body = found.json();
    let types = body["resourceTypes"].as_array().expect("types").iter();
    let types: Vec<String> = types
        .map(|one| {
            format!(
                "{}/{}",
                one["group"].as_str().unwrap_or("?"),
                one["resource"].as_str().unwrap_or("?")
            )
        })
        .collect();
    assert_eq!(
        types,
        [
            "/events",
            "/pods",
            "apps/deployments",
            "events.k8s.io/events"
        ]
    );
    let counted = format!("{visible}&limit=2&withRemainingCount=true");
    let counted = rig.get_as("ann", &counted).await.expect(200).json();
    assert_eq!(counted["remainingItemCount"], 3);
    let token = counted["continue"].as_str().expect("a token");
    let rest = format!("{visible}&continue={token}");
    let rest = rig.get_as("ann", &rest).await.expect(200);
    assert_eq!(shown(&rest).len(), 3);
    let named = format!("{visible}&namespaces=b");
    assert_eq!(
        shown(&rig.get_as("ann", &named).await.expect(200)),
        [all[0], all[1]]
    );
    let table = rig.send_as(
        crate::rig::user("ann"),
        "GET",
        &visible,
        "",
        &[("accept", TABLE)],
    );
    let table = table.await.expect(200).json();
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(5));
    // A user without rights gets an empty answer.
    let_in(&rig, "bob").await;
    let nothing = rig.get_as("bob", &visible).await.expect(200);
    assert!(shown(&nothing).is_empty());
}

#[tokio::test]
async fn types_that_are_visible_everywhere_stay_beside_others() {
    let rig = rights::filled().await;
    for namespace in ["a", "b"] {
        rig.put("c2", value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": "s"}}));
        rig.put("c2", value!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": namespace, "name": "e"}}));
    }
    let_in(&rig, "ann").await;
    grant(&rig, "ann", "", read(&["pods"])).await;
    grant(&rig, "ann", "", rules("events.k8s.io", &["events"])).await;
    grant(&rig, "ann", "a", read(&["secrets", "events"])).await;
    let visible = format!("{C}/kuberesources?visible=true");
    let found = rig.get_as("ann", &visible).await.expect(200);
    assert_eq!(
        shown(&found),
        [
            "events.k8s.io/v1 c2/b/e",
            "v1 c1/a/x",
            "v1 c1/b/y",
            "v1 c2/a/e",
            "v1 c2/a/s",
            "v1 c2/a/x",
            "v1 c2/b/y"
        ]
    );
    // Who sees everything sees each event once.
    let all = shown(&rig.get(&visible).await.expect(200));
    assert_eq!(all.len(), 8);
    assert!(all.contains(&"v1 c2/b/e".to_owned()), "{all:?}");
}

#[tokio::test]
async fn collections_show_events_of_objects() {
    let rig = rights::filled().await;
    rig.put(
        "c1",
        value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    );
    for (namespace, name) in [("a", "x"), ("b", "y")] {
        let event = value!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": namespace, "name": "e"},
            "involvedObject": {"kind": "Pod", "uid": (format!("c1-Pod-{namespace}-{name}"))},
            "message": "the image is missing",
        });
        rig.put("c1", event);
    }
    let some = format!("{C}/any?resources=/pods,/namespaces&injectEvents=true");
    let all = rig.get(&some).await.expect(200);
    assert_eq!(with_events(&all), [true; 5]);
    assert_eq!(all.warnings(), Vec::<String>::new());
    let text = String::from_utf8_lossy(&all.bytes).into_owned();
    assert_eq!(text.matches("the image is missing").count(), 2);
    for who in ["eve", "fay"] {
        let_in(&rig, who).await;
        grant(&rig, who, "", read(&["pods", "namespaces"])).await;
    }
    grant(&rig, "fay", "a", read(&["events"])).await;
    let none = rig.get_as("eve", &some).await.expect(200);
    assert_eq!(with_events(&none), [false; 5]);
    assert!(none.warnings()[0].contains("you may not list events"));
    let own = rig.get_as("fay", &some).await.expect(200);
    // Pods come first; the events of a namespace may be in any.
    assert_eq!(with_events(&own), [true, true, false, false, false]);
    assert!(own.warnings()[0].contains("in namespaces where you may not"));
    let table = format!("{some}&includeObject=Object");
    let table = rig.send("GET", &table, "", &[("accept", TABLE)]).await;
    let table = table.expect(200);
    assert!(!String::from_utf8_lossy(&table.bytes).contains("the image is missing"));
}
