//! kubectl, an informer of client-go and kube-controller-manager against three servers behind a plain TCP balancer,
//! which sends each connection to the next server.

use crate::database::Database;
use crate::fleet::Fleet;
use crate::process::{Followed, eventually, run};
use crate::server::bareboat;
use crate::tools;
use bareboat_rig::balancer::balance;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Clients of the balancer.
struct Clients {
    folder: tempfile::TempDir,
    kubectl: PathBuf,
    port: u16,
}

impl Clients {
    /// Writes a kubeconfig that leads to the balancer in place of one server.
    fn lead(&self, from: &Path, name: &str) -> PathBuf {
        let text = std::fs::read_to_string(from).unwrap();
        let lines = text.lines().map(|line| match line.split_once("server: ") {
            Some((indent, _)) => format!("{indent}server: https://127.0.0.1:{}", self.port),
            None => line.to_owned(),
        });
        let path = self.folder.path().join(name);
        std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
        path
    }

    /// Runs kubectl; returns what it prints.
    fn kubectl(&self, line: &str) -> String {
        let mut command = Command::new(&self.kubectl);
        command
            .args(line.split(' '))
            .arg("--kubeconfig")
            .arg(self.folder.path().join("admin"))
            .env("HOME", self.folder.path());
        let output = run(&mut command, "");
        assert!(output.status.success(), "{line}: {}", output.all());
        output.stdout
    }
}

#[test]
fn clients_behind_a_balancer_see_one_server() {
    let (Some(kubectl), Some(peers), Some(manager)) = (
        tools::kubectl(),
        tools::peer("peers"),
        tools::peer("kube-controller-manager"),
    ) else {
        return;
    };
    let Some(database) = Database::postgres() else {
        return;
    };
    let fleet = Fleet::start(&database, 3, &[]);
    let ports = fleet.replicas.iter().map(|replica| replica.home.port());
    let clients = Clients {
        folder: tempfile::tempdir().unwrap(),
        kubectl,
        port: balance(ports.collect()),
    };
    let home = &fleet.replicas[0].home;
    let admin = clients.lead(&home.kubeconfig(), "admin");

    let mut informer = Command::new(peers);
    informer
        .args("informer --resource v1/configmaps --mode typed --namespace default".split(' '))
        .args("--for 0 --sync-within 5m --kubeconfig".split(' '))
        .arg(&admin);
    let mut informer = Followed::start("informer", &mut informer);
    while informer.json()["type"] != "SYNCED" {}

    let direct = clients.folder.path().join("manager-direct");
    let mut create = bareboat(["kubeconfig", "create", "system:kube-controller-manager"]);
    create
        .arg("--data-dir")
        .arg(home.data())
        .arg("--save")
        .arg(&direct);
    let created = run(&mut create, "");
    assert!(created.status.success(), "{}", created.all());
    let mut command = Command::new(manager);
    command
        .arg("--kubeconfig")
        .arg(clients.lead(&direct, "manager"))
        .args([
            "--controllers=deployment-controller,replicaset-controller",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=true",
        ]);
    let _manager = Followed::start("kube-controller-manager", &mut command);

    // Every kubectl has a connection of its own, so another server. What one made, the next one finds.
    for n in 0..8 {
        clients.kubectl(&format!("create configmap m-{n} --from-literal=n={n}"));
        let found = clients.kubectl(&format!("get configmap m-{n} -o name"));
        assert_eq!(found.trim(), format!("configmap/m-{n}"));
        if n == 4 {
            fleet.replicas[1].crash();
        }
    }
    clients.kubectl("create deployment web --image=nginx:1 --replicas=3");
    let pods = |wanted: usize| {
        eventually("that many pods", || {
            let names = clients.kubectl("get pods -l app=web -o name");
            (names.lines().count() == wanted).then_some(())
        });
    };
    pods(3);
    fleet.replicas[2].restart();
    clients.kubectl("scale deployment web --replicas=5");
    pods(5);
    clients.kubectl("delete deployment web --cascade=foreground --timeout=240s");
    assert_eq!(clients.kubectl("get rs,pods -o name"), "");

    // Each object was reported, and none twice.
    let mut seen = BTreeSet::new();
    while seen.len() < 8 {
        let line = informer.json();
        let name = line["name"].as_str().unwrap_or_default();
        if line["type"] == "ADDED" && name.starts_with("m-") {
            assert!(seen.insert(name.to_owned()), "{line}");
        }
    }
    informer.stop();
}
