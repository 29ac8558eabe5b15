//! Test suites in other languages: runs a process against a server, which the suite may restart.

use crate::process::{Output, run};
use crate::server::Home;
use crate::tools;
use std::path::Path;
use std::process::Command;
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Runs a script of `scripts/` against its own server and returns its output. When the suite creates the file named by
/// `BAREBOAT_RESTART`, the server is killed and started again on the same data, and the file is deleted.
pub(crate) fn run_script(script: &str, arguments: &[&str]) -> Output {
    let home = Home::new();
    let request = home.path().join("restart");
    let mut server = Some(home.serve());
    let mut command = Command::new(tools::workspace().join("scripts").join(script));
    command
        .args(arguments)
        .env("KUBECONFIG", home.kubeconfig())
        .env("BAREBOAT_RESTART", &request)
        .env("HOME", home.path());
    let suite = spawn(move || run(&mut command, ""));
    while !suite.is_finished() {
        if request.exists() {
            if let Some(running) = server.take() {
                running.kill();
            }
            server = Some(home.serve());
            std::fs::remove_file(&request).unwrap();
        }
        sleep(Duration::from_millis(20));
    }
    let output = suite.join().expect("the suite ends in time");
    assert!(output.status.success(), "{}", output.all());
    output
}

/// Records a remark for the table of scripts/test.sh. The harness hides the output of passing tests, so it goes into a
/// file.
pub(crate) fn remark(name: &str, text: &str) {
    if let Some(notes) = std::env::var_os("BAREBOAT_TEST_NOTES") {
        std::fs::write(Path::new(&notes).join(name), text).unwrap();
    }
}
