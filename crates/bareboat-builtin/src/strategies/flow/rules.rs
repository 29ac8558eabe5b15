//! Validates rules and limits of FlowSchemas and PriorityLevelConfigurations.

use super::super::check::{Errors, name, required_one_of};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value, names};

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// Validates a rule: subjects, and the requests it matches.
pub(super) fn rule(rule: &Value, place: &FieldPath, wrong: &mut Errors) {
    for (index, entry) in rule.list(&["subjects"]).iter().enumerate() {
        subject(entry, &place.child("subjects").index(index), wrong);
    }
    for (index, entry) in rule.list(&["resourceRules"]).iter().enumerate() {
        resources(entry, &place.child("resourceRules").index(index), wrong);
    }
    for (index, entry) in rule.list(&["nonResourceRules"]).iter().enumerate() {
        let place = place.child("nonResourceRules").index(index);
        verbs(entry, &place, wrong);
        paths(entry, &place.child("nonResourceURLs"), wrong);
    }
}

fn subject(subject: &Value, place: &FieldPath, wrong: &mut Errors) {
    const KINDS: [(&str, &str); 3] = [
        ("Group", "group"),
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
    ];
    let kind = subject.text(&["kind"]);
    let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    required_one_of(kind, &known, place.child("kind"), wrong);
    if !known.contains(&kind) {
        return;
    }
    for (of, member) in KINDS {
        let place = place.child(member);
        match (of == kind, subject.has(&[member])) {
            (true, false) => {
                let detail = format!("{member} is required when subject kind is '{of}'");
                wrong.push(FieldError::required(place, detail));
            }
            (false, true) => {
                let detail = format!("{member} is forbidden when subject kind is not '{of}'");
                wrong.push(FieldError::forbidden(place, detail));
            }
            (true, true) => {
                let text = subject.text(&[member, "name"]);
                if text.is_empty() {
                    wrong.push(FieldError::required(place.child("name"), ""));
                }
                if of != "ServiceAccount" {
                    continue;
                }
                if !matches!(text, "" | "*") {
                    name(text, names::dns1123_subdomain, place.child("name"), wrong);
                }
                let namespace = subject.text(&[member, "namespace"]);
                let place = place.child("namespace");
                if namespace.is_empty() {
                    let detail = "must specify namespace for service account";
                    wrong.push(FieldError::required(place, detail));
                } else {
                    name(namespace, names::dns1123_label, place, wrong);
                }
            }
            (false, false) => {}
        }
    }
}

/// Returns whether a list contains `*`, which must be its only entry.
fn all_or_some(list: &[Value], what: &str, place: &FieldPath, wrong: &mut Errors) -> bool {
    let all = list.iter().any(|text| text.as_str() == Some("*"));
    if all && list.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        wrong.push(FieldError::invalid(place.clone(), list.to_vec(), detail));
    }
    all
}

fn verbs(rule: &Value, place: &FieldPath, wrong: &mut Errors) {
    let list = rule.list(&["verbs"]);
    let place = place.child("verbs");
    if list.is_empty() {
        let detail = "verbs must contain at least one value";
        return wrong.push(FieldError::required(place, detail));
    }
    let known = |text: &Value| text.as_str().is_some_and(|text| VERBS.contains(&text));
    if !all_or_some(list, "verbs", &place, wrong) && !list.iter().all(known) {
        wrong.push(FieldError::not_supported(place, list.to_vec(), VERBS));
    }
}

fn resources(rule: &Value, place: &FieldPath, wrong: &mut Errors) {
    verbs(rule, place, wrong);
    for (member, one, many) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.list(&[member]);
        let place = place.child(member);
        if list.is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            wrong.push(FieldError::required(place, detail));
        } else {
            all_or_some(list, many, &place, wrong);
        }
    }
    let namespaces = rule.list(&["namespaces"]);
    let place = place.child("namespaces");
    if namespaces.is_empty() && !rule.flag(&["clusterScope"]) {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        wrong.push(FieldError::required(place, detail));
    } else if !all_or_some(namespaces, "namespaces", &place, wrong) {
        for (index, text) in namespaces.iter().enumerate() {
            let text = text.as_str().unwrap_or("");
            for message in names::dns1123_label(text) {
                let detail =
                    format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                wrong.push(FieldError::invalid(place.index(index), text, detail));
            }
        }
    }
}

