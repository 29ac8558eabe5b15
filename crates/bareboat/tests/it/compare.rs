//! Compares a recorded response with ours, path by path.

use crate::support::{Answer, Value};
use regex::Regex;
use std::sync::LazyLock;

/// Placeholders of volatile values, with their patterns.
static VOLATILE: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    vec![
        ("<rv>", r"\d+"),
        (
            "<uid>",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        ),
        ("<time>", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{6})?Z"),
        ("<age>", r"(\d+[smhdy])+"),
        ("<hash>", r"[A-Za-z0-9+/=]+"),
        ("<continue>", r"[A-Za-z0-9_-]+"),
    ]
});

/// Returns where two responses differ: the path, and the expected and actual value.
pub(crate) fn differences(expected: &Value, answer: &Answer) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if expected["code"] != answer.code {
        let what = format!(
            "{} became {}: {}",
            expected["code"],
            answer.code,
            brief(&answer.text())
        );
        // With a different code, the rest is not comparable.
        return vec![("code".to_owned(), what)];
    }
    let media = expected["contentType"].as_str().unwrap_or("");
    if media != answer.header("content-type") {
        let what = format!("{media} became {}", answer.header("content-type"));
        found.push(("content-type".to_owned(), what));
    }
    for header in ["Warning", "Retry-After"] {
        let wanted: Vec<String> = match &expected[header] {
            Value::Array(values) => values
                .iter()
                .filter_map(|value| value.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        };
        let given = answer.headers(header);
        if wanted != given {
            let what = format!("{wanted:?} became {given:?}");
            found.push((header.to_lowercase(), what));
        }
    }
    let (wanted, given) = bodies(&expected["body"], answer, media);
    compare(wanted, given, &mut found);
    found
}

/// Adds the differences of two bodies.
pub(crate) fn compare(mut wanted: Value, mut given: Value, found: &mut Vec<(String, String)>) {
    tidy(&mut wanted);
    tidy(&mut given);
    let all = "<all causes>";
    if wanted["message"] == all || given["message"] == all {
        wanted["message"] = given["message"].clone();
    }
    walk(&wanted, &given, "", found);
}

/// Returns both bodies in a comparable form.
fn bodies(expected: &Value, answer: &Answer, media: &str) -> (Value, Value) {
    let yaml = |text: &str| -> Value {
        match bareboat_wire::yaml::parse(text.as_bytes()) {
            Ok(parsed) => serde_json::from_slice(&parsed.value.to_json()).unwrap_or_default(),
            Err(_) => Value::from(text),
        }
    };
    match expected {
        Value::String(text) if media == "application/yaml" => (yaml(text), yaml(&answer.text())),
        Value::String(text) => (
            Value::from(text.trim_end()),
            Value::from(answer.text().trim_end()),
        ),
        other => {
            let given = serde_json::from_slice(&answer.bytes);
            (
                other.clone(),
                given.unwrap_or_else(|_| Value::from(answer.text())),
            )
        }
    }
}

