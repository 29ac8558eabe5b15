//! Runs pages, good and bad ones.
#![allow(clippy::unwrap_used)]

use bareboat_sessions::{Failure, Session};

/// Runs a page that must fail.
fn failure(page: &str) -> Failure {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.md");
    std::fs::write(&file, page).unwrap();
    Session::new(file).try_run().expect_err("the page is wrong")
}

#[test]
fn a_page_is_run_with_all_its_blocks() {
    let report = Session::new("tests/pages/good.md")
        .program("printer", "/bin/echo")
        .port(7777)
        .run();
    assert_eq!(report.ran, 7);
    assert_eq!(report.skipped.len(), 1);
    assert_eq!(report.skipped[0].reason, "needs a moon");
}

#[test]
fn a_failure_names_line_commands_and_output() {
    let failure = failure("\n```bash\necho seen\nfalse\ntrue\n```\n").to_string();
    assert!(
        failure.contains("page.md:2: a command failed with 1"),
        "{failure}"
    );
    assert!(failure.contains("--- output\nseen"), "{failure}");
}

#[test]
fn other_output_and_missing_failures_are_found() {
    let other = failure("```bash\necho a\n```\n```text\nb\n```\n");
    assert!(other.what.contains("--- expected\nb"), "{other}");
    assert!(
        failure("```bash fails\ntrue\n```\n")
            .what
            .contains("must fail")
    );
    assert!(
        failure("```bash\nexit 0\n```\n")
            .what
            .contains("ended the shell")
    );
}

#[test]
fn a_program_must_end_cleanly() {
    let page = "```bash background\ntrap 'exit 3' INT; echo up; while :; do sleep 0.1; done\n```\n```text\nup\n```\n";
    let failure = failure(page).to_string();
    assert!(failure.contains("did not end cleanly"), "{failure}");
}
