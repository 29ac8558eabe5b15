//! Deletions in several steps: namespaces with content, definitions with instances, owned objects.

use super::Kubectl;
use super::custom::{cron_tab, define};

#[test]
fn a_namespace_is_deleted_with_its_objects() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl);
    kubectl.gives("create namespace doomed");
    kubectl.gives("create cm inside -n doomed");
    kubectl.gives("create deployment web --image=nginx -n doomed");
    kubectl.gives_for("create -n doomed -f -", &cron_tab("one"));
    kubectl.says(
        "delete namespace doomed --timeout=240s",
        &["namespace \"doomed\" deleted"],
    );
    kubectl.refuses("get namespace doomed", &["NotFound"]);
    assert_eq!(kubectl.gives("get cm,deploy,ct -n doomed -o name"), "");
    kubectl.says("create namespace doomed", &["created"]);
    assert_eq!(kubectl.gives("get ct -n doomed -o name"), "");
    kubectl.refuses("delete namespace default", &["Forbidden"]);
}

#[test]
fn a_terminating_namespace_refuses_new_objects_and_waits_for_finalizers() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create namespace doomed");
    kubectl.gives("create cm held -n doomed");
    kubectl.gives(
        r#"patch cm held -n doomed --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'"#,
    );
    kubectl.gives("delete namespace doomed --wait=false");
    kubectl.says("get ns doomed", &["doomed Terminating"]);
    kubectl.refuses(
        "create cm late -n doomed",
        &["is forbidden", "because it is being terminated"],
    );
    kubectl.says(
        "wait --for=condition=NamespaceFinalizersRemaining ns/doomed --timeout=240s",
        &["condition met"],
    );
    kubectl.gives(r#"patch cm held -n doomed --type=merge -p '{"metadata":{"finalizers":null}}'"#);
    kubectl.says("wait --for=delete ns/doomed --timeout=240s", &[]);
    kubectl.refuses("get ns doomed", &["NotFound"]);
}

#[test]
fn a_definition_is_deleted_with_its_instances() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl);
    for name in ["one", "two"] {
        kubectl.gives_for("create -f -", &cron_tab(name));
    }
    kubectl.says(
        "delete crd crontabs.stable.example.com --timeout=240s",
        &["deleted"],
    );
    kubectl.refuses(
        "get crontabs.stable.example.com",
        &["the server doesn't have a resource type"],
    );
    define(&kubectl);
    assert_eq!(kubectl.gives("get crontabs.stable.example.com -o name"), "");
}

#[test]
fn owned_objects_are_deleted_with_their_owner_or_orphaned() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let owned = |name: &str, owner: &str| {
        let uid = kubectl.gives(&format!("get cm {owner} -o 'jsonpath={{.metadata.uid}}'"));
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  ownerReferences:\n  \
             - {{apiVersion: v1, kind: ConfigMap, name: {owner}, uid: {uid}, blockOwnerDeletion: true}}\n"
        );
        kubectl.gives_for("create -f -", &map);
    };
    for owner in ["background", "foreground", "orphan"] {
        kubectl.gives(&format!("create cm {owner}"));
        owned(&format!("of-{owner}"), owner);
        kubectl.says(
            &format!("delete cm {owner} --cascade={owner} --timeout=240s"),
            &["deleted"],
        );
    }
    // Foreground deletion waited for it.
    kubectl.refuses("get cm of-foreground", &["NotFound"]);
    kubectl.says("wait --for=delete cm/of-background --timeout=240s", &[]);
    assert_eq!(
        kubectl.gives("get cm of-orphan -o 'jsonpath={.metadata.name}{.metadata.ownerReferences}'"),
        "of-orphan"
    );
}
