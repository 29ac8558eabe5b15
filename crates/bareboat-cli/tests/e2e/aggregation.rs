//! The published k8s.io/sample-apiserver with its etcd, registered by APIServices: an API server that delegates
//! authentication and authorization, and has an admission plug-in of its own.

use crate::kubectl::Kubectl;
use crate::process::{Followed, eventually};
use crate::tools;
use bareboat_sessions::Port;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::process::Command;
use std::time::{Duration, Instant};

const RIGHTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: wardle}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: apiserver, namespace: wardle}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wardle-auth-delegator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: wardle-auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wardle-apiserver}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, watch, list]}
- {apiGroups: [admissionregistration.k8s.io], resources: ["*"], verbs: [get, watch, list]}
- {apiGroups: [flowcontrol.apiserver.k8s.io], resources: ["*"], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wardle-apiserver}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wardle-apiserver}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
"#;

/// The sample server and its etcd; both end when dropped.
struct Wardle {
    port: Port,
    _ports: [Port; 2],
    certificates: std::path::PathBuf,
    _etcd: Followed,
    server: Followed,
}

impl Wardle {
    fn start(kubectl: &Kubectl) -> Option<Wardle> {
        let (etcd, program) = (tools::peer("etcd")?, tools::peer("sample-apiserver")?);
        kubectl.gives_for("apply -f -", RIGHTS);
        let home = kubectl.home.path();
        let ports = [Port::free(), Port::free()];
        let [client, peer] = [0, 1].map(|at| format!("http://127.0.0.1:{}", ports[at].number));
        let mut command = Command::new(etcd);
        command
            .arg("--data-dir")
            .arg(home.join("etcd"))
            .args(["--unsafe-no-fsync", "--log-level=error"])
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &format!("default={peer}")]);
        let etcd = Followed::start("etcd", &mut command);
        let token = kubectl.gives("create token apiserver -n wardle --duration=1h");
        let kubeconfig = home.join("wardle.kubeconfig");
        let admin = std::fs::read_to_string(kubectl.home.kubeconfig()).unwrap();
        std::fs::write(&kubeconfig, admin).unwrap();
        let file = kubeconfig.display().to_string();
        kubectl.gives(&format!(
            "config set-credentials wardle --token={} --kubeconfig={file}",
            token.trim()
        ));
        kubectl.gives(&format!(
            "config set-context --current --user=wardle --kubeconfig={file}"
        ));
        let port = Port::free();
        let certificates = home.join("wardle-certificates");
        let mut command = Command::new(program);
        command
            .args(["--etcd-servers", &client, "--bind-address=127.0.0.1"])
            .arg(format!("--secure-port={}", port.number))
            .arg(format!("--cert-dir={}", certificates.display()))
            .arg(format!("--kubeconfig={file}"))
            .arg(format!("--authentication-kubeconfig={file}"))
            .arg(format!("--authorization-kubeconfig={file}"));
        let server = Followed::start("sample-apiserver", &mut command);
        Some(Wardle {
            port,
            _ports: ports,
            certificates,
            _etcd: etcd,
            server,
        })
    }

    /// The APIService of a version.
    fn api_service(&self, version: &str) -> String {
        let bundle = eventually("the certificate of the sample server", || {
            std::fs::read(self.certificates.join("apiserver.crt")).ok()
        });
        format!(
            "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n\
             metadata:\n  name: {version}.wardle.example.com\n  annotations: {{bareboat.dev/url: \"https://localhost:{}\"}}\n\
             spec:\n  group: wardle.example.com\n  version: {version}\n  groupPriorityMinimum: 1000\n  versionPriority: 15\n  \
             service: {{name: api, namespace: wardle}}\n  caBundle: {}\n",
            self.port.number,
            BASE64_STANDARD.encode(bundle)
        )
    }
}

fn flunder(name: &str) -> String {
    format!(
        "apiVersion: wardle.example.com/v1alpha1\nkind: Flunder\nmetadata: {{name: {name}, labels: {{sample: \"yes\"}}}}\n"
    )
}

