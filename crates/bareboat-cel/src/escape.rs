//! Escapes property names that are not identifiers.

use bareboat_api::Str;

/// CEL reserved words; `namespace` is the most common one.
pub(crate) const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Returns whether a text is a valid identifier.
///
/// ```
/// assert!(bareboat_cel::is_identifier("replicas_2"));
/// assert!(!bareboat_cel::is_identifier("2nd") && !bareboat_cel::is_identifier("loop"));
/// ```
pub fn is_identifier(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty()
        && !text.as_bytes()[0].is_ascii_digit()
        && text.bytes().all(plain)
        && !RESERVED.contains(&text)
}

/// Returns the identifier of a property in expressions; `None` if it has none.
///
/// ```
/// assert_eq!(bareboat_cel::escape("cluster-name").as_deref(), Some("cluster__dash__name"));
/// assert_eq!(bareboat_cel::escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(bareboat_cel::escape("a b"), None);
/// ```
pub fn escape(property: &str) -> Option<Str> {
    if property.is_empty() || property.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    if RESERVED.contains(&property) {
        return Some(Str::from(format!("__{property}__")));
    }
    let mut out = Str::with_capacity(property.len());
    let mut rest = property;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("__") {
            out.push_str("__underscores__");
            rest = &rest[2..];
            continue;
        }
        match first {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => out.push(first),
            _ => return None,
        }
        rest = &rest[first.len_utf8()..];
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_names_are_escaped_to_identifiers() {
        for (property, identifier) in [
            ("a", Some("a")),
            ("in", Some("__in__")),
            ("namespace", Some("__namespace__")),
            ("a.b/c-d", Some("a__dot__b__slash__c__dash__d")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("1a", None),
            ("", None),
            ("a$b", None),
            ("ä", None),
        ] {
            assert_eq!(escape(property).as_deref(), identifier, "{property}");
        }
    }
}