fn paths(rule: &Value, place: &FieldPath, wrong: &mut Errors) {
    let list = rule.list(&["nonResourceURLs"]);
    if list.is_empty() {
        let detail = "nonResourceURLs must contain at least one value";
        return wrong.push(FieldError::required(place.clone(), detail));
    }
    if all_or_some(list, "non-resource URLs", place, wrong) {
        return;
    }
    for (index, text) in list.iter().enumerate() {
        let text = text.as_str().unwrap_or("");
        let place = place.index(index);
        let stars = text.matches('*').count();
        let complaint = if text.is_empty() {
            "must not be empty"
        } else if !text.starts_with('/') {
            "must start with slash"
        } else if text.contains(' ') {
            "must not contain white-space"
        } else if text.contains("//") {
            "must not contain double slash"
        } else if stars > 1 || (stars == 1 && !text.ends_with("/*")) {
            "wildcard can only do suffix matching"
        } else {
            continue;
        };
        wrong.push(FieldError::invalid(place, text, complaint));
    }
}

/// Validates the shares and the limit response of a priority level.
pub(super) fn limited(limited: &Value, place: &FieldPath, wrong: &mut Errors) {
    let mut bad = |member: &str, number: i64, detail: &str| {
        wrong.push(FieldError::invalid(place.child(member), number, detail));
    };
    let negative = |member: &str| limited.int(&[member]).filter(|number| *number < 0);
    if let Some(shares) = negative("nominalConcurrencyShares") {
        bad(
            "nominalConcurrencyShares",
            shares,
            "must be a non-negative integer",
        );
    }
    if let Some(percent) = limited
        .int(&["lendablePercent"])
        .filter(|number| !(0..=100).contains(number))
    {
        bad(
            "lendablePercent",
            percent,
            "must be between 0 and 100, inclusive",
        );
    }
    if let Some(percent) = negative("borrowingLimitPercent") {
        let detail = "if specified, must be a non-negative integer";
        bad("borrowingLimitPercent", percent, detail);
    }
    let response = limited.at(&["limitResponse"]).unwrap_or(&Value::Null);
    let place = place.child("limitResponse");
    let ty = response.text(&["type"]);
    required_one_of(ty, &["Queue", "Reject"], place.child("type"), wrong);
    let queuing = response.at(&["queuing"]).filter(|value| !value.is_null());
    let place = place.child("queuing");
    match (ty, queuing) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            wrong.push(FieldError::forbidden(place, detail));
        }
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            wrong.push(FieldError::required(place, detail));
        }
        ("Queue", Some(queuing)) => queues(queuing, &place, wrong),
        _ => {}
    }
}

fn queues(queuing: &Value, place: &FieldPath, wrong: &mut Errors) {
    let number = |member: &str| queuing.int(&[member]).unwrap_or(0);
    let (queues, hand) = (number("queues"), number("handSize"));
    for member in ["queueLengthLimit", "queues"] {
        if number(member) <= 0 {
            let place = place.child(member);
            wrong.push(FieldError::invalid(
                place,
                number(member),
                "must be positive",
            ));
        }
    }
    if queues > 10_000_000 {
        let detail = "must not be greater than 10000000";
        wrong.push(FieldError::invalid(place.child("queues"), queues, detail));
    }
    let place = place.child("handSize");
    if hand <= 0 {
        wrong.push(FieldError::invalid(place, hand, "must be positive"));
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        wrong.push(FieldError::invalid(place, hand, detail));
    } else if entropy(queues, hand) > 60.0 {
        let bits = entropy(queues, hand);
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {bits}"
        );
        wrong.push(FieldError::invalid(place, hand, detail));
    }
}

/// Returns the bits of entropy needed to deal a hand of queues.
fn entropy(queues: i64, hand: i64) -> f64 {
    (0..hand)
        .map(|taken| ((queues - taken) as f64).log2())
        .sum::<f64>()
        .ceil()
}
