//! Service accounts as programs use them: tokens bound to each kind of object, the configuration of a pod, a kubelet that
//! fetches tokens for its pods, and a server that lets the API decide about its own clients.

use crate::kubectl::Kubectl;
use crate::process::{Followed, Output, eventually, run};
use crate::server::bareboat;
use crate::tools;
use bareboat_sessions::Port;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user that client-go is with a kubeconfig, as it prints it.
fn user(output: &Output) -> Value {
    assert!(output.status.success(), "{}", output.all());
    serde_json::from_str(output.stdout.trim()).unwrap()
}

/// A kubeconfig with these credentials of its only user.
fn kubeconfig(kubectl: &Kubectl, name: &str, credentials: Value) -> PathBuf {
    let home = &kubectl.home;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": format!("https://{}", home.address()),
            "certificate-authority": home.data().join("certificates/ca.crt"),
        }}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": credentials}],
    });
    let path = home.path().join(format!("{name}.kubeconfig"));
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

/// Runs `bareboat kubeconfig create`; returns the path of the kubeconfig.
fn create(kubectl: &Kubectl, name: &str, arguments: &[&str]) -> PathBuf {
    let path = kubectl.home.path().join(format!("{name}.kubeconfig"));
    let mut command = bareboat(["kubeconfig", "create"]);
    command
        .args(arguments)
        .arg("--data-dir")
        .arg(kubectl.home.data())
        .arg("--save")
        .arg(&path);
    let output = run(&mut command, "");
    assert!(output.status.success(), "{}", output.all());
    path
}

fn peer_with(program: &Path, kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    run(&mut command, "")
}

const ROBOT: &str = "system:serviceaccount:default:robot";
const POD: &str = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\"},\
    \"spec\":{\"serviceAccountName\":\"robot\",\"containers\":[{\"name\":\"a\",\"image\":\"b\"}]}}";

#[test]
fn kubectl_binds_tokens_to_each_kind_of_object() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create serviceaccount robot");
    kubectl.gives("create secret generic held");
    kubectl.gives_for("create -f -", POD);
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"here"}}"#;
    kubectl.gives_for("create -f -", node);
    for (kind, name) in [("Secret", "held"), ("Pod", "web"), ("Node", "here")] {
        let line =
            format!("create token robot --bound-object-kind={kind} --bound-object-name={name}");
        let token = kubectl.gives(&line);
        let config = kubeconfig(&kubectl, kind, json!({"token": token.trim()}));
        let ask = || {
            let line = format!("--kubeconfig={} auth whoami -o json", config.display());
            run(&mut kubectl.command(&line), "")
        };
        let seen = user(&ask())["status"]["userInfo"].clone();
        assert_eq!(seen["username"], ROBOT);
        let key = format!("authentication.kubernetes.io/{}-name", kind.to_lowercase());
        if kind != "Secret" {
            assert_eq!(seen["extra"][&key], json!([name]), "{seen}");
        }
        let wrong = format!("{line} --bound-object-uid=00000000-0000-4000-8000-000000000000");
        kubectl.refuses(&wrong, &["does not match the UID in record"]);
        kubectl.gives(&format!("delete {} {name} --now", kind.to_lowercase()));
        let refused = ask();
        assert!(refused.stderr.contains("Unauthorized"), "{}", refused.all());
        kubectl.refuses(&line, &["not found"]);
    }
    let config = "create token robot --bound-object-kind=ConfigMap --bound-object-name=x";
    kubectl.refuses(config, &["supported --bound-object-kind"]);
}

/// A Secret for a token of an account, which the server fills.
fn token_secret(account: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\n\
         metadata: {{name: {account}-token, annotations: {{kubernetes.io/service-account.name: {account}}}}}\n"
    )
}

/// The token that the server wrote into a Secret.
fn filled(kubectl: &Kubectl, secret: &str) -> String {
    let line = format!("get secret {secret} -o 'jsonpath={{.data.token}}'");
    eventually("the Secret is filled", || {
        let encoded = kubectl.gives(&line);
        let bytes = STANDARD.decode(encoded.trim()).unwrap();
        (!bytes.is_empty()).then(|| String::from_utf8(bytes).unwrap())
    })
}

