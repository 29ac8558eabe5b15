//! Audit annotations about webhooks: which were called, what they changed, which calls failed and were ignored.

use super::hook::Hook;
use bareboat_api::Value;
use bareboat_api::value::write_string;

/// Returns the annotation of a call: whether the webhook changed the object.
pub(super) fn mutation(hook: &Hook, round: usize, place: usize, mutated: bool) -> (String, String) {
    let key = format!("mutation.webhook.admission.k8s.io/round_{round}_index_{place}");
    let mut out = begin(hook);
    out.extend_from_slice(br#","mutated":"#);
    out.extend_from_slice(if mutated { b"true" } else { b"false" });
    (key, end(out))
}

/// Returns the annotation with the patch of a webhook, which levels below Request do not record.
pub(super) fn patch(hook: &Hook, round: usize, place: usize, patch: &Value) -> (String, String) {
    let key = format!("patch.webhook.admission.k8s.io/round_{round}_index_{place}");
    let mut out = begin(hook);
    out.extend_from_slice(br#","patch":"#);
    patch.write_json(&mut out);
    out.extend_from_slice(br#","patchType":"JSONPatch""#);
    (key, end(out))
}

/// Returns the annotation of a failed call that was ignored; `step` is `mutation` or `validating`.
pub(super) fn failed_open(hook: &Hook, step: &str, round: usize, place: usize) -> (String, String) {
    let key = format!("failed-open.{step}.webhook.admission.k8s.io/round_{round}_index_{place}");
    (key, hook.name.to_string())
}

fn begin(hook: &Hook) -> Vec<u8> {
    let mut out = br#"{"configuration":"#.to_vec();
    write_string(&hook.configuration, &mut out);
    out.extend_from_slice(br#","webhook":"#);
    write_string(&hook.name, &mut out);
    out
}

fn end(mut out: Vec<u8>) -> String {
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}
