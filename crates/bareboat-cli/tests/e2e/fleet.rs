//! The fleet: a server with `--fleet` and members that are servers of their own, searched with a stock kubectl.

mod events;
mod joining;
mod judges;
mod load;
mod outages;
mod replicas;
mod restarts;
mod shelf;
mod types;
mod views;
mod witness;
mod workloads;

use crate::kubectl::{Kubectl, words};
use crate::process::{Output, PATIENCE, run};
use crate::server::bareboat;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The path of all views.
pub(super) const VIEWS: &str = "/apis/clusterpedia.io/v1beta1/resources";

/// A hub and its members.
pub(super) struct Fleet {
    pub(super) hub: Kubectl,
    pub(super) members: Vec<Kubectl>,
    /// Contexts for all members and for each.
    kubeconfig: PathBuf,
}

/// What most tests sync.
pub(super) const TYPES: &str = r#"[{"group":"apps","resources":["*"]},{"group":"","resources":["pods","configmaps","secrets"]}]"#;

impl Fleet {
    /// A hub and so many members, c1 and so on, none of which has joined; `None` if there is no kubectl.
    pub(super) fn new(members: usize) -> Option<Fleet> {
        Fleet::new_with(members, &[])
    }

    /// The same for a hub with additional flags.
    pub(super) fn new_with(members: usize, flags: &[&str]) -> Option<Fleet> {
        let usual = ["--fleet", "--fleet-probe-interval", "1s"];
        let hub = Kubectl::start_with(&[&usual, flags].concat())?;
        let members: Option<Vec<Kubectl>> = (0..members).map(|_| Kubectl::start()).collect();
        let kubeconfig = hub.home.path().join("fleet.kubeconfig");
        Some(Fleet {
            hub,
            members: members?,
            kubeconfig,
        })
    }

    /// The same, with members that have joined with their administrator's kubeconfig.
    pub(super) fn joined(members: usize) -> Option<Fleet> {
        let fleet = Fleet::new(members)?;
        fleet.join(1..=members);
        Some(fleet)
    }

    /// Lets members join with their administrator's kubeconfig, and waits until they are synced.
    pub(super) fn join(&self, numbers: RangeInclusive<usize>) {
        for number in numbers.clone() {
            let spec = json!({
                "kubeconfig": kubeconfig(&self.members[number - 1], None),
                "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
            });
            self.apply(&format!("c{number}"), spec, json!({}));
        }
        for number in numbers {
            self.synced(&format!("c{number}"));
        }
        self.contexts();
    }

    /// Creates or changes a PediaCluster.
    pub(super) fn apply(&self, name: &str, spec: Value, annotations: Value) {
        let cluster = pedia_cluster(name, spec, annotations);
        self.hub.gives_for(
            "apply --server-side --force-conflicts -f -",
            &cluster.to_string(),
        );
    }

    /// Writes the kubeconfig with contexts.
    pub(super) fn contexts(&self) {
        let mut command = bareboat(["fleet", "kubeconfig", "--save"]);
        command
            .arg(&self.kubeconfig)
            .env("KUBECONFIG", self.hub.home.kubeconfig());
        let made = run(&mut command, "");
        assert!(made.status.success(), "{}", made.all());
    }

    /// Waits until a member is ready and all its types are synced, and returns its PediaCluster.
    pub(super) fn synced(&self, name: &str) -> Value {
        self.until(name, |cluster| {
            let types = sync_conditions(cluster);
            condition(cluster, "Ready").0 == "True"
                && !types.is_empty()
                && types.iter().all(|(_, status)| status == "Syncing")
        })
    }

