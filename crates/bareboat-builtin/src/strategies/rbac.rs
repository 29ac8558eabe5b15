//! Validates roles and role bindings.
//!
//! The authorizer checks for privilege escalation.

use super::Rules;
use super::check::{Errors, name, one_of, path, required};
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Object, Value, names};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns the strategy of Role: validation.
pub(crate) fn role() -> Rules {
    Rules::validating(|role, wrong| rules(role, true, wrong))
}

/// Returns the strategy of ClusterRole: validation of the rules and the aggregation rule.
pub(crate) fn cluster_role() -> Rules {
    Rules::validating(|role, wrong| {
        rules(role, false, wrong);
        if !role.value().has(&["aggregationRule"]) {
            return;
        }
        let place = path(&["aggregationRule", "clusterRoleSelectors"]);
        let selectors = role
            .value()
            .list(&["aggregationRule", "clusterRoleSelectors"]);
        if selectors.is_empty() {
            wrong.push(FieldError::required(
                place.clone(),
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            ));
        }
        for (index, selector) in selectors.iter().enumerate() {
            let complaints = validate_selector(selector, &place.index(index));
            if !complaints.is_empty() {
                let detail = "invalid label selector.";
                wrong.push(FieldError::invalid(place.index(index), Value::Null, detail));
            }
            wrong.extend(complaints);
        }
    })
}

/// Returns the strategy of RoleBinding: validation; `roleRef` is immutable.
pub(crate) fn role_binding() -> Rules {
    Rules::validating(|binding, wrong| {
        validate_binding(binding, &["Role", "ClusterRole"], true, wrong);
    })
    .updating(role_is_fixed)
}

/// Returns the strategy of ClusterRoleBinding: validation; `roleRef` is immutable.
pub(crate) fn cluster_role_binding() -> Rules {
    Rules::validating(|binding, wrong| {
        validate_binding(binding, &["ClusterRole"], false, wrong);
    })
    .updating(role_is_fixed)
}

fn role_is_fixed(new: &Object, old: &Object, wrong: &mut Errors) {
    if new.get("roleRef") != old.get("roleRef") {
        wrong.push(FieldError::invalid(
            path(&["roleRef"]),
            new.get("roleRef").cloned().unwrap_or_default(),
            "cannot change roleRef",
        ));
    }
}

fn rules(role: &Object, namespaced: bool, wrong: &mut Errors) {
    for (index, rule) in role.value().list(&["rules"]).iter().enumerate() {
        let place = path(&["rules"]).index(index);
        if rule.list(&["verbs"]).is_empty() {
            wrong.push(FieldError::required(
                place.child("verbs"),
                "verbs must contain at least one value",
            ));
        }
        let urls = rule.list(&["nonResourceURLs"]);
        if !urls.is_empty() {
            let mut complain = |detail: &str| {
                wrong.push(FieldError::invalid(
                    place.child("nonResourceURLs"),
                    urls.to_vec(),
                    detail,
                ));
            };
            if namespaced {
                complain("namespaced rules cannot apply to non-resource URLs");
            }
            let resources = ["apiGroups", "resources", "resourceNames"]
                .iter()
                .any(|member| !rule.list(&[member]).is_empty());
            if resources {
                complain("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if rule.list(&["apiGroups"]).is_empty() {
            wrong.push(FieldError::required(
                place.child("apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if rule.list(&["resources"]).is_empty() {
            wrong.push(FieldError::required(
                place.child("resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

fn validate_binding(binding: &Object, kinds: &[&str], namespaced: bool, wrong: &mut Errors) {
    let value = binding.value();
    let place = path(&["roleRef"]);
    one_of(
        value.text(&["roleRef", "apiGroup"]),
        &[GROUP],
        place.child("apiGroup"),
        wrong,
    );
    one_of(
        value.text(&["roleRef", "kind"]),
        kinds,
        place.child("kind"),
        wrong,
    );
    let role = value.text(&["roleRef", "name"]);
    if required(role, place.child("name"), wrong) {
        name(role, names::path_segment, place.child("name"), wrong);
    }
    for (index, entry) in value.list(&["subjects"]).iter().enumerate() {
        subject(entry, namespaced, &path(&["subjects"]).index(index), wrong);
    }
}

fn subject(subject: &Value, namespaced: bool, place: &FieldPath, wrong: &mut Errors) {
    let text = subject.text(&["name"]);
    required(text, place.child("name"), wrong);
    let group = subject.text(&["apiGroup"]);
    match subject.text(&["kind"]) {
        "ServiceAccount" => {
            if !text.is_empty() {
                name(text, names::dns1123_subdomain, place.child("name"), wrong);
            }
            if !group.is_empty() {
                one_of(group, &[""], place.child("apiGroup"), wrong);
            }
            if !namespaced && subject.text(&["namespace"]).is_empty() {
                wrong.push(FieldError::required(place.child("namespace"), ""));
            }
        }
        "User" | "Group" => one_of(group, &[GROUP], place.child("apiGroup"), wrong),
        other => one_of(
            other,
            &["ServiceAccount", "User", "Group"],
            place.child("kind"),
            wrong,
        ),
    }
}
