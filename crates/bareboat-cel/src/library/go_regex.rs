//! Go's regular expressions in terms of Rust's.
//!
//! Both are descendants of RE2, but Go's `\d`, `\w`, `\s` and `\b` know ASCII only, a `[` inside a
//! class is just a character, and a `{` that begins no count stands for itself.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

/// The most memory an ordinary compiled expression takes, and how many of those are kept. Programs
/// hold only patterns, because there are thousands of them.
const ORDINARY: Store = Store {
    size_limit: 256 << 10,
    kept: 512,
};
/// The same for those that take more.
const LARGE: Store = Store {
    size_limit: 4 << 20,
    kept: 8,
};
/// The most memory matching takes for its tables, per expression and thread.
const TABLES: usize = 256 << 10;

struct Store {
    size_limit: usize,
    kept: usize,
}

/// Go refuses higher counts.
const MAX_REPEAT: u32 = 1000;

type Compiled = LazyLock<Mutex<HashMap<Box<str>, Arc<Regex>>>>;

static ORDINARY_COMPILED: Compiled = LazyLock::new(Mutex::default);
static LARGE_COMPILED: Compiled = LazyLock::new(Mutex::default);

/// The compiled form of a Go pattern, from the shared store if it is there.
///
/// Shared by reference: a clone of a [`Regex`] would begin without the scratch space of the others.
pub(crate) fn shared(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Some(regex) = ORDINARY_COMPILED.lock().get(pattern) {
        return Ok(regex.clone());
    }
    if let Some(regex) = LARGE_COMPILED.lock().get(pattern) {
        return Ok(regex.clone());
    }
    let translated = translate(pattern)?;
    let (regex, compiled, store) = match build(&translated, ORDINARY.size_limit) {
        Err(regex::Error::CompiledTooBig(_)) => {
            (build(&translated, LARGE.size_limit), &LARGE_COMPILED, LARGE)
        }
        other => (other, &ORDINARY_COMPILED, ORDINARY),
    };
    let regex = Arc::new(regex.map_err(|error| explain(pattern, &error))?);
    let mut kept = compiled.lock();
    if kept.len() >= store.kept {
        kept.clear();
    }
    kept.insert(pattern.into(), regex.clone());
    Ok(regex)
}

/// Compiles a Go pattern.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    build(&translate(pattern)?, LARGE.size_limit).map_err(|error| explain(pattern, &error))
}

fn build(translated: &str, size_limit: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated)
        .size_limit(size_limit)
        .dfa_size_limit(TABLES)
        .build()
}

fn explain(pattern: &str, error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        return "error parsing regexp: expression too large".to_owned();
    }
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let why = last.trim_start_matches("error: ");
    format!("error parsing regexp: {why}: `{pattern}`")
}

