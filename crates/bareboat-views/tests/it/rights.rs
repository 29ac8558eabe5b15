//! What users without all rights see.

use crate::rig::{P, Rig, pod, user};
use bareboat::api::value;
use bareboat_shelf::Settings as ShelfSettings;
use bareboat_views::{Authorization, Settings};

/// Gives a user rules in the whole hub, or in a namespace.
pub(crate) async fn grant(rig: &Rig, who: &str, namespace: &str, rules: serde_json::Value) {
    let (kind, root) = match namespace {
        "" => (
            "ClusterRole",
            "/apis/rbac.authorization.k8s.io/v1".to_owned(),
        ),
        _ => (
            "Role",
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"),
        ),
    };
    let plural = kind.to_lowercase() + "s";
    let name = format!(
        "{who}-{}",
        rig.shelf.visible() + rules.to_string().len() as i64
    );
    let role = serde_json::json!({"metadata": {"name": name}, "rules": rules});
    rig.send("POST", &format!("{root}/{plural}"), &role.to_string(), &[])
        .await
        .expect(201);
    let binding = serde_json::json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who}],
    });
    let bindings = format!("{root}/{}bindings", kind.to_lowercase());
    rig.send("POST", &bindings, &binding.to_string(), &[])
        .await
        .expect(201);
}

pub(crate) fn read(resources: &[&str]) -> serde_json::Value {
    serde_json::json!([{"apiGroups": [""], "resources": resources, "verbs": ["get", "list", "watch"]}])
}

pub(crate) fn members(names: &[&str]) -> serde_json::Value {
    let mut rule = serde_json::json!({"apiGroups": ["clusterpedia.io"], "resources": ["resources"], "verbs": ["get"]});
    if !names.is_empty() {
        rule["resourceNames"] = serde_json::json!(names);
    }
    serde_json::json!([rule])
}

pub(crate) async fn filled() -> Rig {
    let rig = Rig::start().await;
    fill(&rig).await;
    rig
}

