//! Paths of the test vectors and the workspace.

pub(crate) use bareboat_vectors::folder;
use std::path::PathBuf;

/// Returns the root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