#[test]
fn the_sample_api_server_of_kubernetes_serves_its_group() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let Some(wardle) = Wardle::start(&kubectl) else {
        return;
    };
    for version in ["v1alpha1", "v1beta1"] {
        kubectl.gives_for("create -f -", &wardle.api_service(version));
        kubectl.says(
            &format!("wait --for=condition=Available apiservice/{version}.wardle.example.com --timeout=240s"),
            &["condition met"],
        );
    }
    kubectl.says(
        "get apiservice v1alpha1.wardle.example.com",
        &["wardle/api", "True"],
    );
    kubectl.says(
        "api-resources --api-group=wardle.example.com",
        &[
            "fischers",
            "wardle.example.com/v1alpha1",
            "false",
            "Fischer",
            "flunders",
            "true",
            "Flunder",
        ],
    );
    kubectl.says(
        "explain flunder",
        &["KIND: Flunder", "GROUP: wardle.example.com"],
    );
    kubectl.says("explain flunder.spec", &["reference"]);

    let mut watch = Followed::start("kubectl", &mut kubectl.command("get flunders -w -o name"));
    kubectl.says_for("create -f -", &flunder("first"), &["created"]);
    assert_eq!(watch.line(), "flunder.wardle.example.com/first");
    kubectl.says("get flunders", &["first"]);
    kubectl.says(
        "get flunders.v1beta1.wardle.example.com first -o yaml",
        &["apiVersion: wardle.example.com/v1beta1"],
    );
    kubectl.says("label flunder first more=1", &["labeled"]);
    assert_eq!(watch.line(), "flunder.wardle.example.com/first");
    kubectl.says_for(
        "apply --server-side -f -",
        &flunder("second"),
        &["serverside-applied"],
    );
    assert_eq!(watch.line(), "flunder.wardle.example.com/second");
    kubectl.says("delete flunder second", &["deleted"]);

    // Its admission plug-in refuses what a Fischer bans.
    let fischer = "apiVersion: wardle.example.com/v1alpha1\nkind: Fischer\nmetadata: {name: strict}\ndisallowedFlunders: [banned]\n";
    kubectl.gives_for("create -f -", fischer);
    kubectl.until("get fischers", "strict");
    eventually("the ban", || {
        let output = crate::process::run(&mut kubectl.command("create -f -"), &flunder("banned"));
        let refused = output
            .all()
            .contains("this name may not be used, please change the resource name");
        if !refused {
            kubectl.gives("delete flunder banned --ignore-not-found");
        }
        refused.then_some(())
    });

    // This server authorizes first, and the other one asks this one again.
    kubectl.refuses("get flunders --as=nobody", &["Forbidden", "nobody"]);
    let direct = format!(
        "--server=https://localhost:{} --insecure-skip-tls-verify",
        wardle.port.number
    );
    let token = kubectl.gives("create token default --duration=1h");
    let as_default = format!(
        "get flunders {direct} --kubeconfig=/dev/null --token={}",
        token.trim()
    );
    kubectl.refuses(
        &as_default,
        &["Forbidden", "system:serviceaccount:default:default"],
    );
    kubectl.gives(
        "create clusterrole flunders --verb=get,list --resource=flunders.wardle.example.com",
    );
    kubectl.gives("create clusterrolebinding flunders --clusterrole=flunders --serviceaccount=default:default");
    eventually("the right to read flunders there", || {
        let output = crate::process::run(&mut kubectl.command(&as_default), "");
        output.stdout.contains("first").then_some(())
    });
    kubectl.refuses(
        &format!("get flunders {direct} --kubeconfig=/dev/null --token=unknown"),
        &["Unauthorized"],
    );

    // A namespace goes with what the other server has in it.
    kubectl.gives("create namespace leaving");
    kubectl.gives_for("create -n leaving -f -", &flunder("inside"));
    kubectl.says("delete namespace leaving --timeout=120s", &["deleted"]);
    assert_eq!(
        kubectl.gives("get flunders -A -o name"),
        "flunder.wardle.example.com/first\n"
    );

    // The server dies: its group is unavailable, and everything else is not.
    drop(watch);
    wardle.server.stop();
    kubectl.until(
        "get apiservice v1alpha1.wardle.example.com",
        "False (FailedDiscoveryCheck)",
    );
    let begun = Instant::now();
    kubectl.refuses(
        "get flunders.v1alpha1.wardle.example.com",
        &["ServiceUnavailable"],
    );
    kubectl.says("get namespaces", &["default"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    kubectl.gives("delete apiservice v1alpha1.wardle.example.com v1beta1.wardle.example.com");
    kubectl.says("api-resources", &["configmaps"]);
}