async fn fill(rig: &Rig) {
    for namespace in ["a", "b"] {
        let body = format!(r#"{{"metadata": {{"name": "{namespace}"}}}}"#);
        rig.send("POST", "/api/v1/namespaces", &body, &[])
            .await
            .expect(201);
    }
    for cluster in ["c1", "c2"] {
        rig.put(cluster, pod("a", "x", "Running"));
        rig.put(cluster, pod("b", "y", "Running"));
    }
}

/// A right to paths below the views, with the names that Clusterpedia's rules have: `resources/SECOND` named FIRST.
fn path(first: &str, second: &str, verb: &str) -> serde_json::Value {
    let resource = format!("resources/{second}");
    serde_json::json!([{
        "apiGroups": ["clusterpedia.io"], "resources": [resource], "resourceNames": [first], "verbs": [verb],
    }])
}

#[tokio::test]
async fn rights_on_namespaces_count() {
    let rig = filled().await;
    grant(&rig, "ann", "", members(&[])).await;
    grant(&rig, "ann", "a", read(&["pods"])).await;
    let pods = format!("{P}/api/v1/pods");
    let refused = rig.get_as("ann", &pods).await.expect(403);
    assert!(
        refused.message().contains("cannot list resource"),
        "{}",
        refused.message()
    );
    let only = ["c1/a/x", "c2/a/x"];
    assert_eq!(
        rig.get_as("ann", &format!("{P}/api/v1/namespaces/a/pods"))
            .await
            .names(),
        only
    );
    assert_eq!(
        rig.get_as("ann", &format!("{pods}?namespaces=a"))
            .await
            .names(),
        only
    );
    assert_eq!(
        rig.get_as("ann", &format!("{pods}?visible=true"))
            .await
            .names(),
        only
    );
    rig.get_as("ann", &format!("{pods}?namespaces=a,b"))
        .await
        .expect(403);
    rig.get_as("ann", &format!("{P}/api/v1/namespaces/b/pods"))
        .await
        .expect(403);
    let one = |namespace: &str, name: &str| {
        format!("{P}/clusters/c1/api/v1/namespaces/{namespace}/pods/{name}")
    };
    rig.get_as("ann", &one("a", "x")).await.expect(200);
    rig.get_as("ann", &one("b", "y")).await.expect(403);
    rig.get_as("ann", &format!("{P}/clusters/c1/api/v1/pods"))
        .await
        .expect(403);
    // A search cannot tell what is in namespaces that the user may not read.
    rig.get_as("ann", &format!("{pods}?summary=namespace"))
        .await
        .expect(403);
    let summary = rig
        .get_as("ann", &format!("{pods}?summary=namespace&visible=true"))
        .await;
    assert_eq!(
        summary.expect(200).json()["groups"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn rights_on_members_count() {
    let rig = filled().await;
    grant(&rig, "bob", "", members(&["c1"])).await;
    grant(&rig, "bob", "", read(&["pods"])).await;
    let pods = format!("{P}/api/v1/pods");
    let list = rig.get_as("bob", &pods).await;
    assert_eq!(list.names(), ["c1/a/x", "c1/b/y"]);
    assert!(
        list.warnings()[0].contains("2 clusters are left out"),
        "{:?}",
        list.warnings()
    );
    rig.get_as("bob", &format!("{pods}?clusters=c2"))
        .await
        .expect(403);
    rig.get_as("bob", &format!("{P}/clusters/c2/api/v1/pods"))
        .await
        .expect(403);
    rig.get_as(
        "bob",
        &format!("{P}/clusters/c2/api/v1/namespaces/a/pods/x"),
    )
    .await
    .expect(403);
    rig.get_as("nobody", &pods).await.expect(403);
    let mut events = rig
        .watch_as(user("bob"), &format!("{pods}?watch=true"), &[])
        .await;
    assert_eq!(events.take(2).await, ["ADDED c1/a/x", "ADDED c1/b/y"]);
    rig.put("c2", pod("a", "hidden", "Running"));
    rig.put("c1", pod("a", "shown", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c1/a/shown"]);
}

#[tokio::test]
async fn secrets_show_their_keys() {
    let rig = filled().await;
    let mut open = crate::rig::member("c3");
    open.shows_secrets = true;
    rig.join(open);
    let secret = |value: &str| {
        value!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "s"},
            "data": {"password": value},
        })
    };
    rig.put("c1", secret("aHVudGVyMg=="));
    rig.put("c3", secret("aHVudGVyMg=="));
    let list = rig
        .get(&format!("{P}/api/v1/secrets"))
        .await
        .expect(200)
        .json();
    let shown = |index: usize| {
        list["items"][index]["data"]["password"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    assert!(shown(0).starts_with("sha256:"), "{}", shown(0));
    assert_eq!(shown(1), "aHVudGVyMg==");
    let one = rig
        .get(&format!("{P}/clusters/c1/api/v1/namespaces/a/secrets/s"))
        .await
        .expect(200);
    assert!(!String::from_utf8_lossy(&one.bytes).contains("aHVudGVyMg"));
    let mut events = rig.watch(&format!("{P}/api/v1/secrets?watch=true")).await;
    let event = events.next().await.expect("an event");
    assert!(!event.to_string().contains("aHVudGVyMg"));
    grant(&rig, "cid", "", members(&[])).await;
    grant(&rig, "cid", "", read(&["pods"])).await;
    rig.get_as("cid", &format!("{P}/api/v1/secrets"))
        .await
        .expect(403);
    let found = rig
        .get_as(
            "cid",
            "/apis/clusterpedia.io/v1beta1/collectionresources/any?groups=",
        )
        .await;
    found.expect(403);
}

#[tokio::test]
async fn collections_leave_out_types_that_the_user_may_not_list() {
    let rig = filled().await;
    grant(&rig, "dot", "", members(&[])).await;
    grant(&rig, "dot", "", read(&["pods"])).await;
    let rule = serde_json::json!([{"apiGroups": ["clusterpedia.io"], "resources": ["collectionresources"], "verbs": ["get", "list"]}]);
    grant(&rig, "dot", "", rule).await;
    rig.put(
        "c1",
        value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "s"}}),
    );
    let found = rig
        .get_as(
            "dot",
            "/apis/clusterpedia.io/v1beta1/collectionresources/any?groups=",
        )
        .await;
    let found = found.expect(200);
    assert!(!String::from_utf8_lossy(&found.bytes).contains("Secret"));
    assert_eq!(found.json()["items"].as_array().map(Vec::len), Some(4));
    assert!(found.warnings()[0].contains("types are left out"));
}

/// Returns which of the items have events.
pub(crate) fn with_events(answer: &crate::rig::Answer) -> Vec<bool> {
    let body = answer.json();
    let items = body["items"].as_array().expect("a list").iter();
    let annotation = "shadow.clusterpedia.io/events";
    let has = |item: &serde_json::Value| item["metadata"]["annotations"].get(annotation).is_some();
    items.map(has).collect()
}

#[tokio::test]
async fn events_are_injected_for_those_who_may_list_them() {
    let rig = filled().await;
    for namespace in ["a", "b"] {
        let name = if namespace == "a" { "x" } else { "y" };
        let event = value!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": namespace, "name": "e"},
            "involvedObject": {"kind": "Pod", "uid": (format!("c1-Pod-{namespace}-{name}"))},
            "message": "the secret of the pod",
        });
        rig.put("c1", event);
    }
    for who in ["eve", "fay"] {
        grant(&rig, who, "", members(&[])).await;
        grant(&rig, who, "", read(&["pods", "namespaces"])).await;
    }
    grant(&rig, "fay", "a", read(&["events"])).await;
    let pods = format!("{P}/clusters/c1/api/v1/pods?injectEvents=true");
    let all = rig.get(&pods).await.expect(200);
    assert_eq!(with_events(&all), [true, true]);
    assert_eq!(all.warnings(), Vec::<String>::new());
    let none = rig.get_as("eve", &pods).await.expect(200);
    assert_eq!(with_events(&none), [false, false]);
    assert!(
        none.warnings()[0].contains("you may not list events"),
        "{:?}",
        none.warnings()
    );
    let some = rig.get_as("fay", &pods).await.expect(200);
    assert_eq!(with_events(&some), [true, false]);
    assert!(
        some.warnings()[0].contains("in namespaces where you may not"),
        "{:?}",
        some.warnings()
    );
    let one = |namespace: &str, name: &str| {
        format!("{P}/clusters/c1/api/v1/namespaces/{namespace}/pods/{name}?injectEvents=true")
    };
    let shows = |answer: &crate::rig::Answer| {
        String::from_utf8_lossy(&answer.bytes).contains("the secret of the pod")
    };
    let own = rig.get_as("fay", &one("a", "x")).await.expect(200);
    assert!(shows(&own));
    let other = rig.get_as("fay", &one("b", "y")).await.expect(200);
    assert!(!shows(&other));
    assert!(other.warnings()[0].contains("you may not list events"));
    // A watch sends the state with events, too.
    let watch = format!("{pods}&watch=true");
    let mut events = rig.watch_as(user("fay"), &watch, &[]).await;
    let shown: Vec<String> = [events.next().await, events.next().await]
        .map(|event| event.expect("an event").to_string())
        .into();
    assert!(shown[0].contains("the secret of the pod"), "{shown:?}");
    assert!(!shown[1].contains("the secret of the pod"), "{shown:?}");
    // The events of objects without namespace may be in any namespace.
    let namespaces = format!("{P}/clusters/c1/api/v1/namespaces?injectEvents=true");
    let answer = rig.get_as("fay", &namespaces).await.expect(200);
    assert!(answer.warnings()[0].contains("you may not list events"));
}

