//! The real kube-controller-manager with only its controllers of Deployments and ReplicaSets: it creates ReplicaSets
//! and Pods, and kubectl follows its rollouts. The test sets the status of the Pods. It runs as its own user, and each
//! controller as its own service account, with the default roles.

use crate::kubectl::Kubectl;
use crate::process::{Followed, eventually, run};
use crate::server::{Home, bareboat};
use crate::tools;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Sets every pod's status to running and ready, as kubelets do; ends when dropped.
pub(crate) struct Kubelet(#[expect(dead_code, reason = "its tasks end with it")] Runtime);

impl Kubelet {
    pub(crate) fn start(home: &Home) -> Kubelet {
        let runtime = Runtime::new().unwrap();
        let pods: Api<Pod> = Api::default_namespaced(runtime.block_on(home.client()));
        runtime.spawn(async move {
            let pending = ListParams::default().fields("status.phase=Pending");
            let running = Patch::Merge(json!({ "status": { "phase": "Running", "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z" },
            ]}}));
            loop {
                for pod in pods.list(&pending).await.unwrap() {
                    let (name, parameters) = (pod.name_any(), PatchParams::default());
                    // The pod may be gone already.
                    let _ = pods.patch_status(&name, &parameters, &running).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Kubelet(runtime)
    }
}

/// Starts the program; `None` if there is none.
pub(crate) fn controller_manager(kubectl: &Kubectl) -> Option<Followed> {
    let program = tools::peer("kube-controller-manager")?;
    let config = kubectl.home.path().join("controller-manager.kubeconfig");
    let mut create = bareboat(["kubeconfig", "create", "system:kube-controller-manager"]);
    create
        .arg("--data-dir")
        .arg(kubectl.home.data())
        .arg("--save")
        .arg(&config);
    let output = run(&mut create, "");
    assert!(output.status.success(), "{}", output.all());
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(config).args([
        "--controllers=deployment-controller,replicaset-controller",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=true",
    ]);
    Some(Followed::start("kube-controller-manager", &mut command))
}

/// The users that created objects of a resource, by the audit log.
fn creators(log: &Path, resource: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(log).unwrap();
    let events = text.lines().map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event
    });
    events
        .filter(|event| event["verb"] == "create" && event["objectRef"]["resource"] == resource)
        .filter(|event| event["objectRef"]["subresource"].is_null())
        .map(|event| event["user"]["username"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn deployments_become_replica_sets_and_pods_and_rollouts_are_followed() {
    let files = tempfile::tempdir().unwrap();
    let (policy, log) = (
        files.path().join("policy.yaml"),
        files.path().join("audit.log"),
    );
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";
    std::fs::write(&policy, rules).unwrap();
    let flags = [&policy, &log].map(|path| path.display().to_string());
    let flags = [
        "--audit-policy-file",
        &flags[0],
        "--audit-log-path",
        &flags[1],
    ];
    let Some(kubectl) = Kubectl::start_with(&flags) else {
        return;
    };
    let Some(_manager) = controller_manager(&kubectl) else {
        return;
    };
    let _kubelet = Kubelet::start(&kubectl.home);
    let rolled_out = || {
        kubectl.says(
            "rollout status deployment/web --timeout=240s",
            &["deployment \"web\" successfully rolled out"],
        );
    };
    let revisions = |wanted: &str| {
        let history = kubectl.gives("rollout history deployment/web");
        let numbers: Vec<_> = history
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|word| word.parse::<u32>().is_ok())
            .collect();
        assert_eq!(numbers.join(" "), wanted, "{history}");
    };
    let pods = |wanted: usize| {
        eventually("that many pods", || {
            let names = kubectl.gives("get pods -l app=web -o name");
            (names.lines().count() == wanted).then_some(())
        });
    };

    kubectl.gives("create deployment web --image=nginx:1 --replicas=2");
    rolled_out();
    kubectl.says("get deploy web", &["web 2/2 2 2"]);
    let owner = kubectl.gives("get pods -l app=web -o 'jsonpath={.items[0].metadata.ownerReferences[0].kind}/{.items[0].metadata.ownerReferences[0].name}'");
    let sets = kubectl.gives("get rs -l app=web -o 'jsonpath={.items[*].metadata.name}'");
    assert_eq!(owner, format!("ReplicaSet/{sets}"));

    kubectl.says("scale deployment web --replicas=4", &["scaled"]);
    rolled_out();
    pods(4);
    kubectl.says("scale deployment web --replicas=1", &["scaled"]);
    rolled_out();
    pods(1);

    kubectl.says("set image deployment/web nginx=nginx:2", &["image updated"]);
    rolled_out();
    revisions("1 2");
    assert_eq!(
        kubectl.gives("get rs -l app=web -o name").lines().count(),
        2
    );
    pods(1);
    let image =
        || kubectl.gives("get deploy web -o 'jsonpath={.spec.template.spec.containers[0].image}'");
    kubectl.says("rollout undo deployment/web", &["rolled back"]);
    rolled_out();
    assert_eq!(image(), "nginx:1");
    revisions("2 3");
    kubectl.says(
        "rollout history deployment/web --revision=2",
        &["Image: nginx:2"],
    );
    kubectl.says(
        "rollout undo deployment/web --to-revision=2",
        &["rolled back"],
    );
    rolled_out();
    assert_eq!(image(), "nginx:2");

    // Changes of a paused rollout wait until it is resumed, and are then rolled out together.
    kubectl.says("rollout pause deployment/web", &["paused"]);
    kubectl.gives("set env deployment/web A=1");
    kubectl.gives("set env deployment/web B=2");
    revisions("3 4");
    kubectl.says("rollout resume deployment/web", &["resumed"]);
    rolled_out();
    revisions("3 4 5");
    kubectl.says("rollout restart deployment/web", &["restarted"]);
    rolled_out();
    revisions("3 4 5 6");
    kubectl.says(
        "describe deployment web",
        &[
            "Available True MinimumReplicasAvailable",
            "Progressing True NewReplicaSetAvailable",
            "Scaled up replica set",
        ],
    );

    // Foreground deletion waits for ReplicaSets and Pods.
    kubectl.says(
        "delete deployment web --cascade=foreground --timeout=240s",
        &["deleted"],
    );
    assert_eq!(kubectl.gives("get rs,pods -o name"), "");

    // Each controller wrote as its own account.
    let account =
        |name: &str| BTreeSet::from([format!("system:serviceaccount:kube-system:{name}")]);
    assert_eq!(
        creators(&log, "replicasets"),
        account("deployment-controller")
    );
    assert_eq!(creators(&log, "pods"), account("replicaset-controller"));
}
