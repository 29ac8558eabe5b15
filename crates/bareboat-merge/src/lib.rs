//! Changing objects: JSON, merge and strategic patch; server-side apply and managed fields.
//!
//! Pure functions over [`Value`](bareboat_api::Value) and the types of
//! [`bareboat_api::typing`]: no HTTP, no clock, no storage. What the caller does around them
//! (decoding, defaulting, validation, the compare-and-swap loop) stays with the caller.
//!
//! | a request brings | call | and on failure answer |
//! |---|---|---|
//! | `application/json-patch+json` | [`json_patch::JsonPatch::parse`], then `apply` | 400 (413 for too many operations); 422 |
//! | `application/merge-patch+json` | [`merge_patch`] | (never fails) |
//! | `application/strategic-merge-patch+json` | [`strategic_merge`] | by [`StrategicError`] |
//! | `application/apply-patch+yaml` | [`apply::FieldManager::apply`] | by [`apply::ApplyError`] |
//! | anything that writes, after it is patched and defaulted | [`apply::FieldManager::update`] | |
//!
//! Around them: [`managed::keep_times`] makes a write that changes nothing compare equal,
//! [`managed::validate_managed_fields`] checks what webhooks left, and [`managed::scale`] carries
//! ownership between an object and its scale subresource.
//!
//! ```
//! use bareboat_api::value;
//! use bareboat_merge::{json_patch::JsonPatch, merge_patch};
//!
//! let mut object = value!({"spec": {"replicas": 1, "paused": true}});
//! merge_patch(&mut object, value!({"spec": {"replicas": 2, "paused": null}}));
//! let patch = JsonPatch::parse(value!([{"op": "test", "path": "/spec/replicas", "value": 2}]))?;
//! patch.apply(&mut object)?;
//! assert_eq!(object, value!({"spec": {"replicas": 2}}));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod apply;
pub mod fields;
pub mod json_patch;
pub mod managed;
pub mod typed;

mod bulk;
mod merge_patch;
mod strategic;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

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
