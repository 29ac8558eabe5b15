//! The approval annotation, which groups of the Kubernetes community require.

use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, field::go_quote};

/// The annotation with the URL of the review, or `unapproved` and a reason.
pub const ANNOTATION: &str = "api-approved.kubernetes.io";

/// The state of the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// Returns whether a group belongs to the community.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Returns the state of the approval, and a message.
pub(super) fn state(crd: &Value) -> (Approval, String) {
    let text = crd
        .at(&["metadata", "annotations", ANNOTATION])
        .and_then(Value::as_str)
        .unwrap_or("");
    let name = go_quote(ANNOTATION);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    if text.is_empty() {
        let words = format!("protected groups must have approval annotation {name}, {see}");
        return (Approval::Missing, words);
    }
    if text.starts_with("unapproved") {
        return (
            Approval::Bypassed,
            format!("not approved: {}", go_quote(text)),
        );
    }
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        !scheme.is_empty() && !host.is_empty()
    });
    if is_url && crate::format::is_uri(text) {
        return (Approval::Approved, format!("approved in {text}"));
    }
    let words = format!(
        "protected groups must have approval annotation {name} with either a URL or a reason \
         starting with \"unapproved\", {see}"
    );
    (Approval::Invalid, words)
}

/// Checks the annotation of a new definition; an update may not make it worse.
pub(super) fn check(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let group = new.at(&["spec", "group"]).and_then(Value::as_str);
    if !group.is_some_and(is_protected) {
        return;
    }
    let (approval, reason) = state(new);
    if old.is_some_and(|old| state(old).0 == approval) {
        return;
    }
    let path = FieldPath::new("metadata.annotations").key(ANNOTATION);
    match approval {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => errors.push(FieldError::required(path, reason)),
        Approval::Invalid => {
            let value = new.at(&["metadata", "annotations", ANNOTATION]);
            let value = value.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(path, value, reason));
        }
    }
}
