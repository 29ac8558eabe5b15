//! The default roles and bindings of a server: those of Kubernetes, repaired at the next start, and fewer of them under
//! the bare profile.

use crate::support::*;
use bareboat::prelude::Profile;
use bareboat_testing::TestServer;
use std::fmt::Write as _;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The objects of a fresh kube-apiserver, with their paths.
fn recorded() -> Option<Vec<(String, Value)>> {
    let folder = bareboat_vectors::folder("rbac")?;
    let all = std::fs::read_to_string(folder.join("bootstrap.yaml")).unwrap();
    let objects = all.split("\n---\n").map(|document| {
        let document = document.trim_start_matches("---\n");
        let parsed = bareboat_wire::yaml::parse(document.as_bytes()).unwrap();
        let object: Value = serde_json::from_slice(&parsed.value.to_json()).unwrap();
        let plural = format!("{}s", text(&object["kind"]).to_lowercase());
        let name = name(&object);
        let path = match text(&object["metadata"]["namespace"]) {
            "" => format!("{RBAC}/{plural}/{name}"),
            namespace => format!("{RBAC}/namespaces/{namespace}/{plural}/{name}"),
        };
        (path, object)
    });
    Some(objects.collect())
}

/// Whether an object of the server is the recorded one.
fn is_same(found: &Value, recorded: &Value) -> bool {
    let metadata = ["annotations", "labels"];
    metadata
        .iter()
        .all(|member| found["metadata"][member] == recorded["metadata"][member])
        && ["roleRef", "subjects", "aggregationRule"]
            .iter()
            .all(|member| found[member] == recorded[member])
        // The rules of aggregated roles are written by a controller.
        && (recorded["rules"].is_null() || found["rules"] == recorded["rules"])
}

/// What takes something away from an object.
fn damage(object: &Value) -> Value {
    match text(&object["kind"]) {
        "ClusterRole" | "Role" if object["aggregationRule"].is_null() => {
            json!({"rules": [], "metadata": {"labels": null}})
        }
        "ClusterRole" => json!({"metadata": {"labels": null}}),
        _ => json!({"subjects": [], "metadata": {"labels": null}}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_default_object_is_repaired_unless_its_owner_said_otherwise() {
    let Some(recorded) = recorded() else {
        return;
    };
    assert_eq!(recorded.len(), 133);
    let mut server = TestServer::builder().default_roles().start().await;
    for (path, object) in &recorded {
        let found = server.get(path).await.expect(200).json();
        assert!(is_same(&found, object), "{path}: {found}");
        let damaged = server.patch(path, MERGE, &damage(object)).await;
        assert!(!is_same(&damaged.expect(200).json(), object), "{path}");
    }
    server.restart().await;
    for (path, object) in &recorded {
        let found = server.get(path).await.expect(200).json();
        assert!(is_same(&found, object), "{path}: {found}");
        let mut change = damage(object);
        change["metadata"]["annotations"] = json!({AUTO_UPDATE: "false"});
        server.patch(path, MERGE, &change).await.expect(200);
    }
    server.restart().await;
    for (path, object) in &recorded {
        let found = server.get(path).await.expect(200).json();
        assert_eq!(found["metadata"]["labels"], Value::Null, "{path}: {found}");
        assert!(!is_same(&found, object), "{path}: {found}");
    }
}

/// Prints an object in a few words.
fn describe(out: &mut String, kind: &str, object: &Value) {
    let metadata = &object["metadata"];
    let place = match text(&metadata["namespace"]) {
        "" => name(object),
        namespace => format!("{namespace}/{}", name(object)),
    };
    let _ = writeln!(out, "{kind} {place}");
    for rule in object["rules"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "  {rule}");
    }
    if let Some(selectors) = object["aggregationRule"]["clusterRoleSelectors"].as_array() {
        let _ = writeln!(out, "  aggregates {selectors:?}");
    }
    if object["roleRef"].is_object() {
        let role = &object["roleRef"];
        let _ = writeln!(out, "  {} {}", text(&role["kind"]), text(&role["name"]));
    }
    for subject in object["subjects"].as_array().into_iter().flatten() {
        let _ = writeln!(
            out,
            "  to {} {}",
            text(&subject["kind"]),
            text(&subject["name"])
        );
    }
}

#[tokio::test]
async fn the_bare_profile_has_the_roles_of_a_control_plane_only() {
    let builder = TestServer::builder().profile(Profile::Bare);
    let server = builder.default_roles().without_controllers().start().await;
    let mut found = String::new();
    for (plural, kind) in [
        ("clusterroles", "ClusterRole"),
        ("clusterrolebindings", "ClusterRoleBinding"),
        ("roles", "Role"),
        ("rolebindings", "RoleBinding"),
    ] {
        let list = server
            .get(&format!("{RBAC}/{plural}"))
            .await
            .expect(200)
            .json();
        for object in list["items"].as_array().unwrap() {
            describe(&mut found, kind, object);
        }
    }
    expect_test::expect_file!["bare_roles.txt"].assert_eq(&found);
}
