//! kubectl against the views, with clusters in its kubeconfig whose URLs end with the prefix.

use crate::rig::{Rig, deployment, pod};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Kubectl {
    program: PathBuf,
    home: tempfile::TempDir,
}

/// Returns a kubectl with the contexts of the views; `None` if there is no kubectl.
fn kubectl(rig: &Rig) -> Option<Kubectl> {
    let peers = std::env::var_os("BAREBOAT_PEERS").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/peers");
    let program = peers.unwrap_or(own).join("kubectl");
    if !program.is_file() {
        let required = std::env::var_os("BAREBOAT_REQUIRE_PEERS").is_some();
        assert!(!required, "there is no kubectl at {}", program.display());
        return None;
    }
    let home = tempfile::tempdir().expect("a directory can be made");
    let text = rig.server.kubeconfig();
    let url = rig.server.url();
    let mut config: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let base = config["clusters"][0].clone();
    let prefix = format!("{url}/apis/clusterpedia.io/v1beta1/resources");
    for (name, server) in [
        ("clusterpedia", prefix.clone()),
        ("c1", format!("{prefix}/clusters/c1")),
    ] {
        let mut cluster = base.clone();
        cluster["name"] = name.into();
        cluster["cluster"]["server"] = server.into();
        config["clusters"]
            .as_array_mut()
            .expect("clusters")
            .push(cluster);
    }
    std::fs::write(home.path().join("config"), config.to_string()).expect("a file can be written");
    Some(Kubectl { program, home })
}

impl Kubectl {
    async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("KUBECONFIG", self.home.path().join("config"))
            .env("HOME", self.home.path());
        let done = tokio::task::spawn_blocking(move || command.output()).await;
        let output = done.expect("the thread ends").expect("kubectl runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{errors}");
        text
    }

    /// Returns the first lines that kubectl prints, and ends it then.
    async fn first_lines(&self, arguments: &[&str], count: usize) -> Vec<String> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("KUBECONFIG", self.home.path().join("config"))
            .env("HOME", self.home.path())
            .stdout(Stdio::piped());
        let read = move || {
            let mut child = command.spawn().expect("kubectl runs");
            let out = child.stdout.take().expect("kubectl prints");
            let lines = BufReader::new(out).lines().take(count);
            let lines: Vec<String> = lines.map_while(Result::ok).collect();
            child.kill().expect("kubectl can be ended");
            child.wait().expect("kubectl ends");
            lines
        };
        let done = tokio::task::spawn_blocking(read).await;
        done.expect("the thread ends")
    }

    /// Returns the words of each line.
    async fn lines(&self, arguments: &[&str]) -> Vec<Vec<String>> {
        let text = self.run(arguments).await;
        let lines = text.lines();
        lines
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_searches_all_clusters() {
    let rig = Rig::listening().await;
    for cluster in ["c1", "c2", "c3"] {
        rig.put(cluster, deployment("a", "web", 3));
        rig.put(cluster, deployment("b", "api", 2));
        rig.put(cluster, pod("a", "x", "Running"));
    }
    let Some(kubectl) = kubectl(&rig) else {
        return;
    };
    let all = ["--cluster", "clusterpedia"];
    let with = |more: &[&'static str]| -> Vec<&'static str> {
        all.iter().copied().chain(more.iter().copied()).collect()
    };

    let resources = kubectl.lines(&with(&["api-resources"])).await;
    assert!(
        resources.contains(
            &["deployments", "deploy", "apps/v1", "true", "Deployment"]
                .map(str::to_owned)
                .to_vec()
        )
    );
    assert!(!resources.iter().any(|line| line[0] == "nodes"));

    let deployments = kubectl.lines(&with(&["get", "deploy", "-A"])).await;
    assert_eq!(
        deployments[0],
        [
            "NAMESPACE",
            "CLUSTER",
            "NAME",
            "READY",
            "UP-TO-DATE",
            "AVAILABLE",
            "AGE"
        ]
    );
    assert_eq!(deployments.len(), 7);
    assert_eq!(deployments[1][..6], ["a", "c1", "web", "3/3", "3", "3"]);

    let some = kubectl
        .lines(&with(&[
            "get",
            "deploy",
            "-A",
            "-l",
            "search.clusterpedia.io/clusters in (c1,c2)",
        ]))
        .await;
    assert_eq!(some.len(), 5);
    let ordered = "search.clusterpedia.io/clusters in (c1,c2), search.clusterpedia.io/orderby in (namespace_desc, name)";
    let ordered = kubectl
        .lines(&with(&[
            "get",
            "deploy",
            "-A",
            "--no-headers",
            "-l",
            ordered,
        ]))
        .await;
    let namespaces: Vec<&str> = ordered.iter().map(|line| line[0].as_str()).collect();
    assert_eq!(namespaces, ["b", "b", "a", "a"]);
    let running = kubectl
        .lines(&with(&[
            "get",
            "pods",
            "-n",
            "a",
            "--field-selector",
            "status.phase=Running",
        ]))
        .await;
    assert_eq!(running.len(), 4);
    let pages = kubectl
        .lines(&with(&[
            "get",
            "deploy",
            "-A",
            "--no-headers",
            "--chunk-size=2",
        ]))
        .await;
    assert_eq!(pages.len(), 6);

    let one = kubectl
        .lines(&["--cluster", "c1", "get", "deploy", "-n", "a", "web"])
        .await;
    assert_eq!(one[0][..2], ["CLUSTER", "NAME"]);
    assert_eq!(one[1][..2], ["c1", "web"]);
    let yaml = kubectl
        .run(&[
            "--cluster",
            "c1",
            "get",
            "deploy",
            "-n",
            "a",
            "web",
            "-o",
            "yaml",
        ])
        .await;
    assert!(
        yaml.contains("shadow.clusterpedia.io/cluster-name: c1"),
        "{yaml}"
    );

    let collections = kubectl.lines(&["get", "collectionresources"]).await;
    assert_eq!(collections[0], ["NAME", "RESOURCES"]);
    let workloads = kubectl
        .lines(&["get", "collectionresources", "workloads"])
        .await;
    assert_eq!(
        workloads[0],
        [
            "CLUSTER",
            "GROUP",
            "VERSION",
            "KIND",
            "NAMESPACE",
            "NAME",
            "AGE"
        ]
    );
    assert_eq!(workloads.len(), 7);

    let watched = kubectl
        .first_lines(&with(&["get", "pods", "-n", "a", "-w", "--no-headers"]), 3)
        .await;
    let mut clusters: Vec<&str> = watched
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    clusters.sort_unstable();
    assert_eq!(clusters, ["c1", "c2", "c3"]);
}