/// Sorts unordered lists and removes members that were not recorded.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, member) in map.iter_mut() {
                tidy(member);
                let Value::Array(items) = member else {
                    continue;
                };
                match key.as_str() {
                    "managedFields" => items.sort_by_key(sorting_key),
                    "causes" => {
                        items.sort_by_key(sorting_key);
                        // Some problems are reported twice.
                        items.dedup();
                    }
                    "columnDefinitions" => items.iter_mut().for_each(|column| {
                        if let Value::Object(column) = column {
                            column.remove("description");
                        }
                    }),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn sorting_key(item: &Value) -> String {
    let parts = [
        "manager",
        "operation",
        "subresource",
        "apiVersion",
        "field",
        "reason",
        "message",
        "fieldsV1",
    ];
    parts.map(|part| item[part].to_string()).join("|")
}

fn walk(wanted: &Value, given: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match (wanted, given) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let path = join(path, key);
                match b.get(key) {
                    Some(other) => walk(value, other, &path, found),
                    None => found.push((path, format!("{} is missing", short(value)))),
                }
            }
            for (key, value) in b {
                if !a.contains_key(key) {
                    found.push((join(path, key), format!("{} is new", short(value))));
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (one, other)) in a.iter().zip(b).enumerate() {
                walk(one, other, &format!("{path}[{index}]"), found);
            }
        }
        (Value::String(a), Value::String(b)) if same_text(a, b) => {}
        // Ages of objects with a fixed date have grown since the recording.
        (Value::String(a), Value::String(b))
            if path.contains("cells") && is_age(a) && is_age(b) => {}
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ if wanted == given => {}
        _ => found.push((
            path.to_owned(),
            format!("{} became {}", short(wanted), short(given)),
        )),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns whether two texts are equal, apart from volatile values and Go internals.
fn same_text(wanted: &str, given: &str) -> bool {
    if wanted == given || speaks_of_its_program(wanted) {
        return true;
    }
    let (wanted, given) = &same_values(wanted, given);
    if wanted == given {
        return true;
    }
    if !VOLATILE.iter().any(|(name, _)| wanted.contains(name)) {
        return false;
    }
    let mut pattern = regex::escape(wanted);
    for (name, form) in VOLATILE.iter() {
        pattern = pattern.replace(&regex::escape(name), form);
    }
    Regex::new(&format!("^{pattern}$")).is_ok_and(|pattern| pattern.is_match(given))
}

/// Returns two messages with the printed value in the same form. kube-apiserver prints some values as Go structs; for
/// those only the field path is compared.
fn same_values(wanted: &str, given: &str) -> (String, String) {
    let unchanged = || (wanted.to_owned(), given.to_owned());
    let (Some(a), Some(b)) = (Printed::find(wanted), Printed::find(given)) else {
        return unchanged();
    };
    let inside = a.has_struct();
    let plain = |message: &str, found: &Printed| {
        let value = match inside {
            true => "<value>".to_owned(),
            false => found.value.to_string(),
        };
        format!(
            "{}{value}{}",
            &message[..found.start],
            &message[found.end..]
        )
    };
    (plain(wanted, &a), plain(given, &b))
}

/// A value printed in a message.
struct Printed {
    start: usize,
    end: usize,
    value: Value,
}

impl Printed {
    /// Finds the first map or list after `value: `.
    fn find(message: &str) -> Option<Printed> {
        let start = message.find("value: ")? + "value: ".len();
        let rest = message[start..]
            .starts_with(['{', '['])
            .then_some(&message[start..])?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let end = start + values.byte_offset();
        Some(Printed { start, end, value })
    }

    /// Returns whether member names are capitalized, as in Go structs.
    fn has_struct(&self) -> bool {
        let first = match &self.value {
            Value::Array(items) => items.first(),
            other => Some(other),
        };
        let names = first.and_then(Value::as_object).into_iter().flatten();
        names
            .map(|(name, _)| name)
            .any(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
    }
}

fn is_age(text: &str) -> bool {
    static AGE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^(\d+[smhdy])+$").expect("a good pattern"));
    AGE.is_match(text)
}

/// Returns whether a message shows Go internals; then only code, reason and fields are compared.
fn speaks_of_its_program(text: &str) -> bool {
    [
        "json: cannot unmarshal",
        "Go struct field",
        ", got &",
        "in map: map[",
        "map: map[",
        "unrecognized type: ",
        "order in patch list:\n[map[",
        "expected a map, but received",
        "expected a slice, but received",
        "unable to find api field in struct",
        "list element types are not identical",
        "accessor error",
        "json parse error",
        "looking for beginning of value",
        "unexpected end of JSON input",
        "illegal base64 data",
        "parsing time ",
        "quantities must match the regular expression",
        "unknown conversion",
        "is registered for version",
        "StorageError",
        "strconv.",
        "invalid character '",
        "time: invalid duration",
        "is immutable after creation\n@@",
        "for bound claims\n@@",
        "previously negative)\n@@",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

fn short(value: &Value) -> String {
    brief(&value.to_string())
}

fn brief(text: &str) -> String {
    if text.chars().count() <= 160 {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(160).collect::<String>())
}
