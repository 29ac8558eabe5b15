//! Finds what sessions need: clients, binaries of the workspace, free ports.

use std::path::{Path, PathBuf};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Returns the folder with clients that `scripts/peers.sh` built.
pub(crate) fn peers() -> PathBuf {
    let set = std::env::var_os("BAREBOAT_PEERS").map(PathBuf::from);
    set.unwrap_or_else(|| root().join(".cache/peers"))
}

/// Returns whether a program is among the peers or in PATH. With `CI=true` a missing program is a panic, otherwise a remark in the
/// output of the test, which should then return.
pub fn available(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain([peers()])
        .any(|folder| folder.join(program).is_file());
    if !found {
        let strict = std::env::var("CI").as_deref() == Ok("true");
        assert!(!strict, "{program} is needed for this test");
        println!("skipped: {program} is not installed");
    }
    found
}

/// Returns a binary of the workspace, such as `bareboat`, that was built with the running test; builds it if it is not there.
pub fn workspace_binary(package: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("tests are in target/PROFILE/deps");
    let binary = folder.join(name);
    if !binary.is_file() {
        let built = std::process::Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", package, "--bin", name])
            .current_dir(root())
            .status();
        let built = built.is_ok_and(|status| status.success());
        assert!(built && binary.is_file(), "{name} could not be built");
    }
    binary
}
