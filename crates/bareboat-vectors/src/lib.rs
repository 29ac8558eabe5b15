//! Where tests find published test vectors: the folder `BAREBOAT_VECTORS`, else `../shared/vectors` beside the workspace.
//!
//! What is in them, and how it is read, is left to the tests of each crate.

use std::path::{Path, PathBuf};

/// A folder of vectors, such as `rbac`. Where it is missing this prints a line and returns nothing.
///
/// # Panics
///
/// With `CI=true` a missing folder is a failure: a test that compares nothing must not pass there.
pub fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("BAREBOAT_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    let why = format!(
        "no test vectors in {}: set BAREBOAT_VECTORS to their folder",
        folder.display()
    );
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    println!("left out: {why}");
    None
}
