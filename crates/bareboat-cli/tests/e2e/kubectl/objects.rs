//! Objects of the core group: created, read in every format, changed in every way, and deleted.

use super::Kubectl;
use crate::process::Followed;

#[test]
fn namespaces_config_maps_and_secrets_are_created_and_read_in_every_format() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says("create namespace team", &["namespace/team created"]);
    kubectl.says(
        "create configmap settings -n team --from-literal=color=blue --from-literal=size=3",
        &["configmap/settings created"],
    );
    kubectl.says(
        "create secret generic vault -n team --from-literal=password=sesame",
        &["secret/vault created"],
    );
    kubectl.says("create serviceaccount robot -n team", &["created"]);
    kubectl.says("get namespace team", &["NAME STATUS AGE", "team Active"]);
    kubectl.says("get ns team -o wide", &["team Active"]);
    kubectl.says("get cm -n team", &["NAME DATA AGE", "settings 2"]);
    kubectl.says(
        "get secret vault -n team",
        &["NAME TYPE DATA AGE", "vault Opaque 1"],
    );
    kubectl.says(
        "get cm settings -n team -o yaml",
        &[
            "apiVersion: v1",
            "color: blue",
            "size: \"3\"",
            "kind: ConfigMap",
        ],
    );
    kubectl.says(
        "get cm settings -n team -o json",
        &["\"color\": \"blue\"", "\"uid\":"],
    );
    assert_eq!(
        kubectl.gives(
            "get cm,secret -n team -o name --field-selector metadata.name!=kube-root-ca.crt"
        ),
        "configmap/settings\nsecret/vault\n"
    );
    assert_eq!(
        kubectl.gives("get secret vault -n team -o 'jsonpath={.data.password}'"),
        "c2VzYW1l"
    );
    assert_eq!(
        kubectl.gives("get cm settings -n team -o 'go-template={{.data.color}}'"),
        "blue"
    );
    kubectl.says(
        "get cm settings -n team -o custom-columns=N:.metadata.name,C:.data.color",
        &["N C settings blue"],
    );
    kubectl.says(
        "get cm -A --sort-by=.metadata.name",
        &["NAMESPACE NAME DATA AGE", "team settings 2"],
    );
    kubectl.says("get cm -n team --no-headers", &["settings 2"]);
    kubectl.says(
        "get cm -n empty",
        &["No resources found in empty namespace."],
    );
    kubectl.says(
        "describe cm settings -n team",
        &["Name: settings", "Namespace: team", "color: ---- blue"],
    );
    kubectl.says(
        "describe secret vault -n team",
        &["Type: Opaque", "password: 6 bytes"],
    );
    kubectl.says(
        "describe ns team",
        &["Status: Active", "No resource quota."],
    );
    kubectl.says(
        "get --raw /api/v1/namespaces/team/configmaps/settings",
        &["\"kind\":\"ConfigMap\""],
    );
    kubectl.refuses(
        "get cm nothing -n team",
        &["Error from server (NotFound): configmaps \"nothing\" not found"],
    );
    kubectl.refuses(
        "create namespace team",
        &["(AlreadyExists)", "namespaces \"team\" already exists"],
    );
    kubectl.refuses(
        "create cm x -n nowhere",
        &["namespaces \"nowhere\" not found"],
    );
    kubectl.refuses(
        "create namespace Big_Name",
        &["is invalid", "metadata.name", "lowercase RFC 1123 label"],
    );
    kubectl.refuses("get nonsense", &["the server doesn't have a resource type"]);
}

