//! Kinds whose controllers live elsewhere: they are kept, shown and scaled, nothing more.

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
