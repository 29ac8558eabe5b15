//! `bareboat new` and `bareboat add`, and the tests of the projects they make in Go and Python. Those in Rust are members of
//! the workspace and are tested with it; `bareboat-scaffold` compares `tests/scaffolds` with what is made now.

use crate::process::{Output, run};
use crate::server::bareboat;
use crate::tools;
use std::path::Path;
use std::process::Command;

fn in_folder(folder: &Path, arguments: &[&str]) -> Output {
    run(bareboat(arguments).current_dir(folder), "")
}

#[test]
fn a_project_is_made_and_extended() {
    let dir = tempfile::tempdir().unwrap();
    let new = [
        "new",
        "operator",
        "boats",
        "--kind",
        "Boat",
        "--group",
        "example.com",
    ];
    let made = in_folder(dir.path(), &new);
    assert!(made.status.success(), "{}", made.all());
    assert!(
        made.stdout.contains("next: cd boats && make test"),
        "{}",
        made.all()
    );
    let project = dir.path().join("boats");
    let manifest = std::fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("crates/bareboat\""), "{manifest}");
    assert!(
        project.join("Cargo.lock").is_file(),
        "the versions are those that were tested"
    );

    let again = in_folder(dir.path(), &new);
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stderr.contains("not empty"), "{}", again.all());

    let shown = in_folder(&project, &["add", "kind", "Crew", "--dry-run"]);
    assert!(shown.stdout.contains("+pub mod crew;"), "{}", shown.all());
    assert!(!project.join("src/crew.rs").exists(), "nothing is written");
    let added = in_folder(&project, &["add", "kind", "Crew"]);
    assert_eq!(added.stdout, shown.stdout);
    assert!(project.join("src/crew.rs").is_file(), "{}", added.all());
    let unclear = in_folder(&project, &["add", "version", "v2"]);
    assert!(
        unclear
            .stderr
            .contains("name one of Boat, Crew with --kind"),
        "{}",
        unclear.all()
    );
}

#[test]
fn mistakes_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (
            &[
                "new",
                "operator",
                "boats",
                "--kind",
                "boat",
                "--group",
                "example.com",
            ][..],
            "begins with a capital letter",
        ),
        (
            &[
                "new", "operator", "boats", "--kind", "Boat", "--group", "example",
            ],
            "a DNS name that you own",
        ),
        (
            &[
                "new",
                "operator",
                "../x",
                "--kind",
                "Boat",
                "--group",
                "example.com",
            ],
            "small letters, digits and dashes",
        ),
        (
            &[
                "new", "server", "x", "--kind", "Boat", "--group", "a.b", "--lang", "go",
            ],
            "leave out --lang",
        ),
        (
            &[
                "new", "operator", "x", "--kind", "Boat", "--group", "a.b", "--path", "/nowhere",
            ],
            "not a checkout",
        ),
        (&["add", "kind", "Boat"], "`bareboat new` makes one"),
    ] {
        let said = in_folder(dir.path(), arguments);
        assert_eq!(said.status.code(), Some(1), "{arguments:?}: {}", said.all());
        assert!(
            said.stderr.contains(wanted),
            "{arguments:?}: {}",
            said.all()
        );
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is written"
    );
}

/// Outside of the workspace: there a project has the features that its own manifest names, and no others.
#[test]
fn fresh_projects_in_rust_compile_by_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_bareboat"));
    let target = program.ancestors().nth(2).unwrap();
    for flavor in ["operator", "server", "webhook"] {
        let name = format!("fresh-{flavor}");
        let new = [
            "new",
            flavor,
            &name,
            "--kind",
            "SeaChart",
            "--group",
            "example.com",
        ];
        let made = in_folder(dir.path(), &new);
        assert!(made.status.success(), "{}", made.all());
        // The first time, it may take longer than other programs are given.
        let checked = Command::new(env!("CARGO"))
            .args(["check", "--quiet", "--offline"])
            .current_dir(dir.path().join(name))
            // Kept, so that dependencies are checked once.
            .env("CARGO_TARGET_DIR", target.join("fresh"))
            .env("RUSTFLAGS", "--deny warnings")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{flavor}: {said}");
    }
}

/// Runs the tests of a project in Go.
fn go_tests(project: &str) -> Option<Output> {
    // Where the real clients were built, there is Go with the modules of the project.
    tools::peer("peers")?;
    let output = run(
        Command::new("go")
            .args(["test", "./..."])
            .current_dir(tools::workspace().join("tests/scaffolds").join(project))
            // As the clients are built: compiled packages are shared.
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-trimpath -buildvcs=false -mod=readonly")
            .env("BAREBOAT", env!("CARGO_BIN_EXE_bareboat")),
        "",
    );
    assert!(output.status.success(), "{}", output.all());
    Some(output)
}

#[test]
fn the_project_in_go_passes_its_tests() {
    let Some(output) = go_tests("go-operator") else {
        return;
    };
    let tested = output.stdout.contains("internal/controller");
    assert!(tested, "{}", output.all());
}

#[test]
fn the_webhooks_in_go_pass_their_tests() {
    let Some(output) = go_tests("go-webhook") else {
        return;
    };
    let tested = output.stdout.contains("internal/webhook/v1");
    assert!(tested, "{}", output.all());
}

/// Runs the tests of a project in Python.
fn python_tests(project: &str) {
    let Some(python) = tools::python() else {
        return;
    };
    let output = run(
        Command::new(python)
            .args(["-B", "-m", "pytest", "-p", "no:cacheprovider", "--quiet"])
            .current_dir(tools::workspace().join("tests/scaffolds").join(project))
            .env("BAREBOAT", env!("CARGO_BIN_EXE_bareboat")),
        "",
    );
    assert!(output.status.success(), "{}", output.all());
}

#[test]
fn the_project_in_python_passes_its_tests() {
    python_tests("python-operator");
}

#[test]
fn the_webhooks_in_python_pass_their_tests() {
    python_tests("python-webhook");
}