/// The Rust pattern with the meaning of a Go pattern.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    // Where the last repetition began, and whether it may still be made lazy: Go allows nothing
    // to be repeated twice.
    let mut repeated: Option<(&str, bool)> = None;
    while let Some(character) = rest.chars().next() {
        let repeats = match character {
            '*' | '+' | '?' => true,
            '{' => count(rest).is_some(),
            _ => false,
        };
        repeated = match (repeated, repeats) {
            (_, false) => None,
            (None, true) => Some((rest, true)),
            (Some((begin, true)), true) if character == '?' => Some((begin, false)),
            (Some((begin, _)), true) => {
                let length = begin.len() - rest.len() + 1;
                return Err(format!(
                    "error parsing regexp: invalid nested repetition operator: `{}`",
                    &begin[..length]
                ));
            }
        };
        match character {
            '\\' => rest = escape(rest, &mut out)?,
            '[' => rest = class(rest, &mut out)?,
            '{' => match count(rest) {
                Some((length, most)) => {
                    if most > MAX_REPEAT {
                        return Err(format!(
                            "error parsing regexp: invalid repeat count: `{}`",
                            &rest[..length]
                        ));
                    }
                    out.push_str(&rest[..length]);
                    rest = &rest[length..];
                }
                None => {
                    out.push_str("\\{");
                    rest = &rest[1..];
                }
            },
            '}' => {
                out.push_str("\\}");
                rest = &rest[1..];
            }
            other => {
                out.push(other);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
    Ok(out)
}

/// The length of a count such as `{2,5}`, and the higher of its numbers.
fn count(text: &str) -> Option<(usize, u32)> {
    let end = text.find('}')?;
    let inner = &text[1..end];
    let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true if !digits.is_empty() => Some(digits.parse().unwrap_or(u32::MAX)),
        _ => None,
    };
    let low = number(low)?;
    let high = if high.is_empty() { low } else { number(high)? };
    Some((end + 1, low.max(high)))
}

/// What an escape stands for when it is no single character: a class or an assertion.
fn escape<'s>(text: &'s str, out: &mut String) -> Result<&'s str, String> {
    if let Some(after) = set(text, out) {
        return Ok(after);
    }
    let after = text.get(2..).unwrap_or_default();
    match text.as_bytes().get(1) {
        Some(b'b') => out.push_str("(?-u:\\b)"),
        Some(b'B') => out.push_str("(?-u:\\B)"),
        Some(letter @ (b'A' | b'z')) => out.extend(['\\', char::from(*letter)]),
        Some(b'Q') => {
            let (literal, tail) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(literal));
            return Ok(tail);
        }
        _ => {
            let (character, after) = escaped(text)?;
            push_literal(character, out);
            return Ok(after);
        }
    }
    Ok(after)
}

/// A set of characters with a name of its own, `\d` or `\p{Greek}`: legal inside a class and outside.
fn set<'s>(text: &'s str, out: &mut String) -> Option<&'s str> {
    let after = text.get(2..)?;
    out.push_str(match text.as_bytes()[1] {
        b'd' => "[0-9]",
        b'w' => "[0-9A-Za-z_]",
        b's' => "[\\t\\n\\f\\r ]",
        b'D' => "[^0-9]",
        b'W' => "[^0-9A-Za-z_]",
        b'S' => "[^\\t\\n\\f\\r ]",
        b'p' | b'P' => {
            let name = match after.starts_with('{') {
                true => after.find('}').map_or(after.len(), |end| end + 1),
                false => after.chars().next().map_or(0, char::len_utf8),
            };
            out.push_str(&text[..2 + name]);
            return Some(&after[name..]);
        }
        _ => return None,
    });
    Some(after)
}

/// The one character an escape stands for.
fn escaped(text: &str) -> Result<(char, &str), String> {
    let Some(letter) = text[1..].chars().next() else {
        return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
    };
    let after = &text[1 + letter.len_utf8()..];
    let invalid = |length: usize| {
        let shown = text.get(..length).unwrap_or(text);
        format!("error parsing regexp: invalid escape sequence: `{shown}`")
    };
    let character = match letter {
        'a' => '\x07',
        'f' => '\x0C',
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'v' => '\x0B',
        'x' => {
            let (digits, after) = match after.strip_prefix('{') {
                Some(inner) => inner.split_once('}').ok_or_else(|| invalid(text.len()))?,
                None => after
                    .split_at_checked(2)
                    .ok_or_else(|| invalid(text.len()))?,
            };
            let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| hex);
            let length = text.len() - after.len();
            let character = number.and_then(char::from_u32);
            return Ok((character.ok_or_else(|| invalid(length))?, after));
        }
        '0'..='7' => {
            let octal = |digit: &u8| (b'0'..=b'7').contains(digit);
            let digits = text[1..].bytes().take(3).take_while(octal).count();
            // A lone digit would be a reference to a group, which there is not.
            if letter != '0' && digits < 2 {
                return Err(invalid(2));
            }
            let number = u32::from_str_radix(&text[1..1 + digits], 8).ok();
            let character = number.and_then(char::from_u32);
            return Ok((
                character.ok_or_else(|| invalid(1 + digits))?,
                &text[1 + digits..],
            ));
        }
        other if other.is_ascii_punctuation() => other,
        other => return Err(invalid(1 + other.len_utf8())),
    };
    Ok((character, after))
}

