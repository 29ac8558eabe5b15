//! Who am I, and what may I do.

use super::Kubectl;

#[test]
fn the_administrator_may_do_everything_and_a_stranger_nothing() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "auth whoami",
        &["Username bareboat-admin", "system:masters"],
    );
    kubectl.says("auth can-i create deployments", &["yes"]);
    kubectl.says("auth can-i '*' '*' --all-namespaces", &["yes"]);
    for line in ["get cm", "get cm x", "create cm x", "delete cm --all"] {
        kubectl.refuses(
            &format!("{line} --as=ann"),
            &["orbidden", "User \"ann\" cannot", "resource \"configmaps\""],
        );
    }
    kubectl.says("get cm --as=ann --as-group=system:masters", &[]);
}
