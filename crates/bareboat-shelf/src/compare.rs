//! Comparing texts of fields: equal as texts, ordered as integers, quantities or times.

use bareboat_api::quantity::Quantity;
use bareboat_api::time::Timestamp;
use std::cmp::Ordering;

/// A constant in a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A text.
    Text(String),
    /// A number, as it was written.
    Number(String),
    /// SQL's unknown value.
    Null,
}

impl Literal {
    /// Returns the text of the constant; `None` for NULL.
    pub fn text(&self) -> Option<&str> {
        match self {
            Literal::Text(text) | Literal::Number(text) => Some(text),
            Literal::Null => None,
        }
    }
}

/// Compares two texts by what they mean: integers, quantities or times. `None` if they mean different things, or nothing.
pub(crate) fn by_meaning(left: &str, right: &str) -> Option<Ordering> {
    if let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) {
        return Some(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (seconds(left), seconds(right)) {
        return Some(left.cmp(&right));
    }
    let (left, right) = (Quantity::parse(left).ok()?, Quantity::parse(right).ok()?);
    left.as_f64().partial_cmp(&right.as_f64())
}

/// Compares as [`by_meaning`], or else as texts.
pub(crate) fn by_meaning_or_text(left: &str, right: &str) -> Ordering {
    by_meaning(left, right).unwrap_or_else(|| left.cmp(right))
}

/// Reads a time: RFC 3339, `2006-01-02` or `2006-01-02 15:04:05` in UTC. Returns seconds and nanoseconds.
pub(crate) fn seconds(text: &str) -> Option<(i64, u32)> {
    let bytes = text.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let parsed = match bytes.len() {
        10 => Timestamp::parse(&format!("{text}T00:00:00Z")),
        19 if bytes[10] == b' ' => Timestamp::parse(&format!("{}T{}Z", &text[..10], &text[11..])),
        _ => Timestamp::parse(text),
    };
    parsed.ok().map(|time| (time.seconds, time.nanos))
}

#[cfg(test)]
mod tests {
    use super::by_meaning;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn texts_are_ordered_by_their_meaning() {
        assert_eq!(by_meaning("9", "10"), Some(Less));
        assert_eq!(by_meaning("1Gi", "1000Mi"), Some(Greater));
        assert_eq!(
            by_meaning("2020-01-02", "2020-01-02T00:00:00Z"),
            Some(Equal)
        );
        assert_eq!(by_meaning("abc", "1"), None);
        assert_eq!(by_meaning("ab漢字漢字漢字", "2020-01-02"), None);
    }
}
