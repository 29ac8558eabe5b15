//! The official Python client, and an operator written with kopf: the suites in tests/python.

use crate::process::run;
use crate::server::Home;
use crate::tools;
use std::path::Path;
use std::process::Command;

/// Runs pytest with its own server.
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
    );
    assert!(output.status.success(), "{}", output.all());
    // The harness hides the output of passing tests: scripts/test.sh finds the count here.
    if let Some(notes) = std::env::var_os("BAREBOAT_TEST_NOTES") {
        let count = output.stdout.lines().last().unwrap_or_default();
        std::fs::write(Path::new(&notes).join(name), count).unwrap();
    }
}

#[test]
fn the_python_client_works() {
    pytest("python", &["--ignore=test_kopf.py"]);
}

#[test]
fn an_operator_written_with_kopf_works() {
    pytest("kopf", &["test_kopf.py"]);
}
