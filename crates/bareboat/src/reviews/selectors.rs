//! Selectors of SubjectAccessReviews in the form requests have them: a text.

use bareboat_api::{Str, Value, fields};

/// Returns the text of a field selector; empty if there is none, or if text cannot express it.
pub(super) fn of_fields(selector: Option<&Value>) -> Str {
    of(selector, |key, operator, values| match (operator, values) {
        ("In", [value]) => Some(format!("{key}={}", fields::escape(value))),
        ("NotIn", [value]) => Some(format!("{key}!={}", fields::escape(value))),
        _ => None,
    })
}

/// Returns the text of a label selector; empty if there is none, or if text cannot express it.
pub(super) fn of_labels(selector: Option<&Value>) -> Str {
    of(selector, |key, operator, values| match operator {
        "In" => Some(format!("{key} in ({})", values.join(","))),
        "NotIn" => Some(format!("{key} notin ({})", values.join(","))),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    })
}

/// Joins the requirements. One that text cannot express is left out, so that a wider permission is checked, never a narrower
/// one.
fn of(selector: Option<&Value>, say: impl Fn(&str, &str, &[&str]) -> Option<String>) -> Str {
    let Some(selector) = selector else {
        return Str::default();
    };
    let raw = selector.get("rawSelector").and_then(Value::as_str);
    if let Some(raw) = raw.filter(|raw| !raw.is_empty()) {
        return Str::new(raw);
    }
    let list = selector.get("requirements").and_then(Value::as_array);
    let said = list.unwrap_or(&[]).iter().filter_map(|requirement| {
        let text = |key: &str| requirement.get(key).and_then(Value::as_str);
        let values = requirement.get("values").and_then(Value::as_array);
        let values = values.unwrap_or(&[]).iter().filter_map(Value::as_str);
        let values: Vec<&str> = values.collect();
        say(text("key")?, text("operator")?, &values)
    });
    Str::new(said.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn requirements_become_the_text_of_a_request() {
        let fields = value!({"requirements": [
            {"key": "metadata.name", "operator": "In", "values": ["a,b"]},
            {"key": "spec.nodeName", "operator": "NotIn", "values": ["n"]},
            {"key": "x", "operator": "In", "values": ["a", "b"]},
        ]});
        let expected = "metadata.name=a\\,b,spec.nodeName!=n";
        assert_eq!(of_fields(Some(&fields)), expected);
        let labels = value!({"requirements": [
            {"key": "a", "operator": "In", "values": ["x", "y"]},
            {"key": "b", "operator": "NotIn", "values": ["z"]},
            {"key": "c", "operator": "Exists"},
            {"key": "d", "operator": "DoesNotExist"},
        ]});
        assert_eq!(of_labels(Some(&labels)), "a in (x,y),b notin (z),c,!d");
        assert_eq!(of_labels(Some(&value!({"rawSelector": "a=b"}))), "a=b");
        assert_eq!(of_labels(None), "");
    }
}