#[tokio::test]
async fn rights_on_events_are_those_of_the_group_in_the_path() {
    let rig = filled().await;
    let event = |name: &str| {
        value!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "a", "name": name}, "message": "x",
        })
    };
    rig.put("c1", event("e"));
    grant(&rig, "ann", "", members(&[])).await;
    let newer = serde_json::json!([{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["get", "list"]}]);
    grant(&rig, "ann", "a", newer).await;
    let path = |group: &str| format!("{P}/{group}/v1/namespaces/a/events");
    let shown = rig.get_as("ann", &path("apis/events.k8s.io")).await;
    assert_eq!(shown.names(), ["c1/a/e"]);
    rig.get_as("ann", &path("api")).await.expect(403);
    let visible = format!("{P}/apis/events.k8s.io/v1/events?visible=true");
    assert_eq!(rig.get_as("ann", &visible).await.names(), ["c1/a/e"]);
    let watch = format!("{}?watch=true", path("apis/events.k8s.io"));
    rig.get_as("ann", &watch).await.expect(403);
}

/// A rig with users who have rights to paths, and one with rights to objects.
async fn with_paths(authorization: Authorization) -> Rig {
    let settings = Settings {
        authorization,
        ..Settings::default()
    };
    let rig = Rig::with(false, settings, ShelfSettings::default()).await;
    fill(&rig).await;
    grant(&rig, "ann", "", path("api", "v1", "get")).await;
    grant(&rig, "bob", "", path("clusters", "c1", "get")).await;
    grant(&rig, "cid", "", members(&[])).await;
    grant(&rig, "cid", "", read(&["pods"])).await;
    rig
}