/// Writes a character so that it means itself, inside a class and outside. (A backslash alone would not do: `\<` is a
/// character to Go and the beginning of a word to Rust.)
fn push_literal(character: char, out: &mut String) {
    if character.is_ascii_alphanumeric() {
        out.push(character);
    } else {
        out.push_str(&format!("\\x{{{:X}}}", u32::from(character)));
    }
}

fn class<'s>(text: &'s str, out: &mut String) -> Result<&'s str, String> {
    let missing = || format!("error parsing regexp: missing closing ]: `{text}`");
    out.push('[');
    let mut rest = &text[1..];
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        if let Some(after) = rest.strip_prefix(']').filter(|_| !first) {
            out.push(']');
            return Ok(after);
        }
        first = false;
        if rest.starts_with("[:")
            && let Some(end) = rest.find(":]")
        {
            out.push_str(&rest[..end + 2]);
            rest = &rest[end + 2..];
            continue;
        }
        if rest.starts_with('\\')
            && let Some(after) = set(rest, out)
        {
            rest = after;
            continue;
        }
        let begin = rest;
        let (low, after) = member(rest).unwrap_or_else(|| Err(missing()))?;
        push_literal(low, out);
        rest = after;
        // A hyphen makes a range unless the class ends behind it.
        if let Some(after) = rest
            .strip_prefix('-')
            .filter(|after| !after.starts_with(']'))
        {
            let (high, after) = member(after).unwrap_or_else(|| Err(missing()))?;
            if high < low {
                let shown = &begin[..begin.len() - after.len()];
                return Err(format!(
                    "error parsing regexp: invalid character class range: `{shown}`"
                ));
            }
            out.push('-');
            push_literal(high, out);
            rest = after;
        }
    }
}

/// One character of a class; nothing at the end of the pattern.
fn member(text: &str) -> Option<Result<(char, &str), String>> {
    let character = text.chars().next()?;
    if character == '\\' {
        return Some(escaped(text));
    }
    Some(Ok((character, &text[character.len_utf8()..])))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a-b.c", true),
            (r"^[^[]+$", "a[", false),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^a{2}$", "aa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^{x}$", "{x}", true),
            (r"\Qa.b\E", "a.b", true),
            (r"\Qa.b\E", "axb", false),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"(?i)^ABC$", "abc", true),
            (r"^\x41\x{42}\103$", "ABC", true),
            (r"^[+\-*/]$", "-", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\<a\>$", "<a>", true),
            (r"^[\<]$", "<", true),
            (r"^[+--]+$", "+,-", true),
            (r"^[+--]$", ".", false),
            (r"^[--/]+$", "-./", true),
            (r"^[a\-z]+$", "a-z", true),
            (r"^[a\-z]+$", "b", false),
            (r"^[\x41-\x{43}\104]+$", "ABCD", true),
            (r"^[\d-]+$", "1-2", true),
            (r"^[\pL-]+$", "é-", true),
            (r"^[[:word:]-]+$", "a_-", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[ -~]+$", "a b~", true),
            (r"^[#a b]+$", "# a", true),
        ] {
            assert_eq!(
                compile(pattern).unwrap().is_match(text),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn patterns_go_refuses_are_refused() {
        for pattern in [
            "[",
            "(",
            "a**",
            r"\k",
            r"(?=a)",
            "a{1001}",
            r"\8",
            "(?P<n",
            r"\",
            "[z-a]",
            r"[\b]",
            r"\x{110000}",
            "[a",
            r"[a-\d]",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
