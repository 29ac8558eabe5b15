//! Commands that change one part of an existing object, and commands that wait.

use super::Kubectl;

/// Returns what a JSON path finds in an object.
fn at(kubectl: &Kubectl, object: &str, path: &str) -> String {
    kubectl.gives(&format!("get {object} -o 'jsonpath={path}'"))
}

#[test]
fn each_part_of_a_workload_has_a_command_that_sets_it() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create deployment web --image=nginx:1 --port=80");
    kubectl.gives("create configmap settings --from-literal=COLOR=blue");
    kubectl.gives("create rolebinding readers --clusterrole=view --user=ann");
    let container = "{.spec.template.spec.containers[0]";
    for (line, said, object, path, wanted) in [
        (
            "set image deployment/web nginx=nginx:2",
            "deployment.apps/web image updated",
            "deploy/web",
            format!("{container}.image}}"),
            "nginx:2",
        ),
        (
            "set env deployment/web A=1 B=2",
            "env updated",
            "deploy/web",
            format!("{container}.env[*].name}}"),
            "A B",
        ),
        (
            "set env deployment/web A-",
            "env updated",
            "deploy/web",
            format!("{container}.env[*].name}}"),
            "B",
        ),
        (
            "set env deployment/web --from=configmap/settings",
            "env updated",
            "deploy/web",
            format!("{container}.env[1].valueFrom.configMapKeyRef.name}}"),
            "settings",
        ),
        (
            "set resources deployment web --limits=cpu=0.2,memory=512Mi --requests=cpu=100m",
            "resource requirements updated",
            "deploy/web",
            format!("{container}.resources.limits.cpu}} {container}.resources.requests.cpu}}"),
            "200m 100m",
        ),
        (
            "set serviceaccount deployment web robot",
            "serviceaccount updated",
            "deploy/web",
            "{.spec.template.spec.serviceAccountName}".to_owned(),
            "robot",
        ),
        (
            "expose deployment web --port=80 --target-port=8080 --name=front",
            "service/front exposed",
            "service/front",
            "{.spec.ports[0].port} {.spec.ports[0].targetPort} {.spec.selector.app}".to_owned(),
            "80 8080 web",
        ),
        (
            "set selector service front app=other",
            "selector updated",
            "service/front",
            "{.spec.selector.app}".to_owned(),
            "other",
        ),
        (
            "set subject rolebinding readers --user=bob --group=crew",
            "subjects updated",
            "rolebinding/readers",
            "{.subjects[*].name}".to_owned(),
            "ann bob crew",
        ),
        (
            "scale deployment web --replicas=4 --current-replicas=1",
            "deployment.apps/web scaled",
            "deploy/web",
            "{.spec.replicas}".to_owned(),
            "4",
        ),
        (
            "autoscale deployment web --min=2 --max=5 --cpu=50%",
            "horizontalpodautoscaler.autoscaling/web autoscaled",
            "hpa/web",
            "{.spec.minReplicas} {.spec.maxReplicas} {.spec.scaleTargetRef.name}".to_owned(),
            "2 5 web",
        ),
        (
            "annotate deployment web kubernetes.io/change-cause='a new image'",
            "annotated",
            "deploy/web",
            "{.metadata.annotations.kubernetes\\.io/change-cause}".to_owned(),
            "a new image",
        ),
        (
            "label deployment,service --all team=a",
            "labeled",
            "service/front",
            "{.metadata.labels.team}".to_owned(),
            "a",
        ),
        (
            r#"patch deploy web --subresource=status --type=merge -p '{"status":{"replicas":3}}'"#,
            "patched",
            "deploy/web",
            "{.status.replicas} {.spec.replicas}".to_owned(),
            "3 4",
        ),
    ] {
        kubectl.says(line, &[said]);
        assert_eq!(at(&kubectl, object, &path), wanted, "after kubectl {line}");
    }
    kubectl.says(
        "set env deployment/web --list",
        &["B=2", "settings, key COLOR"],
    );
    kubectl.says("get hpa", &["Deployment/web", "2 5 0"]);
}

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: hull}\n\
    spec: {podCIDR: 10.1.0.0/24}\n";

