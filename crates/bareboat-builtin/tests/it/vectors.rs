//! Finds the vectors and reads them.

use bareboat_api::Value;
use std::path::{Path, PathBuf};

/// A folder of vectors, or nothing (with a word about it) where there are none.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("BAREBOAT_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("no vectors at {}: nothing to compare", folder.display());
    None
}

/// The files of a folder with an extension, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// A JSON file as a value.
pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
