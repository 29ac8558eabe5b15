//! Patterns as definitions write them, in Go's dialect, compiled when they are first matched.

use bareboat_cel::compile_go_regex;
use regex::Regex;
use std::sync::OnceLock;

/// A regular expression that is compiled when it is first needed.
#[derive(Debug)]
pub(crate) struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Pattern {
        Pattern {
            source: source.into(),
            compiled: OnceLock::new(),
        }
    }

    /// The text as the definition has it.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether some part of the text matches; the error says why the pattern is no pattern.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, &str> {
        match self.compiled.get_or_init(|| compile_go_regex(&self.source)) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(reason) => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let compiled = Pattern::new(pattern);
            assert_eq!(
                compiled.matches(text),
                Ok(expected),
                "{pattern} on {text:?}"
            );
        };
        check(r"^\d+$", "123", true);
        check(r"^\d+$", "١٢٣", false);
        check(r"^\w+$", "é", false);
        check(r"^[\w-]+$", "a-b_c", true);
        check(r"^[^\s]+$", "a b", false);
        check(r"^[[]x]$", "[x]", true);
        check(r"^[]a]+$", "]a", true);
        check(r"^[a&&b]+$", "a&b", true);
        check(r"^[[:alpha:]]+$", "abc", true);
        check(r"^a{,3}$", "a{,3}", true);
        check(r"^a{2,3}$", "aaa", true);
        check(r"^\Qa.b\E$", "a.b", true);
        check(r"^\Qa.b\E$", "axb", false);
        check(r"\bfoo\b", "a foo b", true);
        check(r"\Boo", "foo", true);
        check(r"^[\D]$", "x", true);
        check(r"^\/\-\_$", "/-_", true);
        check(r"^\x41\101$", "AA", true);
        check(r"^[-A-Za-z0-9/._~!$&'()*+,;=:@]+$", "a/b~c&d", true);
        check(r"^x$", "x\n", false);
    }

    #[test]
    fn a_pattern_outside_the_dialect_says_so() {
        assert!(Pattern::new("a(?=b)").matches("ab").is_err());
        assert!(Pattern::new("(").matches("").is_err());
        assert!(Pattern::new(r"\1").matches("").is_err());
        assert!(
            Pattern::new("((a{0,1000}){0,1000}){0,1000}")
                .matches("")
                .is_err()
        );
    }
}
