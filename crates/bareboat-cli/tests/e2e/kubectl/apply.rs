//! Client-side and server-side apply: ownership, removal of fields, and conflicts.

use super::Kubectl;

fn map(data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: applied}}\ndata: {data}\n")
}

#[test]
fn a_client_side_apply_removes_fields_it_no_longer_has() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let data = || kubectl.gives("get cm applied -o 'jsonpath={.data}'");
    kubectl.says_for("apply -f -", &map("{a: '1', b: '1'}"), &["created"]);
    kubectl.says_for("apply -f -", &map("{a: '1', b: '1'}"), &["unchanged"]);
    kubectl.gives(r#"patch cm applied -p '{"data":{"c":"mine"}}'"#);
    let changed = map("{a: '2'}");
    let manifest = kubectl.home.path().join("map.yaml");
    std::fs::write(&manifest, &changed).unwrap();
    kubectl.refuses("diff -f map.yaml", &["- b: \"1\"", "+ a: \"2\""]);
    kubectl.says("apply -f map.yaml --dry-run=server", &["(server dry run)"]);
    assert!(data().contains("\"b\""));
    kubectl.says("apply -f map.yaml", &["configured"]);
    assert_eq!(data(), r#"{"a":"2","c":"mine"}"#);
    kubectl.says("diff -f map.yaml", &[]);
    kubectl.says("delete -f map.yaml", &["deleted"]);
}

#[test]
fn a_server_side_apply_names_conflicts_and_can_be_forced() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let apply = "apply --server-side -f - --field-manager";
    let data = || kubectl.gives("get cm applied -o 'jsonpath={.data}'");
    kubectl.says_for(
        &format!("{apply}=one"),
        &map("{a: '1', b: '1'}"),
        &["configmap/applied serverside-applied"],
    );
    kubectl.refuses_for(
        &format!("{apply}=two"),
        &map("{a: '2'}"),
        &["conflict with \"one\"", ".data.a", "--force-conflicts"],
    );
    assert_eq!(data(), r#"{"a":"1","b":"1"}"#);
    kubectl.says_for(
        &format!("{apply}=two --force-conflicts"),
        &map("{a: '2'}"),
        &["serverside-applied"],
    );
    kubectl.says_for(
        &format!("{apply}=three"),
        &map("{a: '2', c: '3'}"),
        &["serverside-applied"],
    );
    // One no longer owns a, and gives up b.
    kubectl.says_for(&format!("{apply}=one"), &map("{}"), &["serverside-applied"]);
    assert_eq!(data(), r#"{"a":"2","c":"3"}"#);
    // Two gives up a, which three holds.
    kubectl.says_for(&format!("{apply}=two"), &map("{}"), &["serverside-applied"]);
    assert_eq!(data(), r#"{"a":"2","c":"3"}"#);
    kubectl.says(
        "get cm applied -o yaml --show-managed-fields",
        &["manager: three", "operation: Apply", "f:data:"],
    );
    kubectl.says_for(
        &format!("{apply}=four --dry-run=server"),
        &map("{d: '4'}"),
        &["serverside-applied (server dry run)"],
    );
    kubectl.refuses_for(&format!("{apply}=four"), &map("{d: 4}"), &["data.d"]);
}

#[test]
fn an_error_in_a_manifest_is_reported_with_its_position() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let wrong = map("{a: '1'}") + "dataa: {}\n";
    kubectl.refuses_for("create -f -", &wrong, &["strict decoding error", "dataa"]);
    kubectl.says_for(
        "create -f - --validate=warn",
        &wrong,
        &["Warning: unknown field \"dataa\"", "created"],
    );
    kubectl.refuses_for("apply -f -", "kind: ConfigMap\n", &["apiVersion not set"]);
}

#[test]
fn objects_that_left_the_manifests_are_pruned() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let map = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{set: a}}}}\n---\n"
        )
    };
    kubectl.gives_for("apply -f -", &(map("stays") + &map("goes")));
    // Not created by apply, so apply does not prune it.
    kubectl.gives("create configmap other");
    kubectl.gives("label configmap other set=a");
    let prune = "apply --prune -l set=a --prune-allowlist=core/v1/ConfigMap -f -";
    kubectl.says_for(
        prune,
        &map("stays"),
        &["configmap/stays unchanged", "configmap/goes pruned"],
    );
    assert_eq!(
        kubectl.gives("get configmaps -l set=a -o name"),
        "configmap/other\nconfigmap/stays\n"
    );
}

#[test]
fn an_object_moves_from_client_side_to_server_side_apply() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let data = || kubectl.gives("get cm applied -o 'jsonpath={.data}'");
    let manifest = kubectl.home.path().join("map.yaml");
    let write = |data: &str| std::fs::write(&manifest, map(data)).unwrap();
    write("{a: '1', b: '1'}");
    kubectl.says("apply -f map.yaml", &["created"]);
    // The only conflict would be with kubectl's own manager, and kubectl can still remove the fields it applied.
    write("{a: '1'}");
    kubectl.says("apply --server-side -f map.yaml", &["serverside-applied"]);
    assert_eq!(data(), r#"{"a":"1"}"#);
    kubectl.says(
        "get cm applied -o yaml --show-managed-fields",
        &["manager: kubectl operation: Apply"],
    );
    // The way back works as well: the last-applied annotation was kept up to date.
    let noted = kubectl.gives("apply view-last-applied cm/applied -o json");
    assert!(!noted.contains("\"b\""), "{noted}");
    write("{c: '3'}");
    kubectl.says("apply -f map.yaml", &["configured"]);
    assert_eq!(data(), r#"{"c":"3"}"#);
    write("{c: '3', d: '4'}");
    kubectl.says("apply set-last-applied -f map.yaml", &["configured"]);
    write("{c: '3'}");
    kubectl.says("apply -f map.yaml", &["configured"]);
    assert_eq!(data(), r#"{"c":"3"}"#);
}