#[tokio::test]
async fn the_path_decides_alone_only_if_the_setting_says_so() {
    let pods = format!("{P}/api/v1/pods");
    let of_one = format!("{P}/clusters/c1/api/v1/pods");
    let asked = [
        ("ann", &pods, 200, 403),
        ("ann", &of_one, 403, 403),
        ("bob", &pods, 403, 403),
        ("bob", &of_one, 200, 403),
        ("cid", &pods, 403, 200),
        ("cid", &of_one, 403, 200),
        ("dot", &pods, 403, 403),
    ];
    let by_path = with_paths(Authorization::Path).await;
    let by_rights = with_paths(Authorization::Hub).await;
    for (user, target, path, hub) in asked {
        by_path.get_as(user, target).await.expect(path);
        by_rights.get_as(user, target).await.expect(hub);
    }
}

#[tokio::test]
async fn who_may_get_a_path_reads_all_below_it_and_writes_nothing() {
    let rig = with_paths(Authorization::Path).await;
    let secret = value!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "s"},
        "data": {"password": "aHVudGVyMg=="},
    });
    rig.put("c1", secret);
    let all = ["c1/a/x", "c2/a/x", "c1/b/y", "c2/b/y"];
    let pods = format!("{P}/api/v1/pods");
    assert_eq!(rig.get_as("ann", &pods).await.names(), all);
    let visible = format!("{pods}?visible=true");
    assert_eq!(rig.get_as("ann", &visible).await.names(), all);
    let namespace = format!("{P}/api/v1/namespaces/b/pods");
    let some = rig.get_as("ann", &namespace).await;
    assert_eq!(some.names(), ["c1/b/y", "c2/b/y"]);
    let watch = format!("{pods}?watch=true");
    let mut events = rig.watch_as(user("ann"), &watch, &[]).await;
    let first = events.take(4).await;
    assert_eq!(first, all.map(|name| format!("ADDED {name}")));
    // Values of Secrets stay digests.
    let secrets = rig.get_as("ann", &format!("{P}/api/v1/secrets")).await;
    let text = String::from_utf8_lossy(&secrets.expect(200).bytes).into_owned();
    assert!(
        text.contains("sha256:") && !text.contains("aHVudGVyMg"),
        "{text}"
    );
    // Another path is another right.
    let deployments = format!("{P}/apis/apps/v1/deployments");
    rig.get_as("ann", &deployments).await.expect(403);
    // A write has its own verb.
    let one = format!("{P}/clusters/c1/api/v1/namespaces/a/pods/x");
    rig.get_as("bob", &one).await.expect(200);
    let delete = async |code: u16| {
        let sent = rig.send_as(user("bob"), "DELETE", &one, "", &[]).await;
        sent.expect(code);
    };
    delete(403).await;
    assert!(rig.data.forwarded.lock().is_empty());
    grant(&rig, "bob", "", path("clusters", "c1", "delete")).await;
    delete(200).await;
    assert_eq!(rig.data.forwarded.lock().len(), 1);
}
