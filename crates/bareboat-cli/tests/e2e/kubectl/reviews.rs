//! Who am I, and what may I do.

use super::Kubectl;

#[test]
fn whoami_and_can_i_answer() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says("auth whoami", &["Username bareboat-admin", "system:masters"]);
    kubectl.says("auth can-i create deployments", &["yes"]);
    kubectl.says("auth can-i '*' '*'", &["yes"]);
    kubectl.says("auth whoami --as=ann --as-group=crew", &["Username ann", "crew"]);
    kubectl.refuses("auth can-i create deployments --as=ann", &["no"]);
    kubectl.refuses("get cm --as=ann", &["(Forbidden)", "User \"ann\" cannot list resource \"configmaps\""]);
    kubectl.gives("create role reader --verb=get,list --resource=configmaps");
    kubectl.gives("create rolebinding reader --role=reader --user=ann");
    crate::process::eventually("the role counts", super::PATIENCE, || {
        kubectl.run("auth can-i list configmaps --as=ann", "").status.success().then_some(())
    });
    kubectl.says("get cm --as=ann", &[]);
    kubectl.refuses("auth can-i list configmaps --as=ann -n kube-system", &["no"]);
    kubectl.refuses("delete cm x --as=ann", &["Forbidden"]);
    kubectl.says("auth can-i --list --as=ann", &["configmaps [] [] [get list]"]);
}