#[test]
fn an_object_is_changed_in_every_way() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let color = || kubectl.gives("get cm m -o 'jsonpath={.data.color}'");
    kubectl.gives("create cm m --from-literal=color=red");
    kubectl.says("label cm m tier=front", &["configmap/m labeled"]);
    kubectl.says("get cm -l tier=front -o name", &["configmap/m"]);
    kubectl.says("get cm -l 'tier in (back),x' -o name", &[]);
    kubectl.says("get cm -L tier m", &["TIER", "front"]);
    kubectl.says("get cm m --show-labels", &["tier=front"]);
    kubectl.refuses("label cm m tier=back", &["already has a value"]);
    kubectl.says("label cm m tier=back --overwrite", &["labeled"]);
    kubectl.refuses(
        "label cm m 'tier=no good' --overwrite",
        &["a valid label must be"],
    );
    kubectl.says("label cm m tier-", &["unlabeled"]);
    kubectl.says("annotate cm m note='said once'", &["annotated"]);
    assert_eq!(
        kubectl.gives("get cm m -o 'jsonpath={.metadata.annotations.note}'"),
        "said once"
    );
    for (kind, patch, wanted) in [
        ("strategic", r#"{"data":{"color":"green"}}"#, "green"),
        ("merge", r#"{"data":{"color":"white"}}"#, "white"),
        (
            "json",
            r#"[{"op":"test","path":"/data/color","value":"white"},{"op":"replace","path":"/data/color","value":"black"}]"#,
            "black",
        ),
    ] {
        kubectl.says(
            &format!("patch cm m --type={kind} -p '{patch}'"),
            &["patched"],
        );
        assert_eq!(color(), wanted);
    }
    kubectl.refuses(
        r#"patch cm m --type=json -p '[{"op":"test","path":"/data/color","value":"pink"}]'"#,
        &["The request is invalid"],
    );
    kubectl.says(
        r#"patch cm m --type=merge -p '{"data":{"color":"black"}}'"#,
        &["patched (no change)"],
    );
    let editor = kubectl.home.path().join("editor");
    std::fs::write(&editor, "sed -i 's/color: black/color: gold/' \"$1\"\n").unwrap();
    let edited = crate::process::run(
        kubectl
            .command("edit cm m")
            .env("KUBE_EDITOR", format!("sh {}", editor.display())),
        "",
    );
    assert!(
        edited.stdout.contains("configmap/m edited"),
        "{}",
        edited.all()
    );
    assert_eq!(color(), "gold");

    let stale = kubectl.gives("get cm m -o yaml");
    kubectl.says_for(
        "replace -f -",
        &stale.replace("gold", "iron"),
        &["configmap/m replaced"],
    );
    assert_eq!(color(), "iron");
    kubectl.refuses_for(
        "replace -f -",
        &stale,
        &["(Conflict)", "the object has been modified"],
    );
    kubectl.says_for("replace --force -f -", &stale, &["deleted", "replaced"]);
    assert_eq!(color(), "gold");
    kubectl.says("delete cm m", &["configmap \"m\" deleted"]);
    kubectl.refuses("delete cm m", &["NotFound"]);
    kubectl.says("delete cm m --ignore-not-found", &[]);
}

#[test]
fn a_dry_run_changes_nothing_and_shows_the_result() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "create cm dry --from-literal=a=1 --dry-run=server -o yaml",
        &["uid:", "a: \"1\""],
    );
    kubectl.refuses("get cm dry", &["NotFound"]);
    kubectl.gives("create cm real --from-literal=a=1");
    kubectl.says(
        r#"patch cm real -p '{"data":{"a":"2"}}' --dry-run=server"#,
        &["patched"],
    );
    kubectl.says("delete cm real --dry-run=server", &["(server dry run)"]);
    assert_eq!(kubectl.gives("get cm real -o 'jsonpath={.data.a}'"), "1");
    kubectl.refuses(
        "create namespace default --dry-run=server",
        &["AlreadyExists"],
    );
}

#[test]
fn a_watch_shows_each_change() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create cm first");
    let mut watch = Followed::start(
        "kubectl get -w",
        &mut kubectl.command(
            "get cm -w --output-watch-events --field-selector metadata.name!=kube-root-ca.crt",
        ),
    );
    let mut next = || super::spaced(&watch.line());
    assert_eq!(next(), "EVENT NAME DATA AGE");
    assert!(next().starts_with("ADDED first 0"));
    kubectl.gives("create cm second --from-literal=a=1");
    assert!(next().starts_with("ADDED second 1"));
    kubectl.gives(r#"patch cm first -p '{"data":{"b":"1"}}'"#);
    assert!(next().starts_with("MODIFIED first 1"));
    kubectl.gives("delete cm second");
    assert!(next().starts_with("DELETED second 1"));
}
