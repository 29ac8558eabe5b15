//! Scale subresources: reading and writing replicas, and their managers.

use crate::support::*;
use bareboat_testing::TestServer;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

fn scale(replicas: i64) -> Value {
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"replicas": replicas},
    })
}

async fn apply(server: &TestServer, path: &str, manager: &str, body: &Value) -> Answer {
    let path = format!("{DEPLOYMENTS}/{path}?fieldManager={manager}");
    server.patch(&path, APPLY, body).await
}

/// Returns the managers of replicas as `manager operation subresource`, each with whether it has a time.
async fn managers(server: &TestServer) -> Vec<(String, bool)> {
    let found = server.get(&format!("{DEPLOYMENTS}/d")).await.json();
    let entries = found["metadata"]["managedFields"].as_array().unwrap();
    let mut managers: Vec<(String, bool)> = entries
        .iter()
        .filter(|entry| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some())
        .map(|entry| {
            assert_eq!(entry["apiVersion"], "apps/v1");
            let parts = ["manager", "operation", "subresource"].map(|key| text(&entry[key]));
            (
                parts.join(" ").trim_end().to_owned(),
                entry["time"].is_string(),
            )
        })
        .collect();
    managers.sort();
    managers
}

fn owned(who: &str, dated: bool) -> Vec<(String, bool)> {
    vec![(who.to_owned(), dated)]
}

#[tokio::test]
async fn replicas_have_one_manager_for_all_paths() {
    let server = TestServer::builder().without_controllers().start().await;
    apply(&server, "d", "own", &deployment(2)).await.expect(201);
    assert_eq!(managers(&server).await, owned("own Apply", true));

    let (code, reason, message) = apply(&server, "d/scale", "sc", &scale(5)).await.status();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"own\": .spec.replicas"
    );
    // The same number is no conflict: both managers own it.
    let shared = apply(&server, "d/scale", "sc", &scale(2))
        .await
        .expect(200)
        .json();
    assert_eq!(shared["kind"], "Scale");
    assert_eq!(shared["spec"]["replicas"], 2);
    assert_eq!(shared["metadata"].get("managedFields"), None);
    let both = [owned("own Apply", true), owned("sc Apply scale", false)].concat();
    assert_eq!(managers(&server).await, both);

    let path = format!("{DEPLOYMENTS}/d/scale?fieldManager=sc&force=true");
    let forced = server.patch(&path, APPLY, &scale(5)).await.expect(200);
    assert_eq!(managers(&server).await, owned("sc Apply scale", false));
    let again = apply(&server, "d/scale", "sc", &scale(5)).await.expect(200);
    assert_eq!(again.version(), forced.version(), "nothing changed");

    let (code, _, message) = apply(&server, "d", "own", &deployment(3)).await.status();
    assert_eq!(code, 409);
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"sc\" with subresource \"scale\": .spec.replicas"
    );
    let path = format!("{DEPLOYMENTS}/d?fieldManager=own&force=true");
    server.patch(&path, APPLY, &deployment(3)).await.expect(200);
    assert_eq!(managers(&server).await, owned("own Apply", true));

    let path = format!("{DEPLOYMENTS}/d/scale?fieldManager=up");
    let patch = json!({"spec": {"replicas": 7}});
    let patched = server.patch(&path, MERGE, &patch).await.expect(200);
    assert_eq!(managers(&server).await, owned("up Update scale", false));
    let same = server.patch(&path, MERGE, &patch).await.expect(200);
    assert_eq!(same.version(), patched.version());
    let path = format!("{DEPLOYMENTS}/d/scale?fieldManager=up2");
    server.put(&path, &scale(8)).await.expect(200);
    assert_eq!(managers(&server).await, owned("up2 Update scale", false));
    let found = server.get(&format!("{DEPLOYMENTS}/d")).await.json();
    assert_eq!(found["spec"]["replicas"], 8);
    assert_eq!(found["metadata"]["generation"], 5);
}

