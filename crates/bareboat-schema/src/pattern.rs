//! Patterns as definitions write them: RE2 as Go speaks it, run by the `regex` crate.
//!
//! The two dialects differ in a few corners (ASCII classes, literal brackets, `\Q…\E`), which
//! [`translate`] evens out. A pattern is compiled when it is first matched.

use regex::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// The most memory one compiled pattern may take.
const SIZE_LIMIT: usize = 16 << 20;

/// A regular expression that is compiled when it is first needed.
#[derive(Debug)]
pub(crate) struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, Box<str>>>,
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
        match self.compiled.get_or_init(|| compile(&self.source)) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(reason) => Err(reason),
        }
    }
}

/// Compiles a pattern of Go's dialect.
pub(crate) fn compile(source: &str) -> Result<Regex, Box<str>> {
    RegexBuilder::new(&translate(source))
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(1 << 20)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "expression is too big".into(),
            other => {
                let text = other.to_string();
                let line = text.lines().last().unwrap_or("");
                let reason = line.trim_start_matches("error: ");
                format!("error parsing regexp: {reason}: `{source}`").into()
            }
        })
}

/// Rewrites Go's RE2 dialect into that of the `regex` crate.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        let tail = &rest[character.len_utf8()..];
        rest = match character {
            '\\' => escape(tail, false, &mut out),
            '[' => class(tail, &mut out),
            // A brace that opens no counted repetition is a brace.
            '{' if !is_repetition(tail) => {
                out.push_str("\\{");
                tail
            }
            _ => {
                out.push(character);
                tail
            }
        };
    }
    out
}

/// Rewrites what follows a backslash and gives the rest.
fn escape<'s>(tail: &'s str, in_class: bool, out: &mut String) -> &'s str {
    let Some(character) = tail.chars().next() else {
        out.push('\\');
        return tail;
    };
    let rest = &tail[character.len_utf8()..];
    let open = |out: &mut String, inner: &str, negated: bool| {
        if in_class && !negated {
            out.push_str(inner);
        } else {
            out.push_str(if negated { "[^" } else { "[" });
            out.push_str(inner);
            out.push(']');
        }
    };
    match character {
        'd' => open(out, "0-9", false),
        'D' => open(out, "0-9", true),
        'w' => open(out, "0-9A-Za-z_", false),
        'W' => open(out, "0-9A-Za-z_", true),
        's' => open(out, "\\t\\n\\x0c\\r ", false),
        'S' => open(out, "\\t\\n\\x0c\\r ", true),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        'B' if !in_class => out.push_str("(?-u:\\B)"),
        'Q' if !in_class => {
            let (literal, after) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(literal));
            return after;
        }
        '<' | '>' => out.push(character),
        '0'..='7' => {
            let digits = tail
                .bytes()
                .take(3)
                .take_while(|byte| (b'0'..=b'7').contains(byte))
                .count();
            // Without a leading zero a single digit would be a back reference: leave the error.
            if character == '0' || digits > 1 {
                let code = u32::from_str_radix(&tail[..digits], 8).unwrap_or(0);
                out.push_str(&format!("\\x{{{code:x}}}"));
                return &tail[digits..];
            }
            out.push('\\');
            out.push(character);
        }
        _ => {
            out.push('\\');
            out.push(character);
        }
    }
    rest
}

/// Rewrites a bracketed class whose opening bracket was taken, and gives the rest.
fn class<'s>(tail: &'s str, out: &mut String) -> &'s str {
    out.push('[');
    let mut rest = tail;
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        rest = match character {
            ']' if !first => {
                out.push(']');
                return after;
            }
            ']' => {
                out.push_str("\\]");
                after
            }
            '[' => {
                let named = after
                    .strip_prefix(':')
                    .and_then(|name| name.find(":]").map(|end| (&name[..end], end)))
                    .filter(|(name, _)| {
                        !name.is_empty()
                            && name
                                .bytes()
                                .all(|byte| byte == b'^' || byte.is_ascii_lowercase())
                    });
                match named {
                    Some((name, end)) => {
                        out.push_str("[:");
                        out.push_str(name);
                        out.push_str(":]");
                        &after[end + 3..]
                    }
                    None => {
                        out.push_str("\\[");
                        after
                    }
                }
            }
            '\\' => range_end(escape(after, true, out), out),
            _ => {
                literal(character, out);
                range_end(after, out)
            }
        };
        first = false;
    }
    rest
}

/// Rewrites the upper end of a range, if one follows.
fn range_end<'s>(rest: &'s str, out: &mut String) -> &'s str {
    let Some(after) = rest.strip_prefix('-') else {
        return rest;
    };
    let Some(character) = after.chars().next() else {
        return rest;
    };
    match character {
        // A hyphen before the bracket is a hyphen.
        ']' => rest,
        '\\' => {
            out.push('-');
            escape(&after[1..], true, out)
        }
        _ => {
            out.push('-');
            literal(character, out);
            &after[character.len_utf8()..]
        }
    }
}

/// Writes a character of a class that means itself, also where doubling would make it an operator.
fn literal(character: char, out: &mut String) {
    if matches!(character, '[' | ']' | '&' | '~' | '-' | '^') {
        out.push('\\');
    }
    out.push(character);
}

/// Whether what follows an opening brace counts repetitions.
fn is_repetition(tail: &str) -> bool {
    let Some((counts, _)) = tail.split_once('}') else {
        return false;
    };
    let (low, high) = counts.split_once(',').unwrap_or((counts, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let compiled = Pattern::new(pattern);
            assert_eq!(compiled.matches(text), Ok(expected), "{pattern} on {text:?}");
        };
        check(r"^\d+$", "123", true);
        check(r"^\d+$", "١٢٣", false);
        check(r"^\w+$", "é", false);
        check(r"^[\w-]+$", "a-b_c", true);
        check(r"^[^\s]+$", "a b", false);
        check(r"^[[]x]$", "[x]", true);
        check(r"^[]a]+$", "]a", true);
        check(r"^[a&&b]+$", "a&b", true);
        check(r"^[+--]+$", "+,-", true);
        check(r"^[[:alpha:]]+$", "abc", true);
        check(r"^a{,3}$", "a{,3}", true);
        check(r"^a{2,3}$", "aaa", true);
        check(r"^\Qa.b\E$", "a.b", true);
        check(r"^\Qa.b\E$", "axb", false);
        check(r"^\<x\>$", "<x>", true);
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
        assert!(Pattern::new("((a{0,1000}){0,1000}){0,1000}").matches("").is_err());
    }
}