#[test]
fn a_secret_holds_a_token_until_its_account_is_deleted() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create serviceaccount robot");
    kubectl.gives_for("apply -f -", &token_secret("robot"));
    let token = filled(&kubectl, "robot-token");
    let member = |key: &str| {
        let line = format!("get secret robot-token -o 'jsonpath={{.data.{key}}}'");
        let bytes = STANDARD.decode(kubectl.gives(&line).trim()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(member("namespace"), "default");
    let ca = std::fs::read_to_string(kubectl.home.data().join("certificates/ca.crt")).unwrap();
    assert_eq!(member("ca\\.crt"), ca);
    // Applying the manifest again keeps what the server wrote.
    kubectl.gives_for("apply -f -", &token_secret("robot"));
    assert_eq!(filled(&kubectl, "robot-token"), token);
    let config = kubeconfig(&kubectl, "robot", json!({"token": token}));
    let ask = || {
        let line = format!("--kubeconfig={} auth whoami -o json", config.display());
        run(&mut kubectl.command(&line), "")
    };
    assert_eq!(user(&ask())["status"]["userInfo"]["username"], ROBOT);
    let used = "get secret robot-token --show-labels";
    kubectl.until(used, "kubernetes.io/legacy-token-last-used=");
    kubectl.gives("delete serviceaccount robot");
    let refused = ask();
    assert!(refused.stderr.contains("Unauthorized"), "{}", refused.all());
    eventually("the Secret is gone", || {
        let left = kubectl.gives("get secrets -o name");
        left.trim().is_empty().then_some(())
    });
}

#[test]
fn client_go_authenticates_with_every_kind_of_credential() {
    let Some(peers) = tools::peer("peers") else {
        return;
    };
    let files = tempfile::tempdir().unwrap();
    let tokens = files.path().join("tokens.csv");
    std::fs::write(&tokens, "of-sam,sam,7,\"dev,ops\"\n").unwrap();
    let tokens = tokens.display().to_string();
    let flags = ["--token-file", &tokens, "--enable-bootstrap-token-auth"];
    let Some(kubectl) = Kubectl::start_with(&flags) else {
        return;
    };
    kubectl.gives("create serviceaccount robot");
    let bootstrap = "apiVersion: v1\nkind: Secret\ntype: bootstrap.kubernetes.io/token\n\
        metadata: {name: bootstrap-token-abcdef, namespace: kube-system}\n\
        stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-authentication: 'true'}\n";
    kubectl.gives_for("create -f -", bootstrap);
    kubectl.gives_for("create -f -", &token_secret("robot"));
    let held = filled(&kubectl, "robot-token");
    let token = kubectl.gives("create token robot");
    let token_file = files.path().join("token");
    std::fs::write(&token_file, token.trim()).unwrap();
    let created = [
        (
            "alice",
            create(&kubectl, "certificate", &["alice", "--group=dev"]),
        ),
        ("carol", create(&kubectl, "exec", &["carol", "--exec"])),
        (
            ROBOT,
            create(&kubectl, "account", &["--service-account=default/robot"]),
        ),
        (
            ROBOT,
            create(
                &kubectl,
                "account-exec",
                &["--service-account=default/robot", "--exec"],
            ),
        ),
    ];
    let written = [
        ("sam", "static", json!({"token": "of-sam"})),
        (ROBOT, "token", json!({"token": token.trim()})),
        (ROBOT, "held", json!({"token": held})),
        (ROBOT, "token-file", json!({"tokenFile": token_file})),
        (
            "system:bootstrap:abcdef",
            "bootstrap",
            json!({"token": "abcdef.0123456789abcdef"}),
        ),
    ]
    .map(|(name, file, credentials)| (name, kubeconfig(&kubectl, file, credentials)));
    for (name, path) in created.iter().chain(&written) {
        let output = peer_with(&peers, path, &["whoami"]);
        assert_eq!(user(&output)["username"], *name, "{}", path.display());
    }
    for (file, credentials) in [
        ("bad-token", json!({"token": "of-nobody"})),
        ("bad-jwt", json!({"token": format!("{}x", token.trim())})),
        ("password", json!({"username": "sam", "password": "of-sam"})),
        ("nothing", json!({})),
    ] {
        let path = kubeconfig(&kubectl, file, credentials);
        let output = peer_with(&peers, &path, &["whoami"]);
        assert!(!output.status.success(), "{}", output.all());
        assert!(output.stderr.contains("Unauthorized"), "{}", output.all());
    }
}

#[test]
fn a_pod_is_configured_by_its_mounted_token() {
    let (Some(peers), Some(kubectl)) = (tools::peer("peers"), Kubectl::start()) else {
        return;
    };
    kubectl.gives("create serviceaccount robot");
    kubectl.gives_for("create -f -", POD);
    let mounted = kubectl.home.path().join("serviceaccount");
    std::fs::create_dir(&mounted).unwrap();
    // What the volume of the pod says it contains.
    let volume = "get pod web -o 'jsonpath={.spec.volumes[0].projected.sources[*].serviceAccountToken.path}'";
    kubectl.says(volume, &["token"]);
    let line = "create token robot --bound-object-kind=Pod --bound-object-name=web";
    std::fs::write(mounted.join("token"), kubectl.gives(line).trim()).unwrap();
    kubectl.until("get configmaps -o name", "kube-root-ca.crt");
    let ca = kubectl.gives("get configmap kube-root-ca.crt -o 'jsonpath={.data.ca\\.crt}'");
    std::fs::write(mounted.join("ca.crt"), ca).unwrap();
    std::fs::write(mounted.join("namespace"), "default").unwrap();
    let (host, port) = kubectl.home.address().split_once(':').map_or_else(
        || panic!("no port"),
        |(host, port)| (host.to_owned(), port.to_owned()),
    );
    // client-go reads the files of a pod from one place only, so it gets a view of the file system of its own.
    let script = "mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io && \
        cp -r \"$1\" /run/secrets/kubernetes.io/serviceaccount && exec \"$2\" whoami";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-e", "-c", script, "sh"])
            .args([&mounted, &peers])
            .env_remove("KUBECONFIG")
            .env("KUBERNETES_SERVICE_HOST", &host)
            .env("KUBERNETES_SERVICE_PORT", &port);
        run(&mut command, "")
    };
    if !unshare("mount -t tmpfs tmpfs /run").status.success() {
        println!("skipped: there are no mount namespaces here");
        return;
    }
    let seen = user(&unshare(script));
    assert_eq!(seen["username"], ROBOT);
    let pod = &seen["extra"]["authentication.kubernetes.io/pod-name"];
    assert_eq!(pod, &json!(["web"]), "{seen}");
    kubectl.gives("delete pod web --now");
    let refused = unshare(script);
    assert!(refused.stderr.contains("Unauthorized"), "{}", refused.all());
}

