//! JSON pointers: paths as JSON patch writes them (RFC 6901).

use bareboat_api::Value;

/// A parsed pointer.
pub(super) struct Pointer(Vec<Token>);

/// One step of a pointer: a member's name or an index.
#[derive(PartialEq)]
pub(super) struct Token(String);

impl Pointer {
    /// Reads a pointer; nothing if it neither is empty nor starts with a slash.
    pub(super) fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let tokens = text.strip_prefix('/')?.split('/');
        Some(Pointer(
            // `~1` goes first, so that `~01` means `~1`.
            tokens
                .map(|token| Token(token.replace("~1", "/").replace("~0", "~")))
                .collect(),
        ))
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the other pointer leads to a place inside this one's.
    pub(super) fn is_above(&self, other: &Pointer) -> bool {
        other.0.len() > self.0.len() && other.0.starts_with(&self.0)
    }

    /// The value at this place.
    pub(super) fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(document, |value, token| match value {
                Value::Object(members) => members.get(token.name()),
                Value::Array(items) => items.get(token.index(items.len())?),
                _ => None,
            })
    }

    /// The container of this place and the last step; nothing for the document itself or when the
    /// container is missing.
    pub(super) fn parent<'a>(&self, document: &'a mut Value) -> Option<(&'a mut Value, &Token)> {
        let (last, above) = self.0.split_last()?;
        let parent = above
            .iter()
            .try_fold(document, |value, token| match value {
                Value::Object(members) => members.get_mut(token.name()),
                Value::Array(items) => {
                    let index = token.index(items.len())?;
                    items.get_mut(index)
                }
                _ => None,
            })?;
        Some((parent, last))
    }
}

impl Token {
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// The index in a list of `len` elements; a negative one counts from the end.
    pub(super) fn index(&self, len: usize) -> Option<usize> {
        let (digits, negative) = match self.0.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (self.0.as_str(), false),
        };
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        if digits.is_empty() || !plain || (digits.len() > 1 && digits.starts_with('0')) {
            return None;
        }
        let number: usize = digits.parse().ok()?;
        if negative {
            len.checked_sub(number)
        } else {
            Some(number)
        }
    }
}
