//! The real kube-controller-manager with nothing on but its controllers of Deployments and ReplicaSets:
//! it makes ReplicaSets and Pods, and kubectl follows its rollouts. Pods run because somebody here
//! says so.

use crate::kubectl::Kubectl;
use crate::process::{Followed, eventually};
use crate::server::Home;
use crate::tools;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Says of every pod that it runs and is ready, as kubelets do; ends when dropped.
struct Kubelet(#[expect(dead_code, reason = "its tasks end with it")] Runtime);

impl Kubelet {
    fn start(home: &Home) -> Kubelet {
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
                    // It may be gone already.
                    let _ = pods.patch_status(&name, &parameters, &running).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Kubelet(runtime)
    }
}

fn controller_manager(kubectl: &Kubectl) -> Option<Followed> {
    let mut command = Command::new(tools::peer("kube-controller-manager")?);
    command
        .arg("--kubeconfig")
        .arg(kubectl.home.kubeconfig())
        .args([
            "--controllers=deployment-controller,replicaset-controller",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=false",
        ]);
    Some(Followed::start("kube-controller-manager", &mut command))
}

#[test]
fn deployments_become_replica_sets_and_pods_and_rollouts_are_followed() {
    let Some(kubectl) = Kubectl::start() else {
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

    // Changes of a paused rollout wait until it goes on, and then come as one.
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

    // Who is in the way is deleted first: the foreground waits for sets and pods.
    kubectl.says(
        "delete deployment web --cascade=foreground --timeout=240s",
        &["deleted"],
    );
    assert_eq!(kubectl.gives("get rs,pods -o name"), "");
}
