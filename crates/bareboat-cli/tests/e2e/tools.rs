//! Finds the real clients. If one is missing, its tests fail with `CI=true`; otherwise they print that they were
//! skipped, and pass.

use std::path::{Path, PathBuf};

/// Returns the root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns kubectl: the one beside the peers, or else the one in `PATH`.
pub(crate) fn kubectl() -> Option<PathBuf> {
    let own = peers().join("kubectl");
    if own.is_file() {
        return Some(own);
    }
    in_path("kubectl").or_else(|| missing("kubectl is neither in BAREBOAT_PEERS nor in PATH"))
}

/// Returns promtool: the one of `scripts/promtool.sh`, or else the one in `PATH`.
pub(crate) fn promtool() -> Option<PathBuf> {
    let own = workspace().join(".cache/promtool/promtool");
    if own.is_file() {
        return Some(own);
    }
    in_path("promtool").or_else(|| missing("scripts/promtool.sh has not fetched promtool"))
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Returns one of the programs that `scripts/peers.sh` builds.
pub(crate) fn peer(name: &str) -> Option<PathBuf> {
    let program = peers().join(name);
    if program.is_file() {
        return Some(program);
    }
    missing(&format!("scripts/peers.sh has not built {name}"))
}

/// Returns a Python with the packages of tests/python: `BAREBOAT_PYTHON`, or else the one of `scripts/python.sh`.
pub(crate) fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("BAREBOAT_PYTHON") {
        return Some(PathBuf::from(python));
    }
    let environment = workspace().join(".cache/python");
    // The stamp is written last, when all packages are installed.
    if environment.join(".stamp").is_file() {
        return Some(environment.join("bin/python"));
    }
    missing("scripts/python.sh --setup has not made a Python environment")
}

/// Returns whether a script has set up its environment under `.cache`.
pub(crate) fn prepared(environment: &str, script: &str) -> bool {
    // The stamp is written last, when everything is installed.
    let stamp = workspace().join(".cache").join(environment).join(".stamp");
    stamp.is_file() || missing(&format!("{script} --setup has not run")).is_some()
}

fn peers() -> PathBuf {
    match std::env::var_os("BAREBOAT_PEERS") {
        Some(peers) => PathBuf::from(peers),
        None => workspace().join(".cache/peers"),
    }
}

fn missing(why: &str) -> Option<PathBuf> {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "in CI every client is needed: {why}"
    );
    println!("skipped: {why}");
    None
}
