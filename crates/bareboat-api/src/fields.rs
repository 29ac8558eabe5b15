//! Field selectors: parsing and matching.
//!
//! Each kind declares which fields selectors may name; this module does not know kinds.

use crate::Str;
use crate::labels::SelectorError;
use std::fmt;

/// One condition on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The field, such as `metadata.name`.
    pub field: Str,
    /// The value it is compared with.
    pub value: Str,
    /// Whether the value must differ.
    pub negated: bool,
}

impl Term {
    /// Returns whether a field value satisfies this condition.
    pub fn matches(&self, value: &str) -> bool {
        (self.value == value) != self.negated
    }
}

/// A parsed field selector: conditions that must all hold.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selector {
    terms: Vec<Term>,
}

impl Selector {
    /// Returns the selector that matches every object.
    pub const fn everything() -> Selector {
        Selector { terms: Vec::new() }
    }

    /// Parses the text form, such as `metadata.name=a,status.phase!=Running`.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        let mut parts: Vec<&str> = split_terms(text);
        crate::sort_by(&mut parts, Ord::cmp);
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (field, negated, value) = split_term(part).ok_or_else(|| {
                SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            let value = unescape(value)?;
            // An empty term is no restriction.
            if !field.is_empty() || !value.is_empty() {
                terms.push(Term {
                    field: Str::new(field),
                    value,
                    negated,
                });
            }
        }
        Ok(Selector { terms })
    }

    /// Returns a selector for one value of one field.
    pub fn equals(field: &str, value: &str) -> Selector {
        Selector {
            terms: vec![Term {
                field: Str::new(field),
                value: Str::new(value),
                negated: false,
            }],
        }
    }

    /// Adds a condition.
    pub fn push(&mut self, term: Term) {
        self.terms.push(term);
    }

    /// Returns the terms, all of which an object must match.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Returns whether the selector matches every object.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the value that the selector requires of this field by `=`.
    pub fn pinned(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| !term.negated && term.field == field)
            .map(|term| term.value.as_str())
    }

    /// Returns whether the selector matches an object with these fields; an absent field counts as
    /// empty.
    pub fn matches<'l>(&self, lookup: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.terms
            .iter()
            .all(|term| term.matches(lookup(&term.field).unwrap_or("")))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Escapes the special characters of a value.
pub fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

fn unescape(value: &str) -> Result<Str, SelectorError> {
    let fault = |text: String| Err(SelectorError(format!("invalid field selector: {text}")));
    let mut out = Str::default();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return fault(format!("invalid escape sequence: \\{other}")),
                None => return fault("invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return fault(format!("unescaped character in value: {character}")),
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator and returns the field, whether the operator is `!=`, and the value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = (0..term.len()).find(|&at| {
        let rest = &term.as_bytes()[at..];
        rest.starts_with(b"=") || rest.starts_with(b"!=")
    })?;
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, true, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, false, value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn matches(selector: &str, name: &str) -> bool {
        let selector = Selector::parse(selector).unwrap();
        selector.matches(|field| (field == "metadata.name").then_some(name))
    }

    #[test]
    fn selectors_match_the_documented_objects() {
        assert!(matches("", "a"));
        assert!(matches("metadata.name=a", "a"));
        assert!(matches("metadata.name==a", "a"));
        assert!(matches("metadata.name!=b", "a"));
        assert!(matches("metadata.name=a,status.phase=", "a"));
        assert!(matches(r"metadata.name=a\,b\=\\", r"a,b=\"));
        assert!(matches("metadata.name=a,,", "a"));
        assert!(matches("=", "a"));
        assert!(!matches("metadata.name=a", "b"));
        assert!(!matches("metadata.name=a,metadata.name!=a", "a"));
        assert!(!matches("status.phase=Running", "a"));
    }

    #[test]
    fn invalid_selectors_are_explained() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Selector::parse(text).unwrap_err().to_string(), expected);
        };
        check("a", "invalid selector: 'a'; can't understand 'a'");
        check(
            "a=1,b>2",
            "invalid selector: 'a=1,b>2'; can't understand 'b>2'",
        );
        check(
            "a=b=c",
            "invalid field selector: unescaped character in value: =",
        );
        check(
            r"a=\x",
            r"invalid field selector: invalid escape sequence: \x",
        );
        check(
            r"a=\",
            r"invalid field selector: invalid escape sequence: \",
        );
    }

    #[test]
    fn a_pinned_field_has_one_required_value() {
        let selector = Selector::parse("metadata.name=x,metadata.namespace!=y").unwrap();
        assert_eq!(selector.pinned("metadata.name"), Some("x"));
        assert_eq!(selector.pinned("metadata.namespace"), None);
        assert_eq!(
            selector.to_string(),
            "metadata.name=x,metadata.namespace!=y"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic_the_parser(text in r"[a-c!=,\\é]{0,20}") {
            let _ = Selector::parse(&text);
        }

        #[test]
        fn any_value_survives_escaping(value in ".{0,20}") {
            let selector = Selector::equals("a.b", &value);
            prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
