//! Changes of objects: JSON, merge and strategic patch; server-side apply and managed fields.
//!
//! Pure functions over [`Value`](bareboat_api::Value) and the types of [`bareboat_api::typing`]: no
//! HTTP, no clock, no storage. The caller does the rest: decoding, defaulting, validation and the
//! compare-and-swap loop.
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
