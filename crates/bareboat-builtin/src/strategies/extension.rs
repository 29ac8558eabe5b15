//! Webhook configurations and APIServices.

use super::Rules;
use super::check::{Errors, name, one_of, path, required};
use super::expressions;
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Object, Value, names, value};
use bareboat_cel::{AdmissionEnv, Purpose};
use std::collections::HashSet;

/// The annotation of an APIService with the URL of a server that no Service leads to.
const URL_ANNOTATION: &str = "bareboat.dev/url";
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Returns the strategy of webhook configurations: validation; match conditions are validated again only if they
/// change.
pub(crate) fn webhooks() -> Rules {
    fn conditions(object: &Object, wrong: &mut Errors) {
        for (index, hook) in object.value().list(&["webhooks"]).iter().enumerate() {
            let place = path(&["webhooks"]).index(index).child("matchConditions");
            match_conditions(hook, &AdmissionEnv::new(false), &place, wrong);
        }
    }
    /// Returns the conditions of all webhooks, in order.
    fn all(object: &Object) -> Vec<&[Value]> {
        let hooks = object.value().list(&["webhooks"]).iter();
        hooks.map(|hook| hook.list(&["matchConditions"])).collect()
    }
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
    .at_first(conditions)
    .updating(|new, old, wrong| {
        if all(new) != all(old) {
            conditions(new, wrong);
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
    match hook.text(&["sideEffects"]) {
        "" => wrong.push(FieldError::required(
            place.child("sideEffects"),
            "must specify one of None, NoneOnDryRun",
        )),
        effects => one_of(
            effects,
            &["None", "NoneOnDryRun"],
            place.child("sideEffects"),
            wrong,
        ),
    }
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

/// Maximum number of match conditions of one webhook or policy.
const MAX_CONDITIONS: usize = 64;

/// Validates match conditions.
pub(super) fn match_conditions(
    parent: &Value,
    env: &AdmissionEnv,
    place: &FieldPath,
    wrong: &mut Errors,
) {
    let mut seen: HashSet<&str> = HashSet::new();
    let count = parent.list(&["matchConditions"]).len();
    if count > MAX_CONDITIONS {
        wrong.push(FieldError::too_many(place.clone(), count, MAX_CONDITIONS));
    }
    for (index, condition) in parent.list(&["matchConditions"]).iter().enumerate() {
        let place = place.index(index);
        let expression = condition.text(&["expression"]).trim();
        let at = place.child("expression");
        if required(expression, at.clone(), wrong) {
            let compiled = env.compile(expression, Purpose::MatchCondition);
            expressions::judge(compiled, expression, at, wrong);
        }
        let own = condition.text(&["name"]);
        if required(own, place.child("name"), wrong) {
            name(own, names::qualified_name, place.child("name"), wrong);
            if !seen.insert(own) {
                wrong.push(FieldError::duplicate(place.child("name"), own));
            }
        }
    }
}

pub(super) fn selectors(parent: &Value, place: &FieldPath, wrong: &mut Errors) {
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

/// Validates a rule: operations and resources.
pub(super) fn operations_rule(rule: &Value, place: &FieldPath, wrong: &mut Errors) {
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
    let resources = rule.list(&["resources"]);
    if resources.is_empty() {
        wrong.push(FieldError::required(place.child("resources"), ""));
    }
    if resources.len() > 1 && resources.iter().any(|entry| entry.as_str() == Some("*/*")) {
        wrong.push(FieldError::invalid(
            place.child("resources"),
            resources.to_vec(),
            "if '*/*' is present, must not specify other resources",
        ));
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
        hook_url(url, &place.child("url"), wrong);
    } else {
        let place = place.child("service");
        for member in ["name", "namespace"] {
            let text = hook.text(&["clientConfig", "service", member]);
            required(text, place.child(member), wrong);
        }
        if let Some(text) = hook
            .at(&["clientConfig", "service", "path"])
            .and_then(Value::as_str)
        {
            url_path(text, &place.child("path"), wrong);
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

/// Validates the URL of a webhook: host and path only.
fn hook_url(url: &str, place: &FieldPath, wrong: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut complain = |shown: &str, detail: String| {
        wrong.push(FieldError::invalid(place.clone(), shown, detail));
    };
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        complain(
            scheme,
            format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or("");
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() {
        complain(host, format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        complain(
            user,
            "user information is not permitted in the URL".to_owned(),
        );
    }
    if !fragment.is_empty() {
        complain(
            fragment,
            "fragments are not permitted in the URL".to_owned(),
        );
    }
    if !query.is_empty() {
        complain(
            query,
            "query parameters are not permitted in the URL".to_owned(),
        );
    }
}

/// Validates the path of a webhook: absolute, without empty segments.
fn url_path(text: &str, place: &FieldPath, wrong: &mut Errors) {
    let mut complain = |detail: String| {
        wrong.push(FieldError::invalid(place.clone(), text, detail));
    };
    if text.is_empty() || text == "/" {
        return;
    }
    if text == "//" {
        return complain("segment[0] may not be empty".to_owned());
    }
    if !text.starts_with('/') {
        complain("must start with a '/'".to_owned());
    }
    let steps: Vec<&str> = text.get(1..).unwrap_or("").split('/').collect();
    for (index, step) in steps.iter().enumerate() {
        if step.is_empty() {
            complain(format!("segment[{index}] may not be empty"));
        }
        for failure in names::dns1123_subdomain(step) {
            if !step.is_empty() {
                complain(format!("segment[{index}]: {failure}"));
            }
        }
    }
}

/// Returns the strategy of APIService: validation, and the condition `Available` of new local ones.
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
        let place = path(&["metadata", "annotations"]).key(URL_ANNOTATION);
        let url = service.at(&["metadata", "annotations", URL_ANNOTATION]);
        if let Some(url) = url.and_then(Value::as_str) {
            hook_url(url, &place, wrong);
            if !spec.has(&["service"]) {
                let detail =
                    "needs spec.service: without it, this server serves the version itself";
                wrong.push(FieldError::invalid(place, url, detail));
            }
        }
    })
    .creating(|service, ctx| {
        // Groups served here are always available; for others a controller sets the condition.
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
    let number = spec.int(&["service", "port"]).unwrap_or(0);
    if !(1..=65535).contains(&number) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        wrong.push(FieldError::invalid(service.child("port"), number, detail));
    }
    if trusting && !bundle.is_empty() {
        wrong.push(FieldError::invalid(
            place.child("insecureSkipTLSVerify"),
            true,
            "may not be true if caBundle is present",
        ));
    }
}