#[test]
fn a_metrics_server_of_controller_runtime_asks_who_may_read() {
    let (Some(peers), Some(kubectl)) = (tools::peer("peers"), Kubectl::start()) else {
        return;
    };
    for name in ["manager", "reader", "stranger"] {
        kubectl.gives(&format!("create serviceaccount {name}"));
    }
    kubectl.gives(
        "create clusterrolebinding manager --clusterrole=system:auth-delegator --serviceaccount=default:manager",
    );
    kubectl.gives("create clusterrole metrics --verb=get --non-resource-url=/metrics");
    kubectl.gives(
        "create clusterrolebinding reader --clusterrole=metrics --serviceaccount=default:reader",
    );
    let token = |name: &str| {
        let path = kubectl.home.path().join(name);
        std::fs::write(&path, kubectl.gives(&format!("create token {name}"))).unwrap();
        path.display().to_string()
    };
    let config = create(&kubectl, "manager", &["--service-account=default/manager"]);
    let arguments = [
        "metrics",
        "--allowed",
        &token("reader"),
        "--refused",
        &token("stranger"),
    ];
    let output = peer_with(&peers, &config, &arguments);
    assert!(output.status.success(), "{}", output.all());
    assert_eq!(
        output.stdout.matches("\"ok\":true").count(),
        4,
        "{}",
        output.all()
    );
}

/// A real kubelet that starts no containers, as the user of its node.
fn hollow_node(kubectl: &Kubectl, name: &str) -> Option<(Followed, Port)> {
    let program = tools::peer("kubemark")?;
    let port = Port::free();
    let config = create(
        kubectl,
        name,
        &[&format!("system:node:{name}"), "--group=system:nodes"],
    );
    let files = kubectl.home.path().join("kubelet");
    let mut command = Command::new(program);
    command
        .arg("--morph=kubelet")
        .arg(format!("--name={name}"))
        .arg("--kubeconfig")
        .arg(config)
        .arg(format!("--kubelet-port={}", port.number))
        .args([
            "--kubelet-read-only-port=0",
            "--use-host-image-service=false",
        ])
        .args(["--node-labels=kubernetes.io/os=linux", "--cert-dir"])
        .arg(files);
    Some((Followed::start("kubemark", &mut command), port))
}