#[test]
fn a_node_without_a_kubelet_is_an_ordinary_object() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says_for("create -f -", NODE, &["node/hull created"]);
    kubectl.says(
        "get nodes",
        &["NAME STATUS ROLES AGE VERSION", "hull Unknown <none>"],
    );
    kubectl.says("cordon hull", &["node/hull cordoned"]);
    kubectl.says("cordon hull", &["node/hull already cordoned"]);
    kubectl.says("get nodes -o wide", &["hull Unknown,SchedulingDisabled"]);
    kubectl.says(
        "drain hull",
        &["node/hull already cordoned", "node/hull drained"],
    );
    kubectl.says("uncordon hull", &["node/hull uncordoned"]);
    kubectl.says(
        "label node hull node-role.kubernetes.io/mast=",
        &["labeled"],
    );
    kubectl.says(
        "taint nodes hull leak=slow:NoSchedule",
        &["node/hull tainted"],
    );
    kubectl.refuses(
        "taint nodes hull leak=slow:NoSchedule",
        &["already has leak"],
    );
    kubectl.says(
        "taint nodes hull leak=fast:NoSchedule --overwrite",
        &["modified"],
    );
    kubectl.says(
        "describe node hull",
        &[
            "Roles: mast",
            "Taints: leak=fast:NoSchedule",
            "Unschedulable: false",
        ],
    );
    kubectl.says(
        "taint nodes hull leak:NoSchedule-",
        &["node/hull untainted"],
    );
    kubectl.says(
        r#"patch node hull --subresource=status -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'"#,
        &["patched"],
    );
    kubectl.says("get nodes", &["hull Ready mast"]);
    kubectl.says(
        "wait --for=condition=Ready node/hull --timeout=240s",
        &["condition met"],
    );
    kubectl.says("delete node hull", &["deleted"]);
}

/// Returns a release in the format of helm.
fn release(version: u32, status: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\ntype: helm.sh/release.v1\nmetadata:\n  \
         name: sh.helm.release.v1.web.v{version}\n  \
         labels: {{owner: helm, name: web, status: {status}, version: '{version}'}}\n\
         data: {{release: SDRzSUFBQUFBQUFD}}\n"
    )
}

#[test]
fn helm_release_secrets_are_found_by_their_labels() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    for version in 1..=3 {
        kubectl.gives_for("create -f -", &release(version, "superseded"));
    }
    kubectl.gives_for("create -f -", &release(4, "deployed"));
    let named = |selector: &str| kubectl.gives(&format!("get secrets {selector} -o name"));
    assert_eq!(
        named("-l owner=helm,name=web,status=deployed"),
        "secret/sh.helm.release.v1.web.v4\n"
    );
    assert_eq!(
        named("-l owner=helm,'status in (superseded,failed)'")
            .lines()
            .count(),
        3
    );
    assert_eq!(
        named("--field-selector type=helm.sh/release.v1")
            .lines()
            .count(),
        4
    );
    assert_eq!(
        kubectl.gives("get secrets -l owner=helm --sort-by=.metadata.labels.version -o 'jsonpath={.items[*].metadata.labels.version}'"),
        "1 2 3 4"
    );
    // An upgrade: the next release is created, and the old one is no longer the deployed one.
    kubectl.gives_for("create -f -", &release(5, "pending-upgrade"));
    kubectl.says_for("replace -f -", &release(4, "superseded"), &["replaced"]);
    kubectl.says_for("replace -f -", &release(5, "deployed"), &["replaced"]);
    assert_eq!(
        named("-l status=deployed"),
        "secret/sh.helm.release.v1.web.v5\n"
    );
    kubectl.refuses(
        r#"patch secret sh.helm.release.v1.web.v5 -p '{"type":"Opaque"}'"#,
        &["type: Invalid value", "field is immutable"],
    );
    kubectl.says(
        "delete secrets -l owner=helm,status=superseded",
        &["v1.web.v1", "v1.web.v4"],
    );
    assert_eq!(named("-l owner=helm"), "secret/sh.helm.release.v1.web.v5\n");
}

#[test]
fn wait_succeeds_or_names_the_object() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("run shell --image=busybox --labels=app=shell");
    kubectl.refuses(
        "wait --for=condition=Ready pod/shell --timeout=1s",
        &["timed out waiting for the condition on pods/shell"],
    );
    kubectl.gives(
        r#"patch pod shell --subresource=status -p '{"status":{"phase":"Running","podIP":"10.1.0.9","conditions":[{"type":"Ready","status":"True"}]}}'"#,
    );
    for line in [
        "wait --for=condition=Ready pod/shell",
        "wait --for='jsonpath={.status.podIP}=10.1.0.9' pod -l app=shell",
        "wait --for='jsonpath={.status.podIP}' pod/shell",
        "wait --for=create pod/shell",
    ] {
        kubectl.says(&format!("{line} --timeout=240s"), &["condition met"]);
    }
    kubectl.says("get pod shell -o wide", &["shell 0/1 Running", "10.1.0.9"]);
    kubectl.says("delete pod shell --wait=false", &["deleted"]);
    kubectl.says("wait --for=delete pod/shell --timeout=240s", &[]);
    kubectl.refuses("get pod shell", &["NotFound"]);
}
