//! Where the test vectors are: `BAREBOAT_VECTORS`, else `../shared/vectors` beside the workspace.

use std::path::PathBuf;

/// A folder of vectors; says so and gives nothing where it is absent.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("BAREBOAT_VECTORS") {
        Some(root) => PathBuf::from(root),
        None => workspace().join("../shared/vectors"),
    };
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!(
        "no vectors in {}: set BAREBOAT_VECTORS to their folder; nothing was tested",
        folder.display()
    );
    None
}

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