    /// Waits until a PediaCluster is as wanted.
    pub(super) fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let text = self.hub.gives(&format!("get pediacluster {name} -o json"));
            let cluster: Value = serde_json::from_str(&text).unwrap();
            if wanted(&cluster) {
                return cluster;
            }
            assert!(begun.elapsed() < PATIENCE, "{cluster:#}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Runs kubectl against the views.
    pub(super) fn view(&self, line: &str) -> Output {
        let mut command = self.hub.command(line);
        run(command.env("KUBECONFIG", &self.kubeconfig), "")
    }

    /// The output of kubectl against the views; it must succeed.
    pub(super) fn shows(&self, line: &str) -> String {
        let output = self.view(line);
        assert!(output.status.success(), "kubectl {line}: {}", output.all());
        output.stdout
    }

    /// Repeats kubectl until its output is as wanted. A type that is not synced yet is an error at first.
    pub(super) fn shows_until(&self, line: &str, wanted: impl Fn(&Output) -> bool) -> Output {
        let begun = Instant::now();
        loop {
            let output = self.view(line);
            if wanted(&output) {
                return output;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "kubectl {line}: {}",
                output.all()
            );
            sleep(Duration::from_millis(100));
        }
    }

    /// Asks for a path below the views as the administrator.
    pub(super) fn raw(&self, path: &str) -> Value {
        let text = self.hub.gives(&format!("get --raw '{VIEWS}{path}'"));
        serde_json::from_str(&text).unwrap()
    }

    /// Asks for a path below the views, which must fail, and returns what kubectl says.
    pub(super) fn refuses(&self, path: &str) -> String {
        let mut command = self.hub.command("");
        command.args(["get", "--raw"]).arg(format!("{VIEWS}{path}"));
        let output = run(&mut command, "");
        assert!(!output.status.success(), "{path}: {}", output.all());
        output.stderr
    }

    /// The program, as a user of the hub runs it.
    pub(super) fn program(&self, line: &str) -> Output {
        let mut command = bareboat(words(line));
        let command = command.env("KUBECONFIG", self.hub.home.kubeconfig());
        run(command.current_dir(self.hub.home.path()), "")
    }
}

pub(super) fn pedia_cluster(name: &str, spec: Value, annotations: Value) -> Value {
    json!({
        "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster",
        "metadata": {"name": name, "annotations": annotations}, "spec": spec,
    })
}

/// The administrator's kubeconfig of a member in base64, for its own address or another one.
pub(super) fn kubeconfig(member: &Kubectl, port: Option<u16>) -> String {
    let text = std::fs::read_to_string(member.home.kubeconfig()).unwrap();
    let text = match port {
        Some(port) => text.replace(&member.home.address(), &format!("127.0.0.1:{port}")),
        None => text,
    };
    STANDARD.encode(text)
}

/// Status and reason of a condition.
pub(super) fn condition(cluster: &Value, kind: &str) -> (String, String) {
    let conditions = cluster["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let found = conditions
        .into_iter()
        .find(|one| one["type"] == kind)
        .unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or("").to_owned();
    (text("status"), text("reason"))
}

/// The types of a member, and what their sync does.
pub(super) fn sync_conditions(cluster: &Value) -> Vec<(String, String)> {
    let groups = cluster["status"]["syncResources"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut all = Vec::new();
    for group in &groups {
        for resource in group["resources"].as_array().into_iter().flatten() {
            let condition = &resource["syncConditions"][0];
            let name = resource["name"].as_str().unwrap_or("").to_owned();
            all.push((name, condition["status"].as_str().unwrap_or("").to_owned()));
        }
    }
    all
}

/// Cluster, namespace and name of the items of a list.
pub(super) fn places(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let place = |item: &Value| {
        let metadata = &item["metadata"];
        let cluster = &metadata["annotations"]["shadow.clusterpedia.io/cluster-name"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        format!(
            "{}/{}/{}",
            text(cluster),
            text(&metadata["namespace"]),
            text(&metadata["name"])
        )
    };
    items.iter().map(place).collect()
}

/// A Deployment in YAML.
pub(super) fn deployment(name: &str, replicas: u32) -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    })
    .to_string()
}
