//! Actions: bindings and evictions of pods, and actions of custom kinds.

use crate::support::*;
use bareboat::api::kind::{Acted, Action, BoxFuture, ObjectAccess, ObjectRef, Posted, PostedType};
use bareboat::api::{Status, value};
use bareboat_testing::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn with_pods(names: &[&str]) -> TestServer {
    // No controller may delete pods.
    let server = TestServer::builder().without_controllers().start().await;
    for name in names {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        server.post(PODS, &pod).await.expect(201);
    }
    server
}

fn binding(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}})
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

async fn bind(server: &TestServer, name: &str) -> Answer {
    let path = format!("{PODS}/{name}/binding");
    server.post(&path, &binding(name)).await
}

async fn evict(server: &TestServer, name: &str) -> Answer {
    let path = format!("{PODS}/{name}/eviction");
    server.post(&path, &eviction(name)).await
}

async fn run(server: &TestServer, name: &str, ready: &str) {
    bind(server, name).await.expect(201);
    let status =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    let path = format!("{PODS}/{name}/status");
    server.patch(&path, MERGE, &status).await.expect(200);
}

async fn budget(server: &TestServer, name: &str, status: Value) {
    let budget = json!({
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    let made = server.post(BUDGETS, &budget).await;
    assert!(matches!(made.code, 201 | 409), "{}", made.text());
    let path = format!("{BUDGETS}/{name}/status");
    let patch = json!({"status": status});
    server.patch(&path, MERGE, &patch).await.expect(200);
}

/// Returns the cause of a rejection, and the seconds until a retry.
#[track_caller]
fn refusal(answer: &Answer) -> (String, String) {
    let (code, reason, message) = answer.status();
    assert_eq!((code, reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(
        message,
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let causes = &answer.json()["details"]["causes"];
    assert_eq!(causes[0]["reason"], "DisruptionBudget");
    (
        text(&causes[0]["message"]).to_owned(),
        answer.header("retry-after").to_owned(),
    )
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let server = with_pods(&["a", "b"]).await;
    let mut posted = binding("a");
    posted["metadata"]["annotations"] = json!({"x": "y"});
    posted["metadata"]["labels"] = json!({"zone": "z"});
    let path = format!("{PODS}/a/binding");
    let answer = server.post(&path, &posted).await.expect(201).json();
    assert_eq!(
        answer,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
    );
    let pod = server.get(&format!("{PODS}/a")).await.json();
    assert_eq!(pod["spec"]["nodeName"], "n");
    assert_eq!(pod["metadata"]["annotations"], json!({"x": "y"}));
    assert_eq!(pod["metadata"]["labels"], json!({"app": "a", "zone": "z"}));
    assert_eq!(pod["metadata"]["generation"], 1);
    assert_eq!(
        pod["metadata"]["managedFields"].as_array().unwrap().len(),
        1
    );
    let condition = &pod["status"]["conditions"][0];
    assert_eq!(condition["type"], "PodScheduled");
    assert_eq!(condition["status"], "True");
    assert!(condition["lastTransitionTime"].is_string());

    let (code, reason, message) = bind(&server, "a").await.status();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(
        message,
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n\""
    );
    // `bindings` is another path to the same action.
    let bindings = "/api/v1/namespaces/default/bindings";
    server.post(bindings, &binding("b")).await.expect(201);
    let pod = server.get(&format!("{PODS}/b")).await.json();
    assert_eq!(pod["spec"]["nodeName"], "n");
    server.get(bindings).await.expect(405);
    server.get(&format!("{PODS}/a/binding")).await.expect(405);
}

#[tokio::test]
async fn invalid_bindings_are_rejected_as_upstream_does() {
    let server = with_pods(&["a"]).await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut posted = binding("a");
        change(&mut posted);
        posted
    };
    let cases = [
        (
            with(&|b| b["metadata"]["name"] = json!("b")),
            400,
            "name in URL does not match name in Binding object",
        ),
        (
            with(&|b| b["metadata"]["namespace"] = json!("other")),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            with(&|b| b["target"] = json!({})),
            500,
            "target.name: Required value",
        ),
        (
            with(&|b| b["target"] = json!({"kind": "X"})),
            500,
            "[target.kind: Unsupported value: \"X\": supported values: \"Node\", \"<empty>\", target.name: Required value]",
        ),
        (
            with(&|b| b["metadata"]["uid"] = json!("zz")),
            409,
            "UID in precondition: zz, UID in object meta: ",
        ),
        (
            with(&|b| b["metadata"]["resourceVersion"] = json!("1")),
            409,
            "ResourceVersion in precondition: 1, ResourceVersion in object meta: ",
        ),
        (
            with(&|b| b["kind"] = json!("Pod")),
            400,
            "Pod in version \"v1\" cannot be handled as a Binding",
        ),
    ];
    for (posted, code, expected) in cases {
        let answer = server.post(&format!("{PODS}/a/binding"), &posted).await;
        let (found, _, message) = answer.status();
        assert_eq!(found, code, "{posted}: {message}");
        assert!(message.contains(expected), "{posted}: {message}");
    }
    let missing = bind(&server, "nobody").await.status();
    assert_eq!(missing.2, "pods \"nobody\" not found");
    let strict = format!("{PODS}/a/binding?fieldValidation=Strict");
    let unknown = with(&|b| b["foo"] = json!(1));
    server.post(&strict, &unknown).await.expect(400);
    let dry = format!("{PODS}/a/binding?dryRun=All");
    server.post(&dry, &binding("a")).await.expect(201);
    let pod = server.get(&format!("{PODS}/a")).await.json();
    assert_eq!(pod["spec"].get("nodeName"), None);
}

#[tokio::test]
async fn an_eviction_without_a_budget_is_a_deletion() {
    let server = with_pods(&["pending", "running"]).await;
    evict(&server, "pending").await.expect(201);
    server.get(&format!("{PODS}/pending")).await.expect(404);

    run(&server, "running", "True").await;
    let dry = format!("{PODS}/running/eviction?dryRun=All");
    server.post(&dry, &eviction("running")).await.expect(201);
    let mut inside = eviction("running");
    inside["deleteOptions"] = json!({"dryRun": ["All"]});
    let path = format!("{PODS}/running/eviction");
    server.post(&path, &inside).await.expect(201);
    let pod = server.get(&format!("{PODS}/running")).await.json();
    assert_eq!(pod["metadata"].get("deletionTimestamp"), None);

    let mut elsewhere = eviction("running");
    elsewhere["deleteOptions"] = json!({"preconditions": {"uid": "x"}});
    let (code, _, message) = server.post(&path, &elsewhere).await.status();
    assert_eq!(code, 409);
    assert!(
        message.starts_with(
            "Operation cannot be fulfilled on Pod \"running\": the UID in the precondition (x)"
        ),
        "{message}"
    );

    evict(&server, "running").await.expect(201);
    let pod = server.get(&format!("{PODS}/running")).await.json();
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let target = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .expect("a mark on the pod");
    assert_eq!(target["reason"], "EvictionByEvictionAPI");
    assert_eq!(target["message"], "Eviction API: evicting");
    evict(&server, "nobody").await.expect(404);
    let (code, _, message) = server.post(&path, &eviction("other")).await.status();
    assert_eq!(
        (code, message.as_str()),
        (400, "name in URL does not match name in Eviction object")
    );
}

#[tokio::test]
async fn a_budget_decides_when_a_pod_is_evicted() {
    let server = with_pods(&["a", "b"]).await;
    run(&server, "a", "True").await;
    run(&server, "b", "True").await;
    budget(&server, "p", json!({})).await;
    let late = (
        "The disruption budget p is still being processed by the server.".to_owned(),
        "10".to_owned(),
    );
    assert_eq!(refusal(&evict(&server, "a").await), late);

    let cases = [
        (
            json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}),
            "The disruption budget p needs 1 healthy pods and has 1 currently",
        ),
        (
            json!({"currentHealthy": 3}),
            "The disruption budget p does not allow evicting pods currently",
        ),
        (
            json!({"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "Why", "message": "oh", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}),
            "The disruption budget p does not allow evicting pods currently (Why): oh",
        ),
        (
            json!({"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "oh", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}),
            "The disruption budget p does not allow evicting pods currently because it failed sync: oh",
        ),
    ];
    for (status, expected) in cases {
        budget(&server, "p", status).await;
        let found = refusal(&evict(&server, "a").await);
        assert_eq!(found, (expected.to_owned(), String::new()));
    }

    budget(
        &server,
        "p",
        json!({"disruptionsAllowed": 1, "conditions": null}),
    )
    .await;
    let dry = format!("{PODS}/a/eviction?dryRun=All");
    server.post(&dry, &eviction("a")).await.expect(201);
    evict(&server, "a").await.expect(201);
    let after = server.get(&format!("{BUDGETS}/p")).await.json();
    assert_eq!(after["status"]["disruptionsAllowed"], 0);
    assert!(after["status"]["disruptedPods"]["a"].is_string());
    assert_eq!(
        after["status"]["conditions"][0]["reason"],
        "InsufficientPods"
    );
    let managers = after["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        managers.iter().any(|entry| {
            entry["manager"] == "kube-apiserver" && entry["subresource"] == "status"
        })
    );
    // The pod is terminating, so the budget no longer counts it.
    evict(&server, "a").await.expect(201);
    refusal(&evict(&server, "b").await);
}

#[tokio::test]
async fn an_unhealthy_pod_is_evicted_if_the_budget_does_not_need_it() {
    let server = with_pods(&["a", "b"]).await;
    run(&server, "a", "False").await;
    run(&server, "b", "False").await;
    let none = json!({"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1, "disruptionsAllowed": 0});
    budget(&server, "p", none).await;
    refusal(&evict(&server, "a").await);
    budget(&server, "p", json!({"currentHealthy": 1})).await;
    evict(&server, "a").await.expect(201);
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    server
        .patch(&format!("{BUDGETS}/p"), MERGE, &always)
        .await
        .expect(200);
    budget(&server, "p", json!({"currentHealthy": 0})).await;
    evict(&server, "b").await.expect(201);
    let after = server.get(&format!("{BUDGETS}/p")).await.json();
    assert_eq!(after["status"].get("disruptedPods"), None);
}

#[tokio::test]
async fn two_budgets_for_one_pod_are_an_error() {
    let server = with_pods(&["a"]).await;
    run(&server, "a", "True").await;
    budget(&server, "p", json!({})).await;
    budget(&server, "q", json!({})).await;
    let (code, reason, message) = evict(&server, "a").await.status();
    assert_eq!((code, reason.as_str()), (500, ""));
    assert!(message.starts_with("This pod has more than one PodDisruptionBudget"));
}

#[tokio::test]
async fn concurrent_evictions_do_not_exceed_the_budget() {
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let server = with_pods(&names).await;
    for name in &names {
        run(&server, name, "True").await;
    }
    let seven = json!({"observedGeneration": 1, "currentHealthy": 20, "desiredHealthy": 1, "disruptionsAllowed": 7});
    budget(&server, "p", seven).await;
    let answers =
        futures_util::future::join_all(names.iter().map(|name| evict(&server, name))).await;
    let gone = answers.iter().filter(|answer| answer.code == 201).count();
    assert_eq!(gone, 7);
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer.code, 201 | 429))
    );
    let after = server.get(&format!("{BUDGETS}/p")).await.json();
    assert_eq!(after["status"]["disruptionsAllowed"], 0);
    let disrupted = after["status"]["disruptedPods"].as_object().unwrap();
    assert_eq!(disrupted.len(), 7);
}

#[tokio::test]
async fn bindings_and_evictions_accept_protobuf() {
    let server = with_pods(&["a"]).await;
    let meta = proto::field(1, b"a");
    let target = [proto::field(1, b"Node"), proto::field(3, b"n")].concat();
    let raw = [proto::field(1, &meta), proto::field(2, &target)].concat();
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let body = proto::envelope("v1", "Binding", &raw);
    let path = format!("{PODS}/a/binding");
    let answer = server.send("POST", &path, &headers, body).await.expect(201);
    assert_eq!(proto::open(&answer.bytes).0, "Status");
    for version in ["policy/v1beta1", "policy/v1"] {
        let body = proto::envelope(version, "Eviction", &proto::field(1, &meta));
        let path = format!("{PODS}/a/eviction");
        let answer = server.send("POST", &path, &headers, body).await.expect(201);
        assert_eq!(proto::open(&answer.bytes).0, "Status");
    }
    let pod = server.get(&format!("{PODS}/a")).await.json();
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
}

/// An action that stores the posted object in a ConfigMap and returns the previous content.
struct Note([PostedType; 1]);

impl Action for Note {
    fn types(&self) -> &[PostedType] {
        &self.0
    }

    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        objects: &'a dyn ObjectAccess,
    ) -> BoxFuture<'a, Result<Acted, Status>> {
        Box::pin(async move {
            let target = ObjectRef {
                group: "",
                resource: "configmaps",
                namespace: posted.namespace,
                name: posted.name,
            };
            let note = posted.object.at(&["data", "note"]).cloned();
            let before = objects
                .get(target)
                .ok_or_else(|| Status::bad_request("no map"))?;
            let edit = |mut map: bareboat::api::Object| {
                map.map_mut()
                    .object_mut("data")
                    .insert("note", note.clone().unwrap_or_default());
                Ok(map)
            };
            let edit = bareboat::api::kind::ObjectEdit {
                target,
                manager: Some(("noter", "note")),
                edit: &edit,
                dry_run: posted.dry_run,
            };
            objects.edit(edit).await?;
            Ok(Acted::Object(before))
        })
    }
}

#[tokio::test]
async fn a_custom_kind_can_have_an_action() {
    use bareboat::prelude::*;
    let mut maps = bareboat::builtin::kinds::find("", "configmaps").expect("config maps");
    let posted_type = PostedType {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        shape: maps.versions[0].shape.clone(),
    };
    let note = Subresource::action("note", ("", "v1", "ConfigMap"), Note([posted_type]));
    maps.versions[0].subresources.push(note);
    let server = Server::builder().kind(maps).build().expect("a server");
    let send = |method: &str, path: &str, body: String| {
        let server = server.clone();
        let request = request(method, path, &[], body)
            .map(bareboat::server::request::body::RequestBody::Memory);
        async move {
            let admin = bareboat::server::authn::in_process();
            read(server.call(admin, request).await).await
        }
    };
    send("POST", MAPS, config_map("m").to_string())
        .await
        .expect(201);
    let posted = value!({"data": {"note": "hello"}}).to_string();
    let path = format!("{MAPS}/m/note");
    let answer = send("POST", &path, posted).await.expect(201).json();
    assert_eq!(answer["data"], json!({"a": "b"}));
    let map = send("GET", &format!("{MAPS}/m"), String::new())
        .await
        .json();
    assert_eq!(map["data"]["note"], "hello");
    let resources = send("GET", "/api/v1", String::new()).await.json();
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| text(&r["name"]))
        .collect();
    assert_eq!(names, ["configmaps", "configmaps/note"]);
}
