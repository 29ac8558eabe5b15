//! The official Python client, and an operator written with kopf: the suites in tests/python.

use crate::process::run;
use crate::server::Home;
use crate::tools;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

/// Runs pytest on a server of its own.
fn pytest(name: &str, arguments: &[&str]) {
    let Some(python) = tools::python() else {
        return;
    };
    let home = Home::new();
    let _server = home.serve();
    let output = run(
        Command::new(python)
            .args(["-B", "-m", "pytest", "-p", "no:cacheprovider", "--quiet"])
            .args(arguments)
            .current_dir(tools::workspace().join("tests/python"))
            .env("KUBECONFIG", home.kubeconfig())
            .env("HOME", home.path()),
        "",
        Duration::from_secs(300),
    );
    assert!(output.status.success(), "{}", output.all());
    // Past the harness, which keeps what tests that pass have printed: scripts/test.sh shows the count.
    let count = output.stdout.lines().last().unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "pytest of {name}: {count}");
}

#[test]
fn the_python_client_gets_its_way() {
    pytest("the client", &["--ignore=test_kopf.py"]);
}

#[test]
fn an_operator_written_with_kopf_gets_its_way() {
    pytest("kopf", &["test_kopf.py"]);
}
