//! The query string, decoded once.

use std::borrow::Cow;

/// Maximum number of parameters; no client needs more.
const MOST_PARAMETERS: usize = 1000;

/// The parameters of a query in the order they were sent.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// A query that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedQuery;

impl Query {
    /// Decodes `a=b&c=d`.
    pub fn parse(text: &str) -> Result<Query, MalformedQuery> {
        let mut parameters = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if parameters.len() == MOST_PARAMETERS {
                return Err(MalformedQuery);
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.push((form_decode(key)?, form_decode(value)?));
        }
        Ok(Query(parameters))
    }

    /// Returns the first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a parameter unless it is empty.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// Returns all parameters in the order of the URL.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns all values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }
}

fn form_decode(text: &str) -> Result<String, MalformedQuery> {
    let spaced = if text.contains('+') {
        Cow::Owned(text.replace('+', " "))
    } else {
        Cow::Borrowed(text)
    };
    Ok(percent_decode(&spaced).ok_or(MalformedQuery)?.into_owned())
}

/// Decodes `%41`; `None` if an escape is broken or the result is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'%' {
            let high = char::from(*bytes.get(index + 1)?).to_digit(16)?;
            let low = char::from(*bytes.get(index + 2)?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
            index += 3;
        } else {
            out.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_escapes_and_refuses_broken_ones() {
        let query = Query::parse("a=b%20c+d&x&a=2&e=").expect("well-formed");
        assert_eq!(query.get("a"), Some("b c d"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.given("e"), None);
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["b c d", "2"]);
        for broken in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert!(Query::parse(broken).is_err(), "{broken}");
        }
    }
}
