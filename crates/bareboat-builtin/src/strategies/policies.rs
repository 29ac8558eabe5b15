//! Admission policies and admission policy bindings.
//!
//! Expressions are compiled as at runtime: variables first, in order, then everything that may use them.

use super::Rules;
use super::check::{Errors, name, one_of, path, required, required_one_of};
use super::expressions::judge;
use super::extension::{match_conditions, operations_rule, selectors};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Object, Value, names};
use bareboat_cel::{AdmissionEnv, Purpose};
use std::collections::HashSet;

/// Maximum number of audit annotations of one policy.
const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// Maximum length of an audit annotation's expression, in bytes.
const MAX_AUDIT_EXPRESSION: usize = 5 * 1024;

/// Returns the strategy of ValidatingAdmissionPolicy: validation, which compiles the expressions.
pub(crate) fn validating_policy() -> Rules {
    Rules::validating(|policy, wrong| {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        let mut env = AdmissionEnv::new(spec.has(&["paramKind"]));
        if !spec.list(&["variables"]).is_empty() {
            env = env.composed();
        }
        policy_spec(spec, &mut env, &place, wrong);
        let validations = spec.list(&["validations"]);
        if validations.is_empty() && spec.list(&["auditAnnotations"]).is_empty() {
            const DETAIL: &str = "validations or auditAnnotations must contain at least one item";
            for member in ["validations", "auditAnnotations"] {
                wrong.push(FieldError::required(place.child(member), DETAIL));
            }
        }
        for (index, entry) in validations.iter().enumerate() {
            let place = place.child("validations").index(index);
            validation(entry, &env, &place, wrong);
        }
        audits(policy, &env, &place.child("auditAnnotations"), wrong);
    })
    .at_first(conditions)
    .updating(changed_conditions)
}

/// Validates the match conditions of a policy.
fn conditions(policy: &Object, wrong: &mut Errors) {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let env = AdmissionEnv::new(spec.has(&["paramKind"]));
    match_conditions(spec, &env, &path(&["spec", "matchConditions"]), wrong);
}

/// Validates match conditions again only if they or their inputs change.
fn changed_conditions(new: &Object, old: &Object, wrong: &mut Errors) {
    let same = [["spec", "paramKind"], ["spec", "matchConditions"]]
        .iter()
        .all(|member| new.at(member) == old.at(member));
    if !same {
        conditions(new, wrong);
    }
}

/// Validates one check and its message.
fn validation(validation: &Value, env: &AdmissionEnv, place: &FieldPath, wrong: &mut Errors) {
    const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    let expression = validation.text(&["expression"]);
    let at = place.child("expression");
    if expression.trim().is_empty() {
        wrong.push(FieldError::required(at, "expression is not specified"));
    } else {
        let compiled = env.compile(expression, Purpose::Validation);
        judge(compiled, expression, at, wrong);
    }
    let expression = validation.text(&["messageExpression"]);
    let at = place.child("messageExpression");
    if !expression.trim().is_empty() {
        let compiled = env.compile(expression, Purpose::Message);
        judge(compiled, expression, at, wrong);
    } else if !expression.is_empty() {
        let detail = "must be non-empty if specified";
        wrong.push(FieldError::invalid(at, expression, detail));
    }
    let message = validation.text(&["message"]);
    let at = place.child("message");
    if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        wrong.push(FieldError::invalid(at, message, detail));
    } else if message.trim().contains(['\n', '\r']) {
        let detail = "must not contain line breaks";
        wrong.push(FieldError::invalid(at, message, detail));
    }
    let reason = validation.text(&["reason"]);
    if !reason.is_empty() && !REASONS.contains(&reason) {
        let at = place.child("reason");
        wrong.push(FieldError::not_supported(at, reason, REASONS));
    }
}

/// Validates audit annotations. Their keys start with the policy's name.
fn audits(policy: &Object, env: &AdmissionEnv, place: &FieldPath, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    let given = policy.value().list(&["spec", "auditAnnotations"]);
    if given.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        wrong.push(FieldError::invalid(place.clone(), given.to_vec(), detail));
    }
    for (index, annotation) in given.iter().enumerate() {
        let place = place.index(index);
        let key = annotation.text(&["key"]);
        let full = format!("{}/{key}", policy.name());
        name(&full, names::qualified_name, place.child("key"), wrong);
        if !seen.insert(key) {
            wrong.push(FieldError::duplicate(place.child("key"), key));
        }
        let expression = annotation.text(&["valueExpression"]);
        let at = place.child("valueExpression");
        match expression.trim() {
            "" => {
                let detail = "valueExpression is not specified";
                wrong.push(FieldError::required(at, detail));
            }
            long if long.len() > MAX_AUDIT_EXPRESSION => {
                let detail = format!("must not exceed {MAX_AUDIT_EXPRESSION} bytes in length");
                wrong.push(FieldError::required(at, detail));
            }
            trimmed => {
                let compiled = env.compile(trimmed, Purpose::AuditAnnotation);
                judge(compiled, expression, at, wrong);
            }
        }
    }
}

