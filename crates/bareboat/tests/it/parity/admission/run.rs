//! Plays scenes on a server.

use super::super::normal::recorded;
use super::super::target::{Target, USER};
use super::Recorded;
use super::scene::Scene;
use super::stage::Stage;
use crate::support::{APPLY, JSON_PATCH, MERGE, STRATEGIC, Value, json, soon};
use bareboat_builtin::kinds;
use std::time::Duration;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Plays all scenes, one after the other.
pub(super) async fn run(stage: &Stage, scenes: &[Scene]) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    for scene in scenes {
        play(stage, scene, &mut recorded).await;
    }
    recorded
}

async fn play(stage: &Stage, scene: &Scene, recorded: &mut Vec<Recorded>) {
    let namespace = format!("admission-{}", scene.name.replace(' ', "-"));
    let labels = json!({"scene": "yes"});
    let body = json!({"metadata": {"name": namespace, "labels": labels}}).to_string();
    stage
        .target
        .send("POST", "/api/v1/namespaces", &[], body)
        .await;
    let mut made = Vec::new();
    for item in &scene.setup {
        let (path, object) = setup(stage, &namespace, item);
        let answer = stage
            .target
            .send("POST", &path, &[], object.to_string())
            .await;
        assert_eq!(answer.code, 201, "{}: {}", scene.name, answer.text());
        made.push(format!(
            "{path}/{}",
            object["metadata"]["name"].as_str().unwrap()
        ));
        if object["kind"] == "CustomResourceDefinition" {
            stage.target.catch_up().await;
        }
    }
    stage.hooks(&scene.hooks);
    // kube-apiserver reads configurations, policies and parameters later than they are written.
    stage.target.catch_up().await;
    stage.target.catch_up().await;
    stage.calls(USER, false);
    for (at, step) in scene.steps.iter().enumerate() {
        let done = act(stage, scene, &namespace, step).await;
        let send = step["send"].as_str().expect("a method and a path");
        let step = format!("{} {}: {send}", scene.name, at + 1);
        recorded.push(Recorded { step, answer: done });
    }
    for path in made.iter().rev() {
        stage.target.send("DELETE", path, &[], String::new()).await;
    }
}

/// Sends one request and returns everything that is compared.
async fn act(stage: &Stage, scene: &Scene, namespace: &str, step: &Value) -> Value {
    let send = step["send"].as_str().expect("a method and a path");
    let (method, place) = send.split_once(' ').expect("a method and a path");
    let path = path(namespace, place);
    let media = match step["type"].as_str() {
        Some("merge") => MERGE,
        Some("strategic") => STRATEGIC,
        Some("json") => JSON_PATCH,
        Some("apply") => APPLY,
        _ => "application/json",
    };
    let body = match &step["body"] {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    if step["checked"] == true {
        return checked(&stage.target, &path).await;
    }
    let headers = [("content-type", media)];
    let answer = stage.target.send(method, &path, &headers, body).await;
    let mut done = recorded(&answer);
    if let Some(message) = done["body"]["message"].as_str() {
        done["body"]["message"] = stage.plain(message).into();
    }
    if let Some(causes) = done["body"]["details"]["causes"].as_array_mut() {
        for cause in causes {
            if let Some(message) = cause["message"].as_str() {
                cause["message"] = stage.plain(message).into();
            }
        }
    }
    done["calls"] = stage.calls(USER, scene.parallel);
    done["annotations"] = stage.annotations(&answer).await;
    done
}

/// Waits for the type check of a policy and returns its status.
async fn checked(target: &Target, path: &str) -> Value {
    soon(async {
        loop {
            let policy = target.send("GET", path, &[], String::new()).await.json();
            let status = &policy["status"];
            if status["observedGeneration"] == policy["metadata"]["generation"] {
                return json!({"code": 200, "status": status});
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// Returns a path; one without a slash at its beginning is below the scene's namespace.
fn path(namespace: &str, place: &str) -> String {
    match place.strip_prefix('/') {
        Some(_) => place.replace("NAMESPACE", namespace),
        None => format!("/api/v1/namespaces/{namespace}/{place}"),
    }
}

/// Returns the collection and the object of an item of the setup.
fn setup(stage: &Stage, namespace: &str, item: &Value) -> (String, Value) {
    let (sort, content) = item
        .as_object()
        .and_then(|map| map.iter().next())
        .expect("an object");
    let mut object = content.clone();
    let kind = match sort.as_str() {
        "mutating" | "validating" => {
            for webhook in object["webhooks"].as_array_mut().expect("webhooks") {
                complete(stage, webhook);
            }
            match sort.as_str() {
                "mutating" => "MutatingWebhookConfiguration",
                _ => "ValidatingWebhookConfiguration",
            }
        }
        "policy" => "ValidatingAdmissionPolicy",
        "binding" => "ValidatingAdmissionPolicyBinding",
        "mutator" => "MutatingAdmissionPolicy",
        "mutatorBinding" => "MutatingAdmissionPolicyBinding",
        // A path, with a whole object.
        place => return (path(namespace, place), object),
    };
    let name = object["name"].take();
    object.as_object_mut().unwrap().remove("name");
    if kind.ends_with("Policy") && object["matchConstraints"].is_null() {
        object["matchConstraints"] = json!({"resourceRules": [rule()]});
    }
    if object["webhooks"].is_null() {
        object = json!({"spec": object});
    }
    object["metadata"] = json!({"name": name});
    object["kind"] = kind.into();
    object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
    let mut all = kinds::all().into_iter();
    let known =
        all.find(|known| known.names.kind == kind && known.group == "admissionregistration.k8s.io");
    let plural = known.expect("a kind").names.plural.to_string();
    (format!("{ADMISSION}/{plural}"), object)
}

fn rule() -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]})
}

/// Fills in what most webhooks have in common. `hook` is the path of the hook.
fn complete(stage: &Stage, webhook: &mut Value) {
    let Some(path) = webhook["hook"].as_str().map(str::to_owned) else {
        panic!("{webhook} names no hook");
    };
    webhook.as_object_mut().unwrap().remove("hook");
    let usual = [
        (
            "name",
            json!(format!("{}.hooks.example.com", path.trim_matches('/'))),
        ),
        ("clientConfig", stage.hook.at(&path)),
        ("rules", json!([rule()])),
        ("sideEffects", json!("None")),
        ("admissionReviewVersions", json!(["v1"])),
        ("timeoutSeconds", json!(5)),
    ];
    for (key, value) in usual {
        if webhook[key].is_null() {
            webhook[key] = value;
        }
    }
}