#[tokio::test]
async fn invalid_scales_are_rejected() {
    let server = TestServer::builder().without_controllers().start().await;
    server.post(DEPLOYMENTS, &deployment(1)).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let wrong = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    let answer = apply(&server, "d/scale", "sc", &wrong).await.status();
    assert_eq!(
        answer,
        (
            400,
            "BadRequest".to_owned(),
            "invalid object type: apps/v1, Kind=Deployment".to_owned()
        )
    );
    let missing = format!("{DEPLOYMENTS}/nobody/scale?fieldManager=sc");
    let mut nobody = scale(1);
    nobody["metadata"]["name"] = json!("nobody");
    server.patch(&missing, APPLY, &nobody).await.expect(404);
    server.patch(&path, APPLY, &scale(1)).await.expect(422);
    let forced = format!("{path}?fieldManager=sc&force=true");
    let (code, _, message) = server.patch(&forced, APPLY, &scale(-1)).await.status();
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    let mut stranger = scale(4);
    stranger["x"] = json!(1);
    let (code, _, message) = server.patch(&forced, APPLY, &stranger).await.status();
    assert_eq!(code, 500);
    assert_eq!(
        message,
        "failed to create typed patch object (default/d; autoscaling/v1, Kind=Scale): .x: field not declared in schema"
    );
    let strict = format!("{path}?fieldValidation=Strict");
    let (code, _, message) = server.put(&strict, &stranger).await.status();
    assert_eq!(code, 400);
    assert_eq!(
        message,
        "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: unknown field \"x\""
    );
    let warned = server.put(&path, &stranger).await.expect(200);
    assert_eq!(
        warned.header("warning"),
        "299 - \"unknown field \\\"x\\\"\""
    );
    let patch = json!({"spec": {"replicas": 7, "y": 1}});
    server.patch(&strict, MERGE, &patch).await.expect(422);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "d"}});
    server.put(&path, &pod).await.expect(400);
    for (key, value) in [("uid", "zz"), ("resourceVersion", "1")] {
        let mut other = scale(9);
        other["metadata"][key] = json!(value);
        server.put(&path, &other).await.expect(409);
    }
    let mut other = scale(9);
    other["metadata"]["name"] = json!("e");
    server.put(&path, &other).await.expect(400);
    let dry = server
        .put(&format!("{path}?dryRun=All"), &scale(55))
        .await
        .expect(200);
    assert_eq!(dry.json()["spec"]["replicas"], 55);
    assert_eq!(server.get(&path).await.json()["spec"]["replicas"], 4);
}

#[tokio::test]
async fn a_selector_of_a_budget_is_replaced_by_a_strategic_patch() {
    let server = TestServer::builder().without_controllers().start().await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"metadata": {"name": "p"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    server.post(budgets, &budget).await.expect(201);
    let patch = json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}});
    let path = format!("{budgets}/p");
    let strategic = server
        .patch(&path, STRATEGIC, &patch)
        .await
        .expect(200)
        .json();
    assert_eq!(
        strategic["spec"]["selector"],
        json!({"matchLabels": {"c": "d"}})
    );
    let patch = json!({"spec": {"selector": {"matchLabels": {"e": "f"}}}});
    let merged = server.patch(&path, MERGE, &patch).await.expect(200).json();
    assert_eq!(
        merged["spec"]["selector"],
        json!({"matchLabels": {"c": "d", "e": "f"}})
    );
}

#[tokio::test]
async fn annotations_of_a_deployment_change_its_generation_and_labels_do_not() {
    let server = TestServer::builder().without_controllers().start().await;
    server.post(DEPLOYMENTS, &deployment(1)).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d");
    let mut generations = Vec::new();
    for member in ["labels", "annotations", "annotations"] {
        let patch = json!({"metadata": {member: {"x": "y"}}});
        let patched = server.patch(&path, MERGE, &patch).await.expect(200).json();
        generations.push(patched["metadata"]["generation"].as_i64().unwrap());
    }
    assert_eq!(generations, [1, 2, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scale_patch_returns_warnings_about_the_patch_and_the_object() {
    let server = TestServer::start().await;
    let mut object = deployment(1);
    object["spec"]["template"]["spec"]["topologySpreadConstraints"] =
        json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]);
    server.post(DEPLOYMENTS, &object).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let twice = r#"{"spec":{"replicas":2,"replicas":2}}"#;
    let headers = [("content-type", MERGE)];
    let answer = server
        .send("PATCH", &path, &headers, twice.to_owned())
        .await;
    let warnings = answer.expect(200).headers("warning");
    let reported = |words: &str| warnings.iter().any(|warning| warning.contains(words));
    assert!(
        reported("duplicate field \\\"spec.replicas\\\""),
        "{warnings:?}"
    );
    assert!(
        reported("a null labelSelector results in matching no pod"),
        "{warnings:?}"
    );
    let strict = format!("{path}?fieldValidation=Strict");
    let answer = server.send("PATCH", &strict, &headers, twice.to_owned());
    answer.await.expect(422);
    let operations = r#"[{"op":"add","path":"/spec/replicas","foo":1,"value":3,"value":2}]"#;
    let headers = [("content-type", JSON_PATCH)];
    let answer = server.send("PATCH", &path, &headers, operations).await;
    let warnings = answer.expect(200).headers("warning");
    let first = [
        r#"299 - "json patch unknown field \"[0].foo\"""#,
        r#"299 - "json patch duplicate field \"[0].value\"""#,
    ];
    assert_eq!(warnings[..2], first);
}