/// Validates variables and adds them to the environment.
fn variables(spec: &Value, env: &mut AdmissionEnv, place: &FieldPath, wrong: &mut Errors) {
    for (index, variable) in spec.list(&["variables"]).iter().enumerate() {
        let place = place.index(index);
        let own = variable.text(&["name"]);
        if own.trim().is_empty() {
            let detail = "name is not specified";
            wrong.push(FieldError::required(place.child("name"), detail));
        } else if !bareboat_cel::is_identifier(own) {
            let detail = "must be a valid CEL identifier";
            wrong.push(FieldError::invalid(place.child("name"), own, detail));
        }
        let expression = variable.text(&["expression"]);
        let at = place.child("expression");
        if expression.trim().is_empty() {
            wrong.push(FieldError::required(at, "expression is not specified"));
        } else {
            judge(env.define(own, expression), expression, at, wrong);
        }
    }
}

/// Validates a mutation, which has one of two types.
fn mutation(mutation: &Value, env: &AdmissionEnv, place: &FieldPath, wrong: &mut Errors) {
    const WAYS: [(&str, &str, Purpose); 2] = [
        (
            "ApplyConfiguration",
            "applyConfiguration",
            Purpose::ApplyConfiguration,
        ),
        ("JSONPatch", "jsonPatch", Purpose::JsonPatch),
    ];
    let ty = mutation.text(&["patchType"]);
    let known = WAYS.map(|(ty, ..)| ty);
    required_one_of(ty, &known, place.child("patchType"), wrong);
    if !known.contains(&ty) {
        return;
    }
    for (way, member, purpose) in WAYS {
        let place = place.child(member);
        match (way == ty, mutation.has(&[member])) {
            (true, false) => {
                let detail = format!("must be specified when patchType is {ty}");
                wrong.push(FieldError::required(place, detail));
            }
            (true, true) => {
                let expression = mutation.text(&[member, "expression"]).trim();
                let at = place.child("expression");
                if required(expression, at.clone(), wrong) {
                    judge(env.compile(expression, purpose), expression, at, wrong);
                }
            }
            (false, true) => {
                let detail = format!("must not be specified when patchType is {ty}");
                let shown = format!("{{{member}}}");
                wrong.push(FieldError::invalid(place, shown, detail));
            }
            (false, false) => {}
        }
    }
}

/// Returns the strategy of MutatingAdmissionPolicy: validation, which compiles the expressions.
pub(crate) fn mutating_policy() -> Rules {
    Rules::validating(|policy, wrong| {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        let mut env = AdmissionEnv::new(spec.has(&["paramKind"])).composed();
        policy_spec(spec, &mut env, &place, wrong);
        for (index, entry) in spec.list(&["mutations"]).iter().enumerate() {
            let place = place.child("mutations").index(index);
            mutation(entry, &env, &place, wrong);
        }
        // Deleted objects cannot be mutated.
        for rule in spec.list(&["matchConstraints", "resourceRules"]) {
            let deletes = rule
                .list(&["operations"])
                .iter()
                .any(|operation| operation.as_str() == Some("DELETE"));
            if deletes {
                let place = place.child("matchConstraints").child("resourceRules");
                let known = ["*", "CONNECT", "CREATE", "UPDATE"];
                let place = place.child("operations");
                wrong.push(FieldError::not_supported(place, "DELETE", known));
            }
        }
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
    .at_first(conditions)
    .updating(changed_conditions)
}

fn policy_spec(spec: &Value, env: &mut AdmissionEnv, place: &FieldPath, wrong: &mut Errors) {
    required_one_of(
        spec.text(&["failurePolicy"]),
        &["Fail", "Ignore"],
        place.child("failurePolicy"),
        wrong,
    );
    if spec.has(&["paramKind"]) {
        let place = place.child("paramKind");
        let version = spec.text(&["paramKind", "apiVersion"]);
        if required(version, place.child("apiVersion"), wrong) && version.matches('/').count() > 1 {
            let detail = format!("unexpected GroupVersion string: {version}");
            let place = place.child("apiVersion");
            wrong.push(FieldError::invalid(place, version, detail));
        }
        let kind = spec.text(&["paramKind", "kind"]);
        required(kind, place.child("kind"), wrong);
    }
    variables(spec, env, &place.child("variables"), wrong);
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

/// Returns the strategy of MutatingAdmissionPolicyBinding: validation.
pub(crate) fn policy_binding() -> Rules {
    Rules::validating(binding)
}

/// Returns the strategy of ValidatingAdmissionPolicyBinding: validation.
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
        let named = !reference.text(&["name"]).is_empty();
        match (named, reference.has(&["selector"])) {
            (false, false) => wrong.push(FieldError::required(
                place.clone(),
                "one of name or selector must be specified",
            )),
            (true, true) => {
                for member in ["name", "selector"] {
                    let detail = "name and selector are mutually exclusive";
                    wrong.push(FieldError::forbidden(place.child(member), detail));
                }
            }
            _ => {}
        }
        required_one_of(
            reference.text(&["parameterNotFoundAction"]),
            &["Deny", "Allow"],
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
