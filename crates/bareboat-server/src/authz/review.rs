//! A request as the spec of a SubjectAccessReview, for webhooks and their conditions.

use super::Attributes;
use crate::request::info::RequestInfo;
use bareboat_api::labels::{self, Operator};
use bareboat_api::{Map, Str, Value, fields, value};

/// Returns the whole spec, including empty texts, as conditions expect them.
pub(super) fn spec(attributes: Attributes<'_>) -> Value {
    let Attributes { user, info } = attributes;
    let mut extra = Map::new();
    for (key, values) in &user.extra {
        let values: Value = values.iter().map(String::as_str).collect();
        extra.insert(key.as_str(), values);
    }
    let mut spec = value!({
        "user": (user.name.clone()),
        "uid": (user.uid.clone()),
        "groups": (user.groups.iter().cloned().collect::<Value>()),
        "extra": (Value::Object(extra)),
    });
    let (key, asked) = match info.is_resource {
        true => ("resourceAttributes", resource(info)),
        false => (
            "nonResourceAttributes",
            value!({"path": (info.path.as_str()), "verb": (info.verb.clone())}),
        ),
    };
    spec.make_object().insert(key, asked);
    spec
}

/// Removes empty members before the spec is sent.
pub(super) fn sent(mut spec: Value) -> Value {
    fn is_empty(value: &Value) -> bool {
        match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        }
    }
    let spec_map = spec.make_object();
    for key in ["resourceAttributes", "nonResourceAttributes"] {
        if let Some(Value::Object(asked)) = spec_map.get_mut(key) {
            asked.retain(|_, value| !is_empty(value));
        }
    }
    spec_map.retain(|_, value| !is_empty(value));
    spec
}

fn resource(info: &RequestInfo) -> Value {
    let mut asked = value!({
        "namespace": (info.namespace.clone()),
        "verb": (info.verb.clone()),
        "group": (info.group.clone()),
        "version": (info.version.clone()),
        "resource": (info.resource.clone()),
        "subresource": (info.subresource.clone()),
        "name": (info.name.clone()),
    });
    let selectors = [
        ("fieldSelector", field_requirements(&info.field_selector)),
        ("labelSelector", label_requirements(&info.label_selector)),
    ];
    for (key, requirements) in selectors {
        if let Some(requirements) = requirements.filter(|list| !list.is_empty()) {
            let selector = value!({"requirements": (Value::Array(requirements))});
            asked.make_object().insert(key, selector);
        }
    }
    asked
}

fn requirement(key: &str, operator: &str, values: impl IntoIterator<Item = Str>) -> Value {
    let values: Vec<Value> = values.into_iter().map(Value::from).collect();
    let mut requirement = value!({"key": (key), "operator": (operator)});
    if !values.is_empty() {
        let map = requirement.make_object();
        map.insert("values", Value::Array(values));
    }
    requirement
}

/// Returns the requirements of a field selector; `None` if it does not parse, which the request itself reports.
fn field_requirements(text: &str) -> Option<Vec<Value>> {
    let selector = fields::Selector::parse(text).ok()?;
    let terms = selector.terms().iter().map(|term| {
        let operator = match term.negated {
            false => "In",
            true => "NotIn",
        };
        requirement(&term.field, operator, [Str::new(&term.value)])
    });
    Some(terms.collect())
}

fn label_requirements(text: &str) -> Option<Vec<Value>> {
    let selector = labels::Selector::parse(text).ok()?;
    let found = selector.requirements().iter().filter_map(|it| {
        let operator = match it.operator() {
            Operator::In | Operator::Equals | Operator::DoubleEquals => "In",
            Operator::NotIn | Operator::NotEquals => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            // Reviews cannot express these; without them, a wider permission is checked.
            Operator::GreaterThan | Operator::LessThan => return None,
        };
        Some(requirement(it.key(), operator, it.values().iter().cloned()))
    });
    Some(found.collect())
}
