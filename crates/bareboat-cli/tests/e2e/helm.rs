//! helm: the life of a release, with a definition, a hook, and both ways of applying.
//!
//! No kubelet runs here, so helm waits only for the hook, which the test completes.

use crate::kubectl::Kubectl;
use crate::process::{Output, eventually, run};
use crate::server::bareboat;
use crate::tools;
use std::path::PathBuf;
use std::process::Command;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/helm/chart");
const ENDED: &str = r#"{"status":{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:01Z","succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"},{"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"}]}}"#;

/// Besides the role of an admin of the namespace: what the definition in the chart and a list of all releases need.
const MOORINGS: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: moorings}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch, create, patch]}
- {apiGroups: [marina.example.com], resources: ['*'], verbs: ['*']}
- {apiGroups: [''], resources: [secrets], verbs: [list]}
";

/// A helm and a kubectl for the same server. Helm runs as a user with the rights to one namespace.
struct Helm {
    program: PathBuf,
    kubectl: Kubectl,
    kubeconfig: PathBuf,
}

impl Helm {
    fn start() -> Option<Helm> {
        let (program, kubectl) = (tools::peer("helm")?, Kubectl::start()?);
        kubectl.until("get clusterrole admin -o yaml", "rolebindings");
        kubectl.gives("create rolebinding deployer --clusterrole=admin --user=deployer");
        kubectl.gives_for("create -f -", MOORINGS);
        kubectl.gives("create clusterrolebinding deployer --clusterrole=moorings --user=deployer");
        let kubeconfig = kubectl.home.path().join("deployer.kubeconfig");
        let mut create = bareboat(["kubeconfig", "create", "deployer"]);
        create
            .arg("--data-dir")
            .arg(kubectl.home.data())
            .arg("--save")
            .arg(&kubeconfig);
        let output = run(&mut create, "");
        assert!(output.status.success(), "{}", output.all());
        Some(Helm {
            program,
            kubectl,
            kubeconfig,
        })
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.kubectl.home.path())
            .current_dir(self.kubectl.home.path());
        run(&mut command, "")
    }

    fn says(&self, words: &[&str], wanted: &[&str]) {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", output.all());
        for text in wanted {
            assert!(output.stdout.contains(text), "{words:?}: {}", output.all());
        }
    }

    /// The same while the test completes a hook, which is a new Job.
    fn says_after_its_hook(&self, words: &[&str], wanted: &[&str]) {
        let job = || {
            let line = "get job dock-launch --ignore-not-found -o 'jsonpath={.metadata.uid}'";
            self.kubectl.gives(line)
        };
        let before = job();
        std::thread::scope(|scope| {
            let helm = scope.spawn(|| self.says(words, wanted));
            eventually("the hook is there", || {
                let now = job();
                (helm.is_finished() || (!now.is_empty() && now != before)).then_some(())
            });
            if !helm.is_finished() {
                let line =
                    format!("patch job dock-launch --subresource=status --type=merge -p '{ENDED}'");
                self.kubectl.gives(&line);
            }
        });
    }

    fn history(&self) -> Vec<String> {
        let output = self.run(&["history", "dock", "-o", "json"]);
        let history: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let revisions = history.as_array().unwrap().iter();
        revisions
            .map(|revision| revision["status"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    let Some(helm) = Helm::start() else {
        return;
    };
    let kubectl = &helm.kubectl;
    let greeting = || kubectl.gives("get configmap dock-log -o 'jsonpath={.data.greeting}'");
    let replicas = || kubectl.gives("get deployment dock -o 'jsonpath={.spec.replicas}'");

    // The definition is created first, and its default is in the object of the same chart.
    helm.says_after_its_hook(&["install", "dock", CHART], &["STATUS: deployed"]);
    kubectl.says(
        "get mooring dock -o 'jsonpath={.spec.berth} {.metadata.managedFields[*].manager}'",
        &["7 helm"],
    );
    kubectl.says(
        "get configmap dock-log -o 'jsonpath={.data}'",
        &[r#""deployments":"served","greeting":"ahoy""#],
    );
    kubectl.says(
        "get deployment,service,secret,configmap -l app.kubernetes.io/instance=dock -o name",
        &[
            "deployment.apps/dock",
            "service/dock",
            "secret/dock-key",
            "configmap/dock-log",
        ],
    );
    helm.says(&["list"], &["dock", "deployed", "marina-0.1.0"]);
    helm.says(
        &["status", "dock"],
        &["STATUS: deployed", "==> v1/Deployment"],
    );

    let change = ["--set", "greeting=farewell,replicas=3,buoy=false"];
    let rehearsal = [&["upgrade", "dock", CHART, "--dry-run=server"][..], &change].concat();
    helm.says(&rehearsal, &["greeting: \"farewell\""]);
    assert_eq!((greeting(), helm.history().len()), ("ahoy".to_owned(), 1));
    let upgrade = [&["upgrade", "dock", CHART][..], &change].concat();
    helm.says_after_its_hook(&upgrade, &["has been upgraded"]);
    assert_eq!(
        (greeting(), replicas()),
        ("farewell".to_owned(), "3".to_owned())
    );
    kubectl.refuses("get configmap dock-buoy", &["NotFound"]);

    helm.says(&["rollback", "dock", "1"], &["Rollback was a success"]);
    assert_eq!(
        (greeting(), replicas()),
        ("ahoy".to_owned(), "2".to_owned())
    );
    kubectl.says("get configmap dock-buoy", &[]);

    let refused = helm.run(&[
        "upgrade",
        "dock",
        CHART,
        "--no-hooks",
        "--set",
        "replicas=-1",
    ]);
    assert!(!refused.status.success(), "{}", refused.all());
    assert!(
        refused
            .stderr
            .contains("must be greater than or equal to 0"),
        "{}",
        refused.all()
    );
    assert_eq!(replicas(), "2");
    assert_eq!(
        helm.history(),
        ["superseded", "superseded", "deployed", "failed"]
    );

    helm.says(&["uninstall", "dock"], &["release \"dock\" uninstalled"]);
    assert_eq!(kubectl.gives("get mooring,deployment,secret -o name"), "");
    assert_eq!(
        kubectl.gives("get configmap,service -l app.kubernetes.io/instance=dock -o name"),
        ""
    );
    // A definition of a chart outlives its releases.
    kubectl.says("get crd moorings.marina.example.com", &[]);
    helm.says(&["list", "--all-namespaces", "-q"], &[]);
}

#[test]
fn a_release_is_patched_by_three_way_merges_where_the_server_does_not_apply() {
    let Some(helm) = Helm::start() else {
        return;
    };
    let kubectl = &helm.kubectl;
    let by_client = ["--server-side=false", "--no-hooks"];
    helm.says(
        &[&["install", "dock", CHART][..], &by_client].concat(),
        &["deployed"],
    );
    // A label from elsewhere stays, a changed value is reset.
    kubectl.gives("label deployment dock by=hand");
    kubectl.gives("scale deployment dock --replicas=9");
    kubectl.gives(r#"patch mooring dock --type=merge -p '{"spec":{"berth":9}}'"#);
    let change = ["--set", "greeting=farewell,replicas=3"];
    helm.says(
        &[&["upgrade", "dock", CHART][..], &by_client, &change].concat(),
        &["upgraded"],
    );
    let fields = "jsonpath={.spec.replicas} {.metadata.labels.by}";
    assert_eq!(
        kubectl.gives(&format!("get deployment dock -o '{fields}'")),
        "3 hand"
    );
    // Then server-side apply takes over the fields that the client applied.
    let apply = [
        "upgrade",
        "dock",
        CHART,
        "--server-side=true",
        "--no-hooks",
        "--force-conflicts",
        "--reset-values",
    ];
    helm.says(&apply, &["upgraded"]);
    assert_eq!(
        kubectl.gives(&format!("get deployment dock -o '{fields}'")),
        "2 hand"
    );
    helm.says(&["uninstall", "dock"], &["uninstalled"]);
}
