//! client-go and controller-runtime: every typed call in protobuf, leader election with its events,
//! many writers of one object, a whole manager, and the library that Flux applies with.

use crate::process::{Followed, run};
use crate::server::Home;
use crate::tools;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(150);

/// Runs one of the peers to its end and gives the JSON lines it printed.
fn peers(home: &Home, arguments: &[&str]) -> Option<Vec<Value>> {
    let program = tools::peer("peers")?;
    let output = run(
        Command::new(program)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(home.kubeconfig()),
        "",
        PATIENCE,
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
fn the_typed_client_gets_its_way_with_every_kind_in_protobuf() {
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
    peers(&home, &["manager", "--gc-within", "30s"]);
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
            .args(["leaderelect", "--identity", name, "--for", "60s"])
            .args(["--lease", "3s", "--kubeconfig"])
            .arg(home.kubeconfig());
        Followed::start(name, &mut command)
    };
    let next = |who: &mut Followed, wanted: &str| {
        let line = who.json(Duration::from_secs(30));
        let said = format!(
            "{} {}",
            line["type"].as_str().unwrap_or_default(),
            line["identity"].as_str().unwrap_or_default()
        );
        assert_eq!(said, wanted);
    };
    // Two threads of the candidate print these; their order is its own.
    let leads = |who: &mut Followed, name: &str| {
        let mut said: Vec<_> = (0..3)
            .map(|_| {
                let line = who.json(Duration::from_secs(30));
                assert_eq!(line["identity"], name, "{line}");
                line["type"].as_str().unwrap_or_default().to_owned()
            })
            .collect();
        said.sort();
        assert_eq!(said, ["EVENT", "LEADER", "LEADING"]);
    };
    let mut first = candidate("first");
    leads(&mut first, "first");
    let mut second = candidate("second");
    next(&mut second, "LEADER first");
    let rest = first.stop();
    assert!(
        rest.iter().any(|line| line.contains("STOPPED")),
        "the first steps down: {rest:?}"
    );
    leads(&mut second, "second");
    second.stop();
}
