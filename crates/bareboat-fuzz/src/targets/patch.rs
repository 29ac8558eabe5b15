//! Any JSON as an object and a patch of every type: `{"object": …, "patch": …}`.

use bareboat_api::Value;
use bareboat_builtin::facts;
use bareboat_merge::json_patch::JsonPatch;
use bareboat_merge::{merge_patch, strategic_merge};
use bareboat_wire::json;

pub(crate) fn run(input: &[u8]) -> bool {
    let Ok(parsed) = json::parse(input) else {
        return false;
    };
    let part = |name: &str| parsed.value.get(name).cloned().unwrap_or_default();
    let (object, patch) = (part("object"), part("patch"));
    if patch.is_null() {
        return false;
    }
    let mut merged = object.clone();
    merge_patch(&mut merged, patch.clone());
    let once = merged.clone();
    merge_patch(&mut merged, patch.clone());
    assert_eq!(
        merged, once,
        "a merge patch that is applied twice changes nothing more"
    );

    let pod = facts::kind("", "v1", "Pod").expect("pods are known");
    let mut merged = object.clone();
    let strategic = strategic_merge(&mut merged, patch.clone(), pod.get());
    if strategic.is_ok() {
        super::text::same_again(&merged);
    }
    if let Ok(patch) = JsonPatch::parse(patch) {
        let mut patched = object;
        if patch.check_types().is_ok() && patch.apply(&mut patched).is_ok() {
            bounded(&patched, input.len());
        }
    }
    true
}

/// Copies in a patch multiply; what they make must stay within what a request may be.
fn bounded(value: &Value, input: usize) {
    let size = value.to_json().len();
    assert!(size <= 64 << 20, "{input} bytes made {size}");
}
