//! Continue tokens: the version of the first page, and the place of the last row in the order.

use crate::param::Param;
use bareboat_api::{Value, value};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// The longest token.
const LONGEST: usize = 16 << 10;

/// A place in an ordered answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    /// The `rev` of the first page, which all pages repeat.
    pub rev: i64,
    /// The values of the last row, in the order of the keys.
    pub(crate) place: Vec<Param>,
}

impl Cursor {
    /// Reads a token.
    pub fn parse(token: &str) -> Option<Cursor> {
        if token.len() > LONGEST {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let document = bareboat_wire::json::parse(&bytes).ok()?.value;
        let place = document
            .get("place")?
            .as_array()?
            .iter()
            .map(|value| match value {
                Value::String(text) => Some(Param::Text(text.to_string())),
                Value::Null => Some(Param::Null),
                other => match other.as_i64() {
                    Some(number) => Some(Param::Int(number)),
                    None => other.as_f64().map(Param::Real),
                },
            });
        Some(Cursor {
            rev: document.get("rev")?.as_i64()?,
            place: place.collect::<Option<_>>()?,
        })
    }

    /// Prints the token.
    pub fn print(&self) -> String {
        let place = self.place.iter().map(|value| match value {
            Param::Text(text) => Value::string(text),
            Param::Int(number) => value!(*number),
            Param::Real(number) => value!(*number),
            _ => Value::Null,
        });
        let place: Value = place.collect();
        let document = value!({"rev": (self.rev), "place": (place)});
        BASE64_URL_SAFE_NO_PAD.encode(document.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;
    use crate::param::Param;

    #[test]
    fn tokens_survive_the_way_to_a_client_and_back() {
        let place = vec![
            Param::Text("ä\"'".to_owned()),
            Param::Int(-7),
            Param::Real(1.5),
            Param::Null,
        ];
        let cursor = Cursor { rev: 42, place };
        assert_eq!(Cursor::parse(&cursor.print()), Some(cursor));
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "abc", "e30", "eyJyZXYiOjF9", "…"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