/// The directory of the hollow kubelet that has a pod. It makes it under `/tmp` whatever its settings are.
struct Root(PathBuf);

impl Root {
    fn of(pod: &str) -> Option<Root> {
        let entries = std::fs::read_dir("/tmp").unwrap().flatten();
        let roots = entries.filter(|it| {
            it.file_name()
                .to_string_lossy()
                .starts_with("hollow-kubelet.")
        });
        let mut roots = roots.map(|it| it.path());
        roots
            .find(|root| root.join("pods").join(pod).is_dir())
            .map(Root)
    }

    /// The token in the projected volume of a pod, once it is there.
    fn token(&self, pod: &str) -> Option<String> {
        let volumes = self
            .0
            .join("pods")
            .join(pod)
            .join("volumes/kubernetes.io~projected");
        let mut volumes = std::fs::read_dir(volumes).ok()?.flatten();
        volumes.find_map(|volume| std::fs::read_to_string(volume.path().join("token")).ok())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_hollow_kubelet_fetches_the_token_of_a_pod_with_the_role_of_nodes() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    // Nodes have no authorizer of their own here: the default role gives them their rights.
    kubectl.gives("create clusterrolebinding nodes --clusterrole=system:node --group=system:nodes");
    let Some(_kubelet) = hollow_node(&kubectl, "hollow") else {
        return;
    };
    kubectl.gives("create serviceaccount robot");
    eventually("the node registers", || {
        let nodes = kubectl.gives("get nodes -o name");
        nodes.contains("node/hollow").then_some(())
    });
    let pod = POD.replace("\"spec\":{", "\"spec\":{\"nodeName\":\"hollow\",");
    kubectl.gives_for("create -f -", &pod);
    let uid = kubectl.gives("get pod web -o 'jsonpath={.metadata.uid}'");
    let root = eventually("the kubelet knows the pod", || Root::of(&uid));
    let token = eventually("the kubelet has a token", || root.token(&uid));
    let config = kubeconfig(&kubectl, "robot", json!({"token": token.trim()}));
    let ask = || {
        let line = format!("--kubeconfig={} auth whoami -o json", config.display());
        run(&mut kubectl.command(&line), "")
    };
    let seen = user(&ask())["status"]["userInfo"].clone();
    assert_eq!(seen["username"], ROBOT);
    for (key, wanted) in [("pod-name", "web"), ("node-name", "hollow")] {
        let key = format!("authentication.kubernetes.io/{key}");
        assert_eq!(seen["extra"][&key], json!([wanted]), "{seen}");
    }
    kubectl.until("get pod web -o 'jsonpath={.status.phase}'", "Running");
    kubectl.gives("delete pod web --now");
    let refused = ask();
    assert!(refused.stderr.contains("Unauthorized"), "{}", refused.all());
}

#[test]
fn an_informer_goes_on_when_its_credential_is_renewed() {
    let (Some(peers), Some(kubectl)) = (tools::peer("peers"), Kubectl::start()) else {
        return;
    };
    kubectl.gives("create clusterrole reader --verb=get,list,watch --resource=configmaps");
    kubectl.gives("create clusterrolebinding carol --clusterrole=reader --user=carol");
    let config = create(&kubectl, "carol", &["carol", "--exec", "--expires=12s"]);
    let begun = std::time::Instant::now();
    let mut command = Command::new(peers);
    command
        .args([
            "informer",
            "--resource",
            "v1/configmaps",
            "--namespace=default",
            "--for=10m",
        ])
        .arg("--kubeconfig")
        .arg(config);
    let mut informer = Followed::start("informer", &mut command);
    let mut sees = |name: &str| {
        loop {
            let line = informer.json();
            if line["type"] == "ADDED" && line["name"] == name {
                return;
            }
        }
    };
    sees("kube-root-ca.crt");
    // Past the end of the first certificate, and of the second.
    for (name, seconds) in [("first", 0), ("second", 15), ("third", 30)] {
        let passed = begun.elapsed();
        std::thread::sleep(std::time::Duration::from_secs(seconds).saturating_sub(passed));
        kubectl.gives(&format!("create configmap {name}"));
        sees(name);
    }
    informer.stop();
}
