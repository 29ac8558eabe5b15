//! Test data that lives beside the repository: where it is, if it is there.

use std::path::PathBuf;

/// A folder of test vectors, or nothing where they are absent.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("BAREBOAT_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    );
    let path = root.join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no vectors in {}", path.display());
    None
}
