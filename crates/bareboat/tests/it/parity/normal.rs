//! Replaces volatile values by placeholders.

use crate::support::{Answer, Value, json};
use regex::Regex;
use std::sync::LazyLock;

static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a pattern")
});
/// Matches present times. Times in the corpus are of another century or long past.
static NOW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"20[2-9]\d-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{6})?Z").expect("a pattern")
});
/// The service range of the recorded server.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^10\.0\.0\.\d{1,3}$").expect("a pattern"));

static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""10\.0\.0\.\d{1,3}""#).expect("a pattern"));
/// Node ports in tables.
static PORT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r":3[0-2]\d{3}/").expect("a pattern"));

/// Returns a response as recorded: code, warnings, body.
pub(super) fn recorded(answer: &Answer) -> Value {
    let mut body: Value =
        serde_json::from_slice(&answer.bytes).unwrap_or_else(|_| answer.text().into());
    normalise(&mut body);
    // The message lists the causes in arbitrary order.
    if body["details"]["causes"]
        .as_array()
        .is_some_and(|causes| causes.len() > 1)
    {
        body["message"] = "<all causes>".into();
    }
    let mut recorded = json!({"code": answer.code, "body": body});
    let warnings = answer.headers("warning");
    if !warnings.is_empty() {
        recorded["warning"] = warnings.into();
    }
    recorded
}

/// Replaces volatile values in a body.
pub(super) fn normalise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let made = map.get("generateName").and_then(Value::as_str);
            if let Some(made) = made.map(|prefix| format!("{prefix}<random>")) {
                map.insert("name".to_owned(), made.into());
            }
            for (key, member) in map.iter_mut() {
                match (key.as_str(), &*member) {
                    ("resourceVersion", Value::String(text))
                        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) =>
                    {
                        *member = "<rv>".into();
                    }
                    ("nodePort" | "healthCheckNodePort", Value::Number(_)) => {
                        *member = "<port>".into();
                    }
                    _ => normalise(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::String(text) => *text = plain(text),
        _ => {}
    }
}

/// Returns whether a text is a service address of the recorded server.
pub(super) fn is_address(text: &str) -> bool {
    text.starts_with("10.") && ADDRESS.is_match(text)
}

/// Replaces uids, present times and addresses in a text.
pub(super) fn plain(text: &str) -> String {
    let mut plain = text.to_owned();
    // Most texts have none of these, and patterns are slow in debug builds.
    if text.len() >= 36 && text.contains('-') {
        plain = UID.replace_all(&plain, "<uid>").into_owned();
    }
    if text.len() >= 20 && text.contains("Z") && text.contains("20") {
        let form = |found: &regex::Captures<'_>| match found.get(1) {
            Some(_) => "<microtime>",
            None => "<time>",
        };
        plain = NOW.replace_all(&plain, form).into_owned();
    }
    if text.contains("10.") {
        plain = ADDRESS.replace_all(&plain, "<address>").into_owned();
        plain = QUOTED.replace_all(&plain, "\"<address>\"").into_owned();
    }
    if text.ends_with("P") && text.contains(":3") {
        plain = PORT.replace_all(&plain, ":<port>/").into_owned();
    }
    plain
}
