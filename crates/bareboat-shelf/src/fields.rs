//! Field selectors over any path: `=`, `==`, `!=`, `in`, `notin`, existence, `<` and `>`.
//!
//! Absent fields behave as in label selectors: `!=` and `notin` match them. A path through a list matches if any element does.

use crate::compare::by_meaning;
use crate::path::{Path, PathError};
use crate::scan::{self, Leaf};
use std::cmp::Ordering;

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// One of the values.
    In,
    /// None of the values, or absent.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// Greater than the value: integers, quantities or times.
    Greater,
    /// Less than the value.
    Less,
}

/// One condition on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Where the field is.
    pub path: Path,
    /// How it is compared.
    pub operator: FieldOperator,
    /// What it is compared with.
    pub values: Vec<String>,
}

impl FieldRequirement {
    /// Judges the object with this body.
    pub(crate) fn matches_body(&self, body: &[u8]) -> bool {
        let mut hit = false;
        scan::leaves(body, self.path.steps(), &mut |leaf: Leaf<'_>| {
            hit = match self.operator {
                FieldOperator::Exists | FieldOperator::DoesNotExist => true,
                _ => leaf.text().is_some_and(|text| self.is_hit(text)),
            };
            !hit
        });
        hit != self.is_negative()
    }

    /// Judges the text of a field that has no list in its path.
    pub(crate) fn matches_text(&self, text: Option<&str>) -> bool {
        let hit = match self.operator {
            FieldOperator::Exists | FieldOperator::DoesNotExist => text.is_some(),
            _ => text.is_some_and(|text| self.is_hit(text)),
        };
        hit != self.is_negative()
    }

    fn is_negative(&self) -> bool {
        matches!(
            self.operator,
            FieldOperator::NotIn | FieldOperator::DoesNotExist
        )
    }

    fn is_hit(&self, text: &str) -> bool {
        let bound = || self.values.first().map_or("", String::as_str);
        match self.operator {
            FieldOperator::In | FieldOperator::NotIn => {
                self.values.iter().any(|value| value == text)
            }
            FieldOperator::Greater => by_meaning(text, bound()) == Some(Ordering::Greater),
            FieldOperator::Less => by_meaning(text, bound()) == Some(Ordering::Less),
            FieldOperator::Exists | FieldOperator::DoesNotExist => true,
        }
    }
}

/// Parses a field selector: requirements separated by commas.
pub fn parse_field_selector(text: &str) -> Result<Vec<FieldRequirement>, PathError> {
    let parts = split(text).into_iter().map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(requirement).collect()
}

/// Splits at commas outside of brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            // Quotes are special in brackets and at the start of a step; elsewhere they belong to a value.
            (None, '\'' | '"') if depth > 0 || text[..at].ends_with('.') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(text: &str) -> Result<FieldRequirement, PathError> {
    let make = |path: &str, operator, values| {
        Ok(FieldRequirement {
            path: Path::parse(path.trim())?,
            operator,
            values,
        })
    };
    if let Some(path) = text.strip_prefix('!')
        && !path.starts_with('=')
    {
        return make(path, FieldOperator::DoesNotExist, Vec::new());
    }
    let end = end_of_path(text);
    let (path, rest) = text.split_at(end);
    let rest = rest.trim();
    if rest.is_empty() {
        return make(path, FieldOperator::Exists, Vec::new());
    }
    let operators = [
        ("==", FieldOperator::In),
        ("!=", FieldOperator::NotIn),
        ("=", FieldOperator::In),
        (">", FieldOperator::Greater),
        ("<", FieldOperator::Less),
    ];
    for (sign, operator) in operators {
        if let Some(value) = rest.strip_prefix(sign) {
            return make(path, operator, vec![value.trim().to_owned()]);
        }
    }
    for (word, operator) in [("in", FieldOperator::In), ("notin", FieldOperator::NotIn)] {
        let inside = rest.strip_prefix(word).map(str::trim);
        let inside = inside.and_then(|list| list.strip_prefix('(')?.strip_suffix(')'));
        if let Some(inside) = inside {
            let values = inside.split(',').map(|value| value.trim().to_owned());
            return make(path, operator, values.collect());
        }
    }
    // The whole text is no path, so this explains what is wrong with it.
    Path::parse(text).and_then(|_| make(path, FieldOperator::Exists, Vec::new()))
}

/// Returns where the path at the start of a requirement ends.
fn end_of_path(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '=' | '!' | '<' | '>' | ' ' | '\t') => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{FieldOperator, parse_field_selector};

    const BODY: &[u8] = br#"{"metadata":{"annotations":{"test.io":"v1"}},"spec":{"containers":[{"image":"nginx:1"},{"image":"b"}],"replicas":3}}"#;

    fn matches(selector: &str) -> bool {
        let parsed = parse_field_selector(selector).expect("it parses");
        parsed.iter().all(|one| one.matches_body(BODY))
    }

    #[test]
    fn selectors_of_the_documentation_match() {
        assert!(matches(
            "metadata.annotations['test.io'] in (v1,v2),.spec.replicas=3"
        ));
        assert!(matches("!metadata.annotations['x']"));
        assert!(matches("spec.containers[].image=nginx:1"));
        assert!(matches("spec.replicas>2,spec.replicas<10"));
        assert!(matches("spec.paused!=true"));
        assert!(matches("spec.containers[1].image notin (nginx:1)"));
        assert!(matches("spec.containers"));
        assert!(!matches("spec.replicas>3"));
        assert!(!matches("!spec.replicas"));
        assert!(!matches("spec.containers[].image!=b"));
    }

    #[test]
    fn wrong_selectors_are_refused() {
        for text in [
            "[0]=x",
            "metadata.annotations[test.io]=x",
            "spec.containers[]==x",
            "a in b",
            "=x",
            "a ~ b",
        ] {
            assert!(parse_field_selector(text).is_err(), "{text} parses");
        }
        let empty = parse_field_selector("a=").expect("it parses");
        assert_eq!(empty[0].operator, FieldOperator::In);
        assert_eq!(empty[0].values, [""]);
    }
}
