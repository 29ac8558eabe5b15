//! The `v1` annotations of `v2` fields. Members have the order that `v1` clients know, metrics have their own format,
//! and behavior members are capitalized.

use crate::reach::Reach;
use bareboat_api::{Map, Value};

/// How a metric member is written: its `v1` name, its path in `v2`, and whether it is always present (amounts are then
/// 0).
type Member = (&'static str, &'static [&'static str], Presence);

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Optional,
    Text,
    Amount,
    Reference,
}

use Presence::{Amount, Optional, Reference, Text};

/// Metric sources in the order that `v1` writes them, and their target members.
const TARGETS: [(&str, &[Member]); 5] = [
    (
        "object",
        &[
            ("target", &["describedObject"], Reference),
            ("metricName", &["metric", "name"], Text),
            ("targetValue", &["target", "value"], Amount),
            ("selector", &["metric", "selector"], Optional),
            ("averageValue", &["target", "averageValue"], Optional),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", &["metric", "name"], Text),
            ("targetAverageValue", &["target", "averageValue"], Amount),
            ("selector", &["metric", "selector"], Optional),
        ],
    ),
    (
        "resource",
        &[
            ("name", &["name"], Text),
            (
                "targetAverageUtilization",
                &["target", "averageUtilization"],
                Optional,
            ),
            ("targetAverageValue", &["target", "averageValue"], Optional),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", &["name"], Text),
            (
                "targetAverageUtilization",
                &["target", "averageUtilization"],
                Optional,
            ),
            ("targetAverageValue", &["target", "averageValue"], Optional),
            ("container", &["container"], Text),
        ],
    ),
    (
        "external",
        &[
            ("metricName", &["metric", "name"], Text),
            ("metricSelector", &["metric", "selector"], Optional),
            ("targetValue", &["target", "value"], Optional),
            ("targetAverageValue", &["target", "averageValue"], Optional),
        ],
    ),
];

/// Metric sources in the same order, and their members for current values.
const MEASURED: [(&str, &[Member]); 5] = [
    (
        "object",
        &[
            ("target", &["describedObject"], Reference),
            ("metricName", &["metric", "name"], Text),
            ("currentValue", &["current", "value"], Amount),
            ("selector", &["metric", "selector"], Optional),
            ("averageValue", &["current", "averageValue"], Optional),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", &["metric", "name"], Text),
            ("currentAverageValue", &["current", "averageValue"], Amount),
            ("selector", &["metric", "selector"], Optional),
        ],
    ),
    (
        "resource",
        &[
            ("name", &["name"], Text),
            (
                "currentAverageUtilization",
                &["current", "averageUtilization"],
                Optional,
            ),
            ("currentAverageValue", &["current", "averageValue"], Amount),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", &["name"], Text),
            (
                "currentAverageUtilization",
                &["current", "averageUtilization"],
                Optional,
            ),
            ("currentAverageValue", &["current", "averageValue"], Amount),
            ("container", &["container"], Text),
        ],
    ),
    (
        "external",
        &[
            ("metricName", &["metric", "name"], Text),
            ("metricSelector", &["metric", "selector"], Optional),
            ("currentValue", &["current", "value"], Amount),
            (
                "currentAverageValue",
                &["current", "averageValue"],
                Optional,
            ),
        ],
    ),
];

/// Formats JSON with members in the given order.
fn object_text(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, text)| format!("\"{name}\":{text}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

pub(super) fn list_text(items: &[Value], print: fn(&Value) -> String) -> String {
    let items: Vec<String> = items.iter().map(print).collect();
    format!("[{}]", items.join(","))
}

/// Formats the existing members of an object in the given order.
fn ordered(value: &Value, order: &[&str]) -> String {
    let members: Vec<(&str, String)> = order
        .iter()
        .filter_map(|name| {
            let value = value.at(&[name]).filter(|value| !value.is_null())?;
            Some((*name, value.to_string()))
        })
        .collect();
    object_text(&members)
}

pub(super) fn target_text(metric: &Value) -> String {
    metric_text(metric, &TARGETS)
}

pub(super) fn current_text(metric: &Value) -> String {
    metric_text(metric, &MEASURED)
}

fn metric_text(metric: &Value, forms: &[(&'static str, &[Member])]) -> String {
    let mut parts = vec![("type", Value::string(metric.text(&["type"])).to_string())];
    for (source, members) in forms {
        let Some(given) = metric.at(&[source]).filter(|given| !given.is_null()) else {
            continue;
        };
        let members: Vec<(&str, String)> = members
            .iter()
            .filter_map(|(name, path, presence)| {
                let found = given.at(path).filter(|value| !value.is_null());
                let text = match (found, presence) {
                    (Some(value), Reference) => ordered(value, &["kind", "name", "apiVersion"]),
                    (Some(value), _) if value.as_object().is_some() => {
                        ordered(value, &["matchLabels", "matchExpressions"])
                    }
                    (Some(value), _) => value.to_string(),
                    (None, Optional) => return None,
                    (None, Text) => "\"\"".to_owned(),
                    (None, Amount) => "\"0\"".to_owned(),
                    (None, Reference) => "{\"kind\":\"\",\"name\":\"\"}".to_owned(),
                };
                Some((*name, text))
            })
            .collect();
        parts.push((source, object_text(&members)));
    }
    object_text(&parts)
}

pub(super) fn condition_text(condition: &Value) -> String {
    let order = ["type", "status", "lastTransitionTime", "reason", "message"];
    let member = |name: &'static str| match condition.at(&[name]).filter(|value| !value.is_null()) {
        Some(value) => Some((name, value.to_string())),
        // The time is written even if it is missing.
        None => (name == "lastTransitionTime").then(|| (name, "null".to_owned())),
    };
    object_text(&order.into_iter().filter_map(member).collect::<Vec<_>>())
}

const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const DIRECTIONS: [(&str, &str); 2] = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];

pub(super) fn behavior_text(behavior: &Value) -> String {
    let rules_text = |rules: &Value| {
        let members = RULES.map(|(name, member)| {
            let text = match rules.at(&[member]) {
                Some(Value::Array(policies)) => list_text(policies, |policy| {
                    let number = |member: &str| policy.int(&[member]).unwrap_or(0).to_string();
                    object_text(&[
                        ("Type", Value::string(policy.text(&["type"])).to_string()),
                        ("Value", number("value")),
                        ("PeriodSeconds", number("periodSeconds")),
                    ])
                }),
                Some(value) => value.to_string(),
                None => "null".to_owned(),
            };
            (name, text)
        });
        object_text(&members)
    };
    let members = DIRECTIONS.map(|(name, member)| {
        let rules = behavior.at(&[member]).filter(|rules| !rules.is_null());
        (name, rules.map_or("null".to_owned(), rules_text))
    });
    object_text(&members)
}

/// Returns a member by its name, ignoring case.
fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let map = value.as_object()?;
    let found = map.get(name).or_else(|| {
        let mut members = map.iter();
        members
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    });
    found.filter(|value| !value.is_null())
}

pub(super) fn target_value(metric: &Value) -> Option<Value> {
    let mut read = metric_value(metric, &TARGETS)?;
    for (source, _) in TARGETS {
        let Some(given) = read.at_mut(&[source]).and_then(Value::as_object_mut) else {
            continue;
        };
        let target = given.object_mut("target");
        let (value, average) = (
            target.contains_key("value"),
            target.contains_key("averageValue"),
        );
        let ty = match source {
            "resource" | "containerResource" if target.contains_key("averageUtilization") => {
                "Utilization"
            }
            "object" if !average => "Value",
            "external" if value => "Value",
            _ => "AverageValue",
        };
        // `v1` cannot omit the value of an object metric and writes 0.
        let nothing = matches!(target.get_str("value"), Some("0" | ""));
        if source == "object" && average && nothing {
            target.remove("value");
        }
        target.insert("type", ty.into());
    }
    Some(read)
}

pub(super) fn current_value(metric: &Value) -> Option<Value> {
    metric_value(metric, &MEASURED)
}

/// Parses a metric as `v1` writes it.
fn metric_value(metric: &Value, forms: &[(&'static str, &[Member])]) -> Option<Value> {
    metric.as_object()?;
    let mut read = Map::new();
    let ty = member(metric, "type").cloned();
    read.insert("type", ty.unwrap_or_else(|| Value::string("")));
    for (source, members) in forms {
        let Some(given) = member(metric, source) else {
            continue;
        };
        given.as_object()?;
        let out = read.object_mut(source);
        for (name, path, presence) in *members {
            let found = member(given, name).cloned();
            let value = match (found, presence) {
                (Some(value), _) => value,
                (None, Optional) => continue,
                (None, Text) => Value::string(""),
                (None, Amount) => Value::string("0"),
                (None, Reference) => Value::object(),
            };
            match path {
                [outer, inner] => out.object_mut(outer).insert(*inner, value),
                [only] => out.insert(*only, value),
                _ => None,
            };
        }
    }
    Some(Value::Object(read))
}

pub(super) fn behavior_value(behavior: &Value) -> Option<Value> {
    behavior.as_object()?;
    let mut read = Map::new();
    for (_, direction) in DIRECTIONS {
        let Some(rules) = member(behavior, direction) else {
            continue;
        };
        rules.as_object()?;
        let out = read.object_mut(direction);
        for (_, name) in RULES {
            let Some(value) = member(rules, name) else {
                continue;
            };
            let value = match value {
                Value::Array(policies) => {
                    let policies: Option<Vec<Value>> = policies.iter().map(policy_value).collect();
                    Value::Array(policies?)
                }
                other => other.clone(),
            };
            out.insert(name, value);
        }
    }
    (!read.is_empty()).then_some(Value::Object(read))
}

fn policy_value(policy: &Value) -> Option<Value> {
    policy.as_object()?;
    let mut read = Map::new();
    for name in ["type", "value", "periodSeconds"] {
        let missing = || match name {
            "type" => Value::string(""),
            _ => Value::Int(0),
        };
        let value = member(policy, name).cloned().unwrap_or_else(missing);
        read.insert(name, value);
    }
    Some(Value::Object(read))
}
