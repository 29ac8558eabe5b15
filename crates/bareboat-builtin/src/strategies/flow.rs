//! FlowSchemas, PriorityLevelConfigurations and CertificateSigningRequests.

mod rules;

use super::Rules;
use super::check::{Errors, name, one_of, path, required_one_of};
use crate::reach::{Reach, copy_member};
use bareboat_api::kind::WriteContext;
use bareboat_api::{FieldError, Map, Object, Value, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::{HashMap, HashSet};

/// Returns the strategy of FlowSchema: validation.
pub(crate) fn flow_schema() -> Rules {
    Rules::validating(|schema, wrong| {
        let spec = schema.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        let precedence = spec.int(&["matchingPrecedence"]).unwrap_or(0);
        let detail = match precedence {
            ..=0 => Some("must be a positive value"),
            1 if schema.name() != "exempt" => {
                Some("only the schema named 'exempt' may have matchingPrecedence 1")
            }
            10_001.. => Some("must not be greater than 10000"),
            _ => None,
        };
        if let Some(detail) = detail {
            wrong.push(FieldError::invalid(
                place.child("matchingPrecedence"),
                precedence,
                detail,
            ));
        }
        let level = spec.text(&["priorityLevelConfiguration", "name"]);
        let level_place = place.child("priorityLevelConfiguration").child("name");
        if level.is_empty() {
            wrong.push(FieldError::required(
                level_place,
                "must reference a priority level",
            ));
        } else {
            name(level, names::dns1123_subdomain, level_place, wrong);
        }
        if let Some(method) = spec
            .at(&["distinguisherMethod"])
            .filter(|value| !value.is_null())
        {
            let ty = method.text(&["type"]);
            if !matches!(ty, "ByNamespace" | "ByUser") {
                wrong.push(FieldError::not_supported(
                    place.child("distinguisherMethod").child("type"),
                    method.clone(),
                    ["ByNamespace", "ByUser"],
                ));
            }
        }
        for (index, rule) in spec.list(&["rules"]).iter().enumerate() {
            let place = place.child("rules").index(index);
            if rule.list(&["subjects"]).is_empty() {
                wrong.push(FieldError::required(
                    place.child("subjects"),
                    "subjects must contain at least one value",
                ));
            }
            rules::rule(rule, &place, wrong);
            if rule.list(&["resourceRules"]).is_empty()
                && rule.list(&["nonResourceRules"]).is_empty()
            {
                wrong.push(FieldError::required(
                    place,
                    "at least one of resourceRules and nonResourceRules has to be non-empty",
                ));
            }
        }
    })
}

/// Returns the strategy of PriorityLevelConfiguration: validation.
pub(crate) fn priority_level() -> Rules {
    Rules::validating(|level, wrong| {
        let spec = level.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        let ty = spec.text(&["type"]);
        if (level.name() == "exempt") != (ty == "Exempt") {
            wrong.push(FieldError::invalid(
                place.child("type"),
                ty,
                "must be 'Exempt' if and only if `name` is 'exempt'",
            ));
        }
        required_one_of(ty, &["Exempt", "Limited"], place.child("type"), wrong);
        match ty {
            "Exempt" if spec.has(&["limited"]) => wrong.push(FieldError::forbidden(
                place.child("limited"),
                "must be nil if the type is not Limited",
            )),
            "Limited" => {
                if spec.has(&["exempt"]) {
                    wrong.push(FieldError::forbidden(
                        place.child("exempt"),
                        "must be nil if the type is Limited",
                    ));
                }
                match spec.at(&["limited"]).filter(|value| !value.is_null()) {
                    None => wrong.push(FieldError::required(
                        place.child("limited"),
                        "must not be empty when type is Limited",
                    )),
                    Some(limited) => rules::limited(limited, &place.child("limited"), wrong),
                }
            }
            _ => {}
        }
    })
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Returns the strategy of CertificateSigningRequest: the requesting user of new requests, an immutable spec,
/// validation of requests and decisions.
pub(crate) fn signing_request() -> Rules {
    Rules {
        prepare_create: Some(|request, ctx| {
            sign_with_user(request, ctx);
        }),
        prepare_update: Some(|new, old, _| {
            // The spec is immutable; only approval and certificate change.
            copy_member(new.map_mut(), old.map(), "spec");
            copy_member(new.map_mut(), old.map(), "status");
        }),
        prepare_part: Some(prepare_part),
        validate: Some(validate_request),
        validate_part: Some(|new, old, part, wrong| {
            decisions(new, old, part, wrong);
        }),
        ..Rules::default()
    }
}

/// Sets the requesting user from the authenticated user and ignores the client's values.
fn sign_with_user(request: &mut Object, ctx: &WriteContext<'_>) {
    let spec = request.map_mut().object_mut("spec");
    for member in ["username", "uid", "groups", "extra"] {
        spec.remove(member);
    }
    let user = ctx.user;
    if !user.name.is_empty() {
        spec.insert("username", user.name.clone().into());
    }
    if !user.uid.is_empty() {
        spec.insert("uid", user.uid.clone().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups", user.groups.iter().cloned().collect());
    }
    if !user.extra.is_empty() {
        let extra: Map = user
            .extra
            .iter()
            .map(|(key, values)| {
                (
                    key.as_str(),
                    values.iter().map(String::as_str).collect::<Value>(),
                )
            })
            .collect();
        spec.insert("extra", extra.into());
    }
}

fn is_decision(condition: &Value) -> bool {
    matches!(condition.text(&["type"]), "Approved" | "Denied")
}

/// `approval` changes conditions only, `status` everything but the decision.
fn prepare_part(new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
    copy_member(new.map_mut(), old.map(), "spec");
    if ctx.subresource == Some("approval") {
        let conditions = new.at(&["status", "conditions"]).cloned();
        copy_member(new.map_mut(), old.map(), "status");
        let status = new.map_mut().object_mut("status");
        match conditions {
            Some(conditions) => {
                status.insert("conditions", conditions);
            }
            None => {
                status.remove("conditions");
            }
        }
    }
    let known: HashMap<&str, &Value> = old
        .value()
        .list(&["status", "conditions"])
        .iter()
        .map(|condition| (condition.text(&["type"]), condition))
        .collect();
    let Some(Value::Array(conditions)) = new.map_mut().object_mut("status").get_mut("conditions")
    else {
        return;
    };
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let before = known.get(condition.get_str("type").unwrap_or(""));
        for member in ["lastUpdateTime", "lastTransitionTime"] {
            if condition.get(member).is_none_or(Value::is_null) {
                let kept = before
                    .filter(|known| known.get("status") == condition.get("status"))
                    .and_then(|known| known.get(member))
                    .filter(|_| member == "lastTransitionTime")
                    .cloned();
                condition.insert(member, kept.unwrap_or_else(|| ctx.now.into()));
            }
        }
    }
}

fn validate_request(request: &Object, wrong: &mut Errors) {
    let value = request.value();
    let place = path(&["spec"]);
    let request = value
        .at(&["spec", "request"])
        .filter(|value| !value.is_null());
    if !request.is_some_and(|request| holds_pem(request, "CERTIFICATE REQUEST")) {
        wrong.push(FieldError::invalid(
            place.child("request"),
            request.cloned().unwrap_or_default(),
            "PEM block type must be CERTIFICATE REQUEST",
        ));
    }
    let usages = value.list(&["spec", "usages"]);
    if usages.is_empty() {
        wrong.push(FieldError::required(place.child("usages"), ""));
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, usage) in usages.iter().enumerate() {
        let text = usage.as_str().unwrap_or("");
        one_of(text, &USAGES, place.child("usages").index(index), wrong);
        if !seen.insert(text) {
            wrong.push(FieldError::duplicate(
                place.child("usages").index(index),
                text,
            ));
        }
    }
    signer(value.text(&["spec", "signerName"]), wrong);
    if let Some(seconds) = value
        .int(&["spec", "expirationSeconds"])
        .filter(|seconds| *seconds < 600)
    {
        wrong.push(FieldError::invalid(
            place.child("expirationSeconds"),
            seconds,
            "may not specify a duration less than 600 seconds (10 minutes)",
        ));
    }
}

/// Returns whether a value is base64 of a text with a PEM block of that type.
fn holds_pem(value: &Value, block: &str) -> bool {
    let text = value.as_str().unwrap_or("");
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.contains(&format!("-----BEGIN {block}-----"))
}

fn signer(text: &str, wrong: &mut Errors) {
    let place = path(&["spec", "signerName"]);
    if text.is_empty() {
        wrong.push(FieldError::required(place, ""));
        return;
    }
    let Some((domain, rest)) = text.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        wrong.push(FieldError::invalid(
            place,
            text,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ));
        return;
    };
    if domain == "kubernetes.io" && rest == "legacy-unknown" {
        wrong.push(FieldError::invalid(
            place,
            text,
            "the legacy signerName is not allowed via this API version",
        ));
        return;
    }
    for message in names::dns1123_subdomain(domain) {
        let detail = format!("validating label {domain:?}: {message}");
        wrong.push(FieldError::invalid(place.clone(), text, detail));
    }
}

/// Validates that decisions are permanent and made through `approval` only, and that a certificate is issued once.
fn decisions(new: &Object, old: &Object, part: &str, wrong: &mut Errors) {
    let place = path(&["status", "conditions"]);
    let found = |object: &Object, ty: &str| {
        object
            .value()
            .list(&["status", "conditions"])
            .iter()
            .filter(|condition| condition.text(&["type"]) == ty)
            .count()
    };
    for ty in ["Approved", "Denied", "Failed"] {
        if found(new, ty) < found(old, ty) {
            let detail = format!("updates may not remove a condition of type {ty:?}");
            wrong.push(FieldError::forbidden(place.clone(), detail));
        }
    }
    if part != "approval" {
        for ty in ["Approved", "Denied"] {
            if found(new, ty) > found(old, ty) {
                let detail = format!("updates may not add a condition of type {ty:?}");
                wrong.push(FieldError::forbidden(place.clone(), detail));
            }
        }
        let given = new
            .at(&["status", "certificate"])
            .filter(|value| !value.is_null());
        if given.is_some_and(|given| !holds_pem(given, "CERTIFICATE")) {
            wrong.push(FieldError::invalid(
                path(&["status", "certificate"]),
                "<certificate data>",
                "must contain at least one CERTIFICATE PEM block",
            ));
        }
        let issued = old.value().text(&["status", "certificate"]);
        if !issued.is_empty() && new.value().text(&["status", "certificate"]) != issued {
            wrong.push(FieldError::forbidden(
                path(&["status", "certificate"]),
                "updates may not modify existing certificate content",
            ));
        }
    }
    let conditions = new.value().list(&["status", "conditions"]);
    for (index, condition) in conditions.iter().enumerate() {
        let place = place.index(index);
        let ty = condition.text(&["type"]);
        if ty.is_empty() {
            wrong.push(FieldError::required(place.child("type"), ""));
        }
        let status = condition.text(&["status"]);
        let known: &[&str] = match ty {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        required_one_of(status, known, place.child("status"), wrong);
    }
    let both = ["Approved", "Denied"].iter().all(|ty| {
        conditions
            .iter()
            .filter(|c| is_decision(c))
            .any(|c| c.text(&["type"]) == *ty)
    });
    if both {
        wrong.push(FieldError::invalid(
            place,
            "Denied",
            "Approved and Denied conditions are mutually exclusive",
        ));
    }
}
