//! JSON, merge and strategic patch; server-side apply and managed fields.

pub mod apply;
pub mod fields;
pub mod json_patch;
pub mod managed;
mod merge_patch;
pub mod strategic;
#[cfg(test)]
mod testing;
pub mod typed;

pub use merge_patch::merge_patch;
pub use strategic::{StrategicError, strategic_merge};

/// The folder of published test vectors of that name, if it is there.
#[cfg(test)]
fn test_vectors(name: &str) -> Option<std::path::PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors");
    let root = std::env::var("BAREBOAT_VECTORS").unwrap_or_else(|_| default.into());
    let folder = std::path::Path::new(&root).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("no test vectors at {}: skipped", folder.display());
    None
}
#[cfg(test)]
mod perftest;
