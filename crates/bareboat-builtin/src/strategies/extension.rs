//! Webhooks, admission policies and API services.
//!
//! Expressions are compiled by the server, which knows the variables they may use.

use super::Rules;
use super::check::{Errors, name, one_of, path, port, required, required_one_of};
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Object, Value, names, value};
use std::collections::HashSet;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// What webhook configurations do.
pub(crate) fn webhooks() -> Rules {
    Rules::validating(|object, wrong| {
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, hook) in object.value().list(&["webhooks"]).iter().enumerate() {
            let place = path(&["webhooks"]).index(index);
            webhook(hook, &place, wrong);
            let text = hook.text(&["name"]);
            if seen.contains(&text) {
                wrong.push(FieldError::duplicate(place.child("name"), text));
            }
            seen.insert(text);
        }
    })
}

fn webhook(hook: &Value, place: &FieldPath, wrong: &mut Errors) {
    let text = hook.text(&["name"]);
    if required(text, place.child("name"), wrong) {
        let complaints = names::dns1123_subdomain(text);
        if complaints.is_empty() && text.split('.').count() < 3 {
            wrong.push(FieldError::invalid(
                place.child("name"),
                text,
                "should be a domain with at least three segments separated by dots",
            ));
        }
        for complaint in complaints {
            wrong.push(FieldError::invalid(place.child("name"), text, complaint));
        }
    }
    review_versions(hook, &place.child("admissionReviewVersions"), wrong);
    for (index, rule) in hook.list(&["rules"]).iter().enumerate() {
        operations_rule(rule, &place.child("rules").index(index), wrong);
    }
    one_of(
        hook.text(&["failurePolicy"]),
        &["Fail", "Ignore"],
        place.child("failurePolicy"),
        wrong,
    );
    one_of(
        hook.text(&["matchPolicy"]),
        &["Equivalent", "Exact"],
        place.child("matchPolicy"),
        wrong,
    );
    required_one_of(
        hook.text(&["sideEffects"]),
        &["None", "NoneOnDryRun"],
        place.child("sideEffects"),
        wrong,
    );
    if let Some(seconds) = hook
        .int(&["timeoutSeconds"])
        .filter(|seconds| !(1..=30).contains(seconds))
    {
        wrong.push(FieldError::invalid(
            place.child("timeoutSeconds"),
            seconds,
            "the timeout value must be between 1 and 30 seconds",
        ));
    }
    selectors(hook, place, wrong);
    let policy = hook.text(&["reinvocationPolicy"]);
    if !policy.is_empty() {
        one_of(
            policy,
            &["IfNeeded", "Never"],
            place.child("reinvocationPolicy"),
            wrong,
        );
    }
    client_config(hook, &place.child("clientConfig"), wrong);
}

fn selectors(parent: &Value, place: &FieldPath, wrong: &mut Errors) {
    for member in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = parent.at(&[member]).filter(|value| !value.is_null()) {
            wrong.extend(validate_selector(selector, &place.child(member)));
        }
    }
}

fn review_versions(hook: &Value, place: &FieldPath, wrong: &mut Errors) {
    let versions = hook.list(&["admissionReviewVersions"]);
    if versions.is_empty() {
        wrong.push(FieldError::required(
            place.clone(),
            "must specify one of v1, v1beta1",
        ));
        return;
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let text = version.as_str().unwrap_or("");
        if !seen.insert(text) {
            wrong.push(FieldError::invalid(
                place.index(index),
                text,
                "duplicate version",
            ));
            continue;
        }
        name(text, names::dns1035_label, place.index(index), wrong);
    }
    let known = versions
        .iter()
        .any(|version| matches!(version.as_str(), Some("v1" | "v1beta1")));
    if !known {
        wrong.push(FieldError::invalid(
            place.clone(),
            versions.to_vec(),
            "must include at least one of v1, v1beta1",
        ));
    }
}

/// A rule: which operations on which resources.
fn operations_rule(rule: &Value, place: &FieldPath, wrong: &mut Errors) {
    let operations = rule.list(&["operations"]);
    if operations.is_empty() {
        wrong.push(FieldError::required(place.child("operations"), ""));
    }
    wildcard_alone(rule, "operations", "operations", place, wrong);
    for (index, operation) in operations.iter().enumerate() {
        one_of(
            operation.as_str().unwrap_or(""),
            &OPERATIONS,
            place.child("operations").index(index),
            wrong,
        );
    }
    for (member, called) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        if rule.list(&[member]).is_empty() {
            wrong.push(FieldError::required(place.child(member), ""));
        }
        wildcard_alone(rule, member, called, place, wrong);
    }
    if rule.list(&["resources"]).is_empty() {
        wrong.push(FieldError::required(place.child("resources"), ""));
    }
    if rule.has(&["scope"]) {
        one_of(
            rule.text(&["scope"]),
            &["*", "Cluster", "Namespaced"],
            place.child("scope"),
            wrong,
        );
    }
}

