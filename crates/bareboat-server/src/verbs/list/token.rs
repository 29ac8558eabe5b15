//! Continue tokens: the position in a list, opaque to clients.

use bareboat_api::{Status, Value};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const VERSION: &str = "meta.k8s.io/v1";

/// The position in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The revision of all pages; `None` to continue at the newest.
    pub(super) revision: Option<u64>,
    /// The key of the last item sent.
    pub(super) after: String,
    /// How many items are left, if they were counted.
    pub(super) left: Option<usize>,
}

impl Token {
    /// Encodes the token. Keys are relative to the collection, so that a token cannot leave it.
    pub(super) fn print(&self, prefix: &str) -> String {
        let relative = self.after.strip_prefix(prefix).unwrap_or(&self.after);
        let mut token = bareboat_api::value!({
            "v": VERSION,
            "rv": (self.revision.map_or(-1, |revision| revision as i64)),
            "start": (format!("{relative}\0")),
        });
        if let Some(left) = self.left {
            token.make_object().insert("left", Value::Int(left as i64));
        }
        URL_SAFE_NO_PAD.encode(token.to_json())
    }

    /// Parses a token of the collection under `prefix`.
    pub(super) fn parse(text: &str, prefix: &str) -> Result<Token, Status> {
        let refuse = |why: &str| {
            Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| refuse(&error.to_string()))?;
        let token = bareboat_wire::json::parse(&bytes)
            .map_err(|error| refuse(&error.to_string()))?
            .value;
        if token.get("v").and_then(Value::as_str) != Some(VERSION) {
            return Err(refuse("server does not recognize this encoded version"));
        }
        let revision = match token.get("rv").and_then(Value::as_i64) {
            Some(-1) => None,
            Some(revision) if revision > 0 => Some(revision as u64),
            _ => return Err(refuse("the version is missing or not a number")),
        };
        let start = token.get("start").and_then(Value::as_str).unwrap_or("");
        let start = start.strip_suffix('\0').unwrap_or(start);
        if start.is_empty() {
            return Err(refuse("the start is missing"));
        }
        if start.split('/').any(|part| part == "." || part == "..") {
            return Err(refuse("the start leads out of the collection"));
        }
        let left = token.get("left").and_then(Value::as_i64);
        Ok(Token {
            revision,
            after: format!("{prefix}{start}"),
            left: left.and_then(|left| usize::try_from(left).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_token_parses_to_itself() {
        let token = Token {
            revision: Some(7),
            after: "a/b".into(),
            left: Some(3),
        };
        assert_eq!(
            Token::parse(&token.print("a/"), "a/").expect("valid"),
            token
        );
        assert_eq!(Token::parse(&token.print(""), "").expect("valid"), token);
    }

    #[test]
    fn invalid_tokens_are_refused() {
        let strange = |json: &str| URL_SAFE_NO_PAD.encode(json);
        for text in [
            "zzz".to_owned(),
            "%%%".to_owned(),
            strange("{}"),
            strange(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            strange(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../a"}"#),
            strange(r#"{"v":"meta.k8s.io/v1","rv":5}"#),
        ] {
            assert!(Token::parse(&text, "").is_err(), "{text}");
        }
    }
}
