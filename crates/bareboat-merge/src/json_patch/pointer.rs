//! JSON pointers (RFC 6901), parsed as leniently as in Kubernetes.

use bareboat_api::Value;

/// A parsed pointer.
pub(super) struct Pointer(Vec<Token>);

/// One step of a pointer: a member's name or an index.
pub(super) struct Token(String);

impl Pointer {
    /// Parses a pointer; `None` for a text that is not empty and has no slash. Text before the
    /// first slash is ignored.
    pub(super) fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let tokens = text.split_once('/')?.1.split('/');
        Some(Pointer(
            // `~1` is replaced first, so that `~01` means `~1`.
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

    /// Returns the container of this place and the last step; `None` for the document itself or a
    /// missing container.
    pub(super) fn container<'a>(&self, document: &'a Value) -> Option<(&'a Value, &Token)> {
        let (last, above) = self.0.split_last()?;
        let parent = above
            .iter()
            .try_fold(document, |value, token| match value {
                Value::Object(members) => members.get(token.name()),
                Value::Array(items) => items.get(token.index(items.len())?),
                _ => None,
            })?;
        Some((parent, last))
    }

    /// Like `container`, but mutable.
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

    /// Returns the index in a list of `len` elements; a negative one counts from the end. Signs and
    /// leading zeros are allowed.
    pub(super) fn index(&self, len: usize) -> Option<usize> {
        let (digits, negative) = match self.0.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (self.0.strip_prefix('+').unwrap_or(&self.0), false),
        };
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: usize = digits.parse().ok()?;
        if negative && number > 0 {
            len.checked_sub(number)
        } else {
            Some(number)
        }
    }
}