fn wildcard_alone(rule: &Value, member: &str, called: &str, place: &FieldPath, wrong: &mut Errors) {
    let given = rule.list(&[member]);
    if given.len() > 1 && given.iter().any(|entry| entry.as_str() == Some("*")) {
        wrong.push(FieldError::invalid(
            place.child(member),
            given.to_vec(),
            format!("if '*' is present, must not specify other {called}"),
        ));
    }
}

fn client_config(hook: &Value, place: &FieldPath, wrong: &mut Errors) {
    let url = hook.text(&["clientConfig", "url"]);
    let has_url = hook.has(&["clientConfig", "url"]);
    let has_service = hook.has(&["clientConfig", "service"]);
    if has_url == has_service {
        wrong.push(FieldError::required(
            place.clone(),
            "exactly one of url or service is required",
        ));
    } else if has_url {
        let rest = url.strip_prefix("https://");
        if rest.is_none() {
            wrong.push(FieldError::invalid(
                place.child("url"),
                url,
                "'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ));
        } else if rest.is_some_and(|rest| rest.split('/').next().is_none_or(str::is_empty)) {
            wrong.push(FieldError::invalid(
                place.child("url"),
                url,
                "host must be specified; desired format: https://host[/path]",
            ));
        }
    } else {
        let place = place.child("service");
        for member in ["name", "namespace"] {
            let text = hook.text(&["clientConfig", "service", member]);
            let missing = format!("service {member} is required");
            if text.is_empty() {
                wrong.push(FieldError::required(place.child(member), missing));
            }
        }
        let number = hook
            .int(&["clientConfig", "service", "port"])
            .unwrap_or(443);
        if !(1..=65535).contains(&number) {
            wrong.push(FieldError::invalid(
                place.child("port"),
                number,
                "port is not valid: must be between 1 and 65535, inclusive",
            ));
        }
    }
}

/// What validating admission policies do.
pub(crate) fn validating_policy() -> Rules {
    Rules::validating(|policy, wrong| {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        policy_spec(spec, &place, wrong);
        let validations = spec.list(&["validations"]);
        if validations.is_empty() && spec.list(&["auditAnnotations"]).is_empty() {
            const DETAIL: &str = "validations or auditAnnotations must contain at least one item";
            for member in ["validations", "auditAnnotations"] {
                wrong.push(FieldError::required(place.child(member), DETAIL));
            }
        }
        for (index, validation) in validations.iter().enumerate() {
            if validation.text(&["expression"]).trim().is_empty() {
                wrong.push(FieldError::required(
                    place.child("validations").index(index).child("expression"),
                    "expression is not specified",
                ));
            }
        }
    })
}

/// What mutating admission policies do.
pub(crate) fn mutating_policy() -> Rules {
    Rules::validating(|policy, wrong| {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        policy_spec(spec, &place, wrong);
        if spec.list(&["mutations"]).is_empty() {
            wrong.push(FieldError::required(
                place.child("mutations"),
                "mutations must contain at least one item",
            ));
        }
        required_one_of(
            spec.text(&["reinvocationPolicy"]),
            &["IfNeeded", "Never"],
            place.child("reinvocationPolicy"),
            wrong,
        );
    })
}

fn policy_spec(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    required_one_of(
        spec.text(&["failurePolicy"]),
        &["Fail", "Ignore"],
        place.child("failurePolicy"),
        wrong,
    );
    if spec.has(&["paramKind"]) {
        for member in ["apiVersion", "kind"] {
            required(
                spec.text(&["paramKind", member]),
                place.child("paramKind").child(member),
                wrong,
            );
        }
    }
    let place = place.child("matchConstraints");
    let Some(constraints) = spec.at(&["matchConstraints"]).filter(|v| !v.is_null()) else {
        wrong.push(FieldError::required(place, ""));
        return;
    };
    match_resources(constraints, &place, wrong);
    if constraints.list(&["resourceRules"]).is_empty() {
        wrong.push(FieldError::required(place.child("resourceRules"), ""));
    }
}

fn match_resources(resources: &Value, place: &FieldPath, wrong: &mut Errors) {
    selectors(resources, place, wrong);
    for list in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in resources.list(&[list]).iter().enumerate() {
            operations_rule(rule, &place.child(list).index(index), wrong);
        }
    }
    one_of(
        resources.text(&["matchPolicy"]),
        &["Equivalent", "Exact"],
        place.child("matchPolicy"),
        wrong,
    );
}

/// What bindings of mutating admission policies do.
pub(crate) fn policy_binding() -> Rules {
    Rules::validating(binding)
}

/// What bindings of validating admission policies do.
pub(crate) fn validating_policy_binding() -> Rules {
    Rules::validating(|object, wrong| {
        binding(object, wrong);
        let place = path(&["spec", "validationActions"]);
        let actions = object.value().list(&["spec", "validationActions"]);
        if actions.is_empty() {
            wrong.push(FieldError::required(
                place.clone(),
                "at least one validation action is required",
            ));
        }
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, action) in actions.iter().enumerate() {
            let text = action.as_str().unwrap_or("");
            one_of(text, &["Audit", "Deny", "Warn"], place.index(index), wrong);
            if !seen.insert(text) {
                wrong.push(FieldError::duplicate(place.index(index), text));
            }
        }
        let has = |action: &str| actions.iter().any(|found| found.as_str() == Some(action));
        if has("Deny") && has("Warn") {
            wrong.push(FieldError::invalid(
                place,
                actions.to_vec(),
                "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
            ));
        }
    })
}

