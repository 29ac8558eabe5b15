//! The official Python client: the suite in tests/python.

use crate::process::run;
use crate::server::Home;
use crate::tools;
use std::process::Command;
use std::time::Duration;

#[test]
fn the_python_suite_passes() {
    let Some(python) = tools::python() else {
        return;
    };
    let home = Home::new();
    let _server = home.serve();
    let output = run(
        Command::new(python)
            .args(["-B", "-m", "pytest", "-p", "no:cacheprovider", "--quiet"])
            .arg(tools::workspace().join("tests/python"))
            .env("KUBECONFIG", home.kubeconfig())
            .env("HOME", home.path()),
        "",
        Duration::from_secs(200),
    );
    assert!(output.status.success(), "{}", output.all());
    println!("{}", output.stdout.lines().last().unwrap_or_default());
}
