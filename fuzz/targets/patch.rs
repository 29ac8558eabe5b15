//! Any JSON as a patch of any kind and as the Deployment it changes: `{"patch": …, "object": …}`.

#![no_main]

use bareboat_api::kind::Kind;
use bareboat_builtin::kinds;
use bareboat_merge::json_patch::JsonPatch;
use bareboat_merge::{merge_patch, strategic_merge};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static DEPLOYMENTS: LazyLock<Kind> = LazyLock::new(|| {
    let mut all = kinds::all().into_iter();
    let wanted = |kind: &Kind| (&*kind.group, &*kind.names.plural) == ("apps", "deployments");
    all.find(wanted).expect("deployments are built in")
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(parsed) = bareboat_wire::json::parse(bytes) else {
        return;
    };
    let part = |name: &str| parsed.value.get(name).cloned().unwrap_or_default();
    let (patch, object) = (part("patch"), part("object"));
    if let Ok(patch) = JsonPatch::parse(patch.clone()) {
        let _ = patch.apply(&mut object.clone());
    }
    let mut merged = object.clone();
    merge_patch(&mut merged, patch.clone());
    let once = merged.clone();
    merge_patch(&mut merged, patch.clone());
    assert_eq!(merged, once, "merging twice changes nothing");
    let typing = DEPLOYMENTS.versions[0].shape.typing();
    let _ = strategic_merge(&mut object.clone(), patch, &*typing);
});