fn binding(object: &Object, wrong: &mut Errors) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    let policy = spec.text(&["policyName"]);
    if required(policy, place.child("policyName"), wrong) {
        name(
            policy,
            names::dns1123_subdomain,
            place.child("policyName"),
            wrong,
        );
    }
    if let Some(reference) = spec.at(&["paramRef"]).filter(|value| !value.is_null()) {
        let place = place.child("paramRef");
        if reference.text(&["name"]).is_empty() != reference.has(&["selector"]) {
            wrong.push(FieldError::required(
                place.child("name"),
                "one of name or selector must be specified",
            ));
        }
        required_one_of(
            reference.text(&["parameterNotFoundAction"]),
            &["Allow", "Deny"],
            place.child("parameterNotFoundAction"),
            wrong,
        );
    }
    if let Some(resources) = spec
        .at(&["matchResources"])
        .filter(|value| !value.is_null())
    {
        match_resources(resources, &place.child("matchResources"), wrong);
    }
}

/// What API services do.
pub(crate) fn api_service() -> Rules {
    Rules::validating(|service, wrong| {
        let spec = service.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        let (group, version) = (spec.text(&["group"]), spec.text(&["version"]));
        let wanted = format!("{version}.{group}");
        if service.name() != wanted {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
            wrong.push(FieldError::invalid(
                path(&["metadata", "name"]),
                service.name(),
                detail,
            ));
        }
        if group.is_empty() && version != "v1" {
            wrong.push(FieldError::required(
                place.child("group"),
                "only v1 may have an empty group and it better be legacy kube",
            ));
        }
        if !group.is_empty() {
            name(group, names::dns1123_subdomain, place.child("group"), wrong);
        }
        name(version, names::dns1035_label, place.child("version"), wrong);
        for (member, limit) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
            let number = spec.int(&[member]).unwrap_or(0);
            if !(1..=limit).contains(&number) {
                let detail = format!("must be positive and less than {limit}");
                wrong.push(FieldError::invalid(place.child(member), number, detail));
            }
        }
        service_target(spec, &place, wrong);
    })
    .creating(|service, ctx| {
        // What is served here can always be reached; of the others somebody has to find out.
        if service.value().has(&["spec", "service"]) {
            return;
        }
        let condition = value!({
            "type": "Available",
            "status": "True",
            "lastTransitionTime": (ctx.now),
            "reason": "Local",
            "message": "Local APIServices are always available",
        });
        let status = value!({"conditions": [condition]});
        service.map_mut().insert("status", status);
    })
}

fn service_target(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let bundle = spec.text(&["caBundle"]);
    let trusting = spec.flag(&["insecureSkipTLSVerify"]);
    if !spec.has(&["service"]) {
        if !bundle.is_empty() {
            wrong.push(FieldError::invalid(
                place.child("caBundle"),
                format!("{} bytes", bundle.len() / 4 * 3),
                "local APIServices may not have a caBundle",
            ));
        }
        if trusting {
            wrong.push(FieldError::invalid(
                place.child("insecureSkipTLSVerify"),
                true,
                "local APIServices may not have insecureSkipTLSVerify",
            ));
        }
        return;
    }
    let service = place.child("service");
    for member in ["namespace", "name"] {
        required(
            spec.text(&["service", member]),
            service.child(member),
            wrong,
        );
    }
    port(
        spec.int(&["service", "port"]).unwrap_or(0),
        service.child("port"),
        wrong,
    );
    if trusting && !bundle.is_empty() {
        wrong.push(FieldError::invalid(
            place.child("insecureSkipTLSVerify"),
            true,
            "may not be true if caBundle is present",
        ));
    }
}
