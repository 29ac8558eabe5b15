//! Kinds whose controllers run elsewhere: they are stored, shown and scaled, nothing more.

use super::Kubectl;

#[test]
fn a_deployment_is_created_shown_scaled_and_described() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "create deployment web --image=nginx:1 --replicas=2 --port=80",
        &["deployment.apps/web created"],
    );
    kubectl.says("expose deployment web --port=80", &["service/web exposed"]);
    kubectl.says(
        "create job once --image=busybox",
        &["job.batch/once created"],
    );
    kubectl.says(
        "create cronjob often --image=busybox --schedule='*/5 * * * *'",
        &["created"],
    );
    kubectl.says("run shell --image=busybox", &["pod/shell created"]);
    kubectl.says(
        "get all",
        &[
            "NAME READY STATUS RESTARTS AGE pod/shell 0/1 Pending",
            "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
            "service/web ClusterIP",
            "80/TCP",
            "deployment.apps/web 0/2 0 0",
            "cronjob.batch/often */5 * * * *",
            "job.batch/once",
        ],
    );
    kubectl.says(
        "get deploy -o wide",
        &["CONTAINERS IMAGES SELECTOR", "nginx nginx:1 app=web"],
    );
    kubectl.says("scale deployment web --replicas=5", &["scaled"]);
    kubectl.says("set image deployment/web nginx=nginx:2", &["image updated"]);
    kubectl.says("set env deployment/web A=1", &["env updated"]);
    kubectl.says(
        "autoscale deployment web --min=1 --max=3 --cpu=50%",
        &["autoscaled"],
    );
    kubectl.says("rollout restart deployment/web", &["restarted"]);
    assert_eq!(
        kubectl.gives("get deploy web -o 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}'"),
        "5 nginx:2"
    );
    kubectl.says(
        "describe deployment web",
        &[
            "Replicas: 5 desired",
            "Image: nginx:2",
            "StrategyType: RollingUpdate",
        ],
    );
    kubectl.says("describe pod shell", &["Status: Pending"]);
    kubectl.says("describe service web", &["Type: ClusterIP"]);
    kubectl.says(
        r#"patch deploy web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}'"#,
        &["patched"],
    );
    assert_eq!(
        kubectl.gives("get deploy web -o 'jsonpath={.spec.template.spec.containers[*].name}'"),
        "side nginx"
    );
    kubectl.refuses(
        r#"patch deploy web -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'"#,
        &["field is immutable"],
    );
    kubectl.says(
        "delete deployment,service,job,cronjob,hpa --all",
        &["deleted"],
    );
    kubectl.says("delete pod shell --now", &["deleted"]);
}

#[test]
fn only_mutable_fields_of_a_pod_can_be_changed() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("run shell --image=busybox:1");
    kubectl.says("set image pod/shell shell=busybox:2", &["image updated"]);
    kubectl.refuses(
        r#"patch pod shell -p '{"spec":{"nodeSelector":{"deck":"upper"}}}'"#,
        &["pod updates may not change fields other than"],
    );
    // Ephemeral containers are added through a subresource.
    kubectl.says("debug shell --image=busybox -c lamp --attach=false", &[]);
    assert_eq!(
        kubectl.gives("get pod shell -o 'jsonpath={.spec.ephemeralContainers[*].name}'"),
        "lamp"
    );
    kubectl.says(
        "describe pod shell",
        &["Ephemeral Containers: lamp", "Image: busybox:2"],
    );
    // No scheduler gave the pod a node.
    assert_eq!(kubectl.gives("logs shell"), "");
    kubectl.refuses(
        "exec shell -c shell -- ls",
        &["pod shell does not have a host assigned"],
    );
}

const SETS: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: watch}
spec:
  selector: {matchLabels: {app: watch}}
  template: {metadata: {labels: {app: watch}}, spec: {containers: [{name: c, image: 'i:1'}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: log}
spec:
  serviceName: log
  selector: {matchLabels: {app: log}}
  template: {metadata: {labels: {app: log}}, spec: {containers: [{name: c, image: 'i:1'}]}}
";

#[test]
fn daemon_sets_and_stateful_sets_are_stored_and_shown() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says_for(
        "apply -f -",
        SETS,
        &[
            "daemonset.apps/watch created",
            "statefulset.apps/log created",
        ],
    );
    kubectl.says_for("apply -f -", SETS, &["watch unchanged", "log unchanged"]);
    kubectl.says(
        "get ds,sts",
        &["daemonset.apps/watch 0 0 0 0 0 <none>", "log 0/1"],
    );
    kubectl.says(
        "rollout restart ds/watch sts/log",
        &["watch restarted", "log restarted"],
    );
    kubectl.says("rollout history sts/log", &["No rollout history found."]);
    kubectl.says("scale sts log --replicas=3", &["scaled"]);
    kubectl.says("set image ds/watch c=i:2", &["image updated"]);
    kubectl.says("describe ds watch", &["Image: i:2"]);
    kubectl.refuses(
        r#"patch sts log -p '{"spec":{"serviceName":"other"}}'"#,
        &["updates to statefulset spec for fields other than"],
    );
    kubectl.says(
        "delete all --all",
        &["\"watch\" deleted", "\"log\" deleted"],
    );
}
