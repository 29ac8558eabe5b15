//! client-go and controller-runtime: every typed call in protobuf, leader election with its events, many writers of one
//! object, a whole manager, and the library that Flux applies with.

use crate::kubectl::Kubectl;
use crate::process::{Followed, run};
use crate::server::{Home, bareboat};
use crate::tools;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs one of the peers to its end and returns the JSON lines it printed.
fn peers(home: &Home, arguments: &[&str]) -> Option<Vec<Value>> {
    peers_as(&home.kubeconfig(), arguments)
}

/// The same with another kubeconfig.
fn peers_as(kubeconfig: &Path, arguments: &[&str]) -> Option<Vec<Value>> {
    let program = tools::peer("peers")?;
    let output = run(
        Command::new(program)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig),
        "",
    );
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let unhappy: Vec<_> = lines.iter().filter(|line| line["ok"] == false).collect();
    assert!(
        unhappy.is_empty() && output.status.success(),
        "{arguments:?}: {unhappy:#?}\n{}",
        output.all()
    );
    Some(lines)
}

#[test]
fn the_typed_client_works_with_every_kind_in_protobuf() {
    let home = Home::new();
    let _server = home.serve();
    if let Some(steps) = peers(&home, &["typed"]) {
        assert_eq!(steps.last().unwrap()["step"], "protobuf");
        assert!(steps.len() > 20, "{} steps", steps.len());
    }
}

#[test]
fn many_writers_of_one_object_lose_no_update() {
    let home = Home::new();
    let _server = home.serve();
    let arguments = ["stress", "--writers", "12", "--increments", "15"];
    if let Some(lines) = peers(&home, &arguments) {
        let result = lines.last().unwrap();
        assert_eq!(result["counter"], 180, "{result}");
        assert_eq!(result["lost"], 0, "{result}");
    }
}

#[test]
fn a_manager_of_controller_runtime_reconciles_and_its_objects_are_collected() {
    let home = Home::new();
    let _server = home.serve();
    peers(&home, &["manager", "--gc-within", "2m"]);
}

/// The rights that the markers of such a project name, and those of its test environment.
const MANAGER: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, create, update, delete]}
- {apiGroups: [''], resources: [namespaces], verbs: [get]}
- {apiGroups: [manager.bareboat.example], resources: [greetings], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [manager.bareboat.example], resources: [greetings/status], verbs: [get, update, patch]}
- {apiGroups: [manager.bareboat.example], resources: [greetings/finalizers], verbs: [update]}
- {apiGroups: [''], resources: [configmaps, secrets], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: ['', events.k8s.io], resources: [events], verbs: [create, patch, list]}
";

/// Owner references need the right to the finalizers of their owners, which the project asks for.
#[test]
fn a_manager_needs_only_the_rights_of_its_markers() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create serviceaccount manager");
    kubectl.gives_for("create -f -", MANAGER);
    kubectl.gives(
        "create clusterrolebinding manager --clusterrole=manager --serviceaccount=default:manager",
    );
    let config = kubectl.home.path().join("manager.kubeconfig");
    let mut create = bareboat(["kubeconfig", "create", "--service-account=default/manager"]);
    create.arg("--data-dir").arg(kubectl.home.data());
    let output = run(create.arg("--save").arg(&config), "");
    assert!(output.status.success(), "{}", output.all());
    peers_as(&config, &["manager", "--gc-within", "2m"]);
}

#[test]
fn webhooks_of_a_kubebuilder_program_default_validate_and_convert() {
    let home = Home::new();
    let _server = home.serve();
    if let Some(steps) = peers(&home, &["webhooks"]) {
        assert_eq!(steps.last().unwrap()["step"], "kept");
        assert_eq!(steps.len(), 7);
    }
}

#[test]
fn flux_applies_finds_drift_takes_over_and_prunes() {
    let home = Home::new();
    let _server = home.serve();
    peers(&home, &["flux"]);
}

#[test]
fn one_candidate_leads_at_a_time_and_the_next_takes_over() {
    let Some(program) = tools::peer("peers") else {
        return;
    };
    let home = Home::new();
    let _server = home.serve();
    let candidate = |name: &str| {
        let mut command = Command::new(&program);
        command
            .args(["leaderelect", "--identity", name, "--for", "10m"])
            // Long enough that a busy machine does not make a leader lose it.
            .args(["--lease", "30s", "--kubeconfig"])
            .arg(home.kubeconfig());
        Followed::start(name, &mut command)
    };
    // There is no leader for a moment between two leaders; a candidate may or may not report that.
    let next = |who: &mut Followed| loop {
        let line = who.json();
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let said = (text("type"), text("identity"));
        if said != ("LEADER".to_owned(), String::new()) {
            return said;
        }
    };
    // Two threads of the candidate print these, in any order.
    let leads = |who: &mut Followed, name: &str| {
        let mut said: Vec<_> = (0..3)
            .map(|_| {
                let (kind, identity) = next(who);
                assert_eq!(identity, name, "{kind}");
                kind
            })
            .collect();
        said.sort();
        assert_eq!(said, ["EVENT", "LEADER", "LEADING"]);
    };
    let mut first = candidate("first");
    leads(&mut first, "first");
    let mut second = candidate("second");
    assert_eq!(next(&mut second), ("LEADER".to_owned(), "first".to_owned()));
    let rest = first.stop();
    assert!(
        rest.iter().any(|line| line.contains("STOPPED")),
        "the first steps down: {rest:?}"
    );
    leads(&mut second, "second");
    second.stop();
}
