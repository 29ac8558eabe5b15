//! Where the real clients are, and what happens when one is missing: with `CI=true` its tests
//! fail, elsewhere they say that they were skipped and pass.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// kubectl: the one beside the peers, else one of `PATH`.
pub(crate) fn kubectl() -> Option<PathBuf> {
    let own = peers().join("kubectl");
    if own.is_file() {
        return Some(own);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join("kubectl"))
        .find(|file| file.is_file());
    found.or_else(|| missing("kubectl is neither in BAREBOAT_PEERS nor in PATH"))
}

/// One of the programs that `scripts/peers.sh` builds.
pub(crate) fn peer(name: &str) -> Option<PathBuf> {
    let program = peers().join(name);
    if program.is_file() {
        return Some(program);
    }
    missing(&format!("scripts/peers.sh has not built {name}"))
}

/// A Python with the packages of tests/python: `BAREBOAT_PYTHON`, else what `scripts/python.sh`
/// set up.
pub(crate) fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("BAREBOAT_PYTHON") {
        return Some(PathBuf::from(python));
    }
    let environment = workspace().join(".cache/python");
    // The stamp comes last, when all packages are there.
    if environment.join(".stamp").is_file() {
        return Some(environment.join("bin/python"));
    }
    missing("scripts/python.sh --setup has not made a Python environment")
}

/// Whether a script has set up its environment under `.cache`.
pub(crate) fn prepared(environment: &str, script: &str) -> bool {
    // The stamp comes last, when everything is there.
    let stamp = workspace().join(".cache").join(environment).join(".stamp");
    stamp.is_file() || missing(&format!("{script} --setup has not run")).is_some()
}

/// A folder of the published test vectors. They are nothing a script could fetch, so not even CI
/// insists on them.
pub(crate) fn vectors(folder: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("BAREBOAT_VECTORS") {
        Some(root) => PathBuf::from(root),
        None => workspace().join("../shared/vectors"),
    };
    let found = root.join(folder);
    if found.is_dir() {
        return Some(found);
    }
    println!("skipped: BAREBOAT_VECTORS names no folder with {folder}");
    None
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
