//! Syntax checks for names: DNS labels and subdomains, qualified names, label values, path
//! segments.
//!
//! Every check returns error messages with Kubernetes' text, because operators' tests match on
//! them. An empty list means that the name is valid.

use crate::kind::NameRule;

/// The maximum length of a DNS label in bytes.
pub const LABEL_MAX: usize = 63;
/// The maximum length of a DNS subdomain in bytes.
pub const SUBDOMAIN_MAX: usize = 253;

const LABEL_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_REGEX: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035_REGEX: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_SHAPE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

impl NameRule {
    /// Returns the errors in a complete name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Subdomain => dns1123_subdomain(name),
            NameRule::Label => dns1123_label(name),
            NameRule::Label1035 => dns1035_label(name),
            NameRule::PathSegment => path_segment(name),
        }
    }

    /// Returns the errors in a name prefix to which a random suffix will be appended.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            NameRule::PathSegment => path_segment_prefix(prefix),
            rule => rule.check(&mask_trailing_dash(prefix)),
        }
    }
}

/// Replaces a dash at the end, which is valid before a suffix; like upstream, the character before
/// it is dropped too.
fn mask_trailing_dash(name: &str) -> String {
    let bytes = name.as_bytes();
    if bytes.len() < 2 || bytes.last() != Some(&b'-') {
        return name.to_owned();
    }
    let kept = String::from_utf8_lossy(&bytes[..bytes.len() - 2]);
    format!("{kept}a")
}

/// Returns whether this is a lower-case DNS label, except for its length.
pub fn is_dns1123_label(name: &str) -> bool {
    shaped(name, |byte| byte == b'-', lower_alphanumeric)
}

/// Returns whether this is a lower-case DNS subdomain, except for its length.
pub fn is_dns1123_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns1123_label)
}

/// Returns the errors in a lower-case DNS label.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_MAX, "characters");
    if is_dns1123_label(name) {
        return wrong;
    }
    if is_dns1123_subdomain(name) {
        wrong.push("must not contain dots".to_owned());
    } else {
        wrong.push(with_regex(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            LABEL_REGEX,
            &["my-name", "123-abc"],
        ));
    }
    wrong
}

/// Returns the errors in a lower-case DNS subdomain.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    subdomain(name, "characters")
}

fn subdomain(name: &str, unit: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_MAX, unit);
    if !is_dns1123_subdomain(name) {
        wrong.push(with_regex(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_REGEX,
            &["example.com"],
        ));
    }
    wrong
}

/// Returns the errors in a DNS label that must start with a letter.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_MAX, "characters");
    let starts_well = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !starts_well || !is_dns1123_label(name) {
        wrong.push(with_regex(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035_REGEX,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// Returns the errors in a label key, finalizer or other name with an optional domain before a
/// slash.
pub fn qualified_name(name: &str) -> Vec<String> {
    // Most names have no domain and are valid.
    if name.len() <= LABEL_MAX && is_qualified_part(name) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    let mut parts = name.split('/');
    let local = match (parts.next(), parts.next(), parts.next()) {
        (Some(local), None, _) => local,
        (Some(""), Some(local), None) => {
            wrong.push("prefix part must be non-empty".to_owned());
            local
        }
        (Some(prefix), Some(local), None) => {
            for message in subdomain(prefix, "bytes") {
                wrong.push(format!("prefix part {message}"));
            }
            local
        }
        _ => {
            let shape = qualified_shape();
            return vec![format!(
                "a valid label key {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if local.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    for message in too_long(local, LABEL_MAX, "bytes") {
        wrong.push(format!("name part {message}"));
    }
    if !is_qualified_part(local) {
        wrong.push(format!("name part {}", qualified_shape()));
    }
    wrong
}

/// Returns the errors in the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_MAX, "bytes");
    if !value.is_empty() && !is_qualified_part(value) {
        wrong.push(with_regex(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({QUALIFIED_REGEX})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// Returns the errors in a name that becomes one segment of a path.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

/// Returns the errors in the start of a name that becomes one segment of a path.
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|mark| name.contains(mark))
        .map(|mark| format!("may not contain '{mark}'"))
        .collect()
}

/// Returns the errors in a key of a ConfigMap or Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut wrong = too_long(key, SUBDOMAIN_MAX, "characters");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(plain) {
        wrong.push(with_regex(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." | ".." => wrong.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// Returns whether Go prints this character instead of escaping it.
pub fn is_printable(character: char) -> bool {
    // Printable characters in Go are Unicode's letters, marks, numbers, punctuation and symbols,
    // and of all spaces only U+0020.
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    !(character.is_control() || character.is_whitespace() || is_format(character))
}

/// Returns whether this is an invisible character that controls the direction or joining of text,
/// or one of private use.
fn is_format(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

fn is_qualified_part(name: &str) -> bool {
    shaped(
        name,
        |byte| matches!(byte, b'-' | b'_' | b'.'),
        |byte| byte.is_ascii_alphanumeric(),
    )
}

/// Returns whether a name is not empty, has `outer` at both ends and `outer` or `inner` between.
fn shaped(name: &str, inner: impl Fn(u8) -> bool, outer: impl Fn(u8) -> bool) -> bool {
    let bytes = name.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            outer(first) && outer(last) && bytes.iter().all(|&byte| outer(byte) || inner(byte))
        }
        _ => false,
    }
}

fn lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn too_long(name: &str, limit: usize, unit: &str) -> Vec<String> {
    if name.len() > limit {
        return vec![format!("must be no more than {limit} {unit}")];
    }
    Vec::new()
}

fn qualified_shape() -> String {
    with_regex(
        QUALIFIED_SHAPE,
        QUALIFIED_REGEX,
        &["MyName", "my.name", "123-abc"],
    )
}

/// Returns an error message with examples and the regular expression, in upstream's wording.
pub fn with_regex(message: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{regex}')");
    }
    let mut shown = String::new();
    for (index, example) in examples.iter().enumerate() {
        if index > 0 {
            shown.push_str(" or ");
        }
        shown.push_str(&format!("'{example}', "));
    }
    format!("{message} (e.g. {shown}regex used for validation is '{regex}')")
}

#[cfg(test)]
mod tests;
