//! The scanner: splits text into tokens.

use crate::issue::Issue;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    End,
    Ident,
    /// A name in backquotes.
    Quoted,
    Int,
    Uint,
    Float,
    String,
    Bytes,
    /// An operator, bracket, comma or one of the words `in`, `true`, `false`, `null`.
    Mark,
}

/// A token and the text it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind,
    pub(super) text: &'s str,
    pub(super) offset: usize,
}

impl Token<'_> {
    pub(super) fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }
}

const MARKS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%", "=",
];

/// Returns all tokens of an expression; the last one marks the end.
///
/// Invalid characters are reported and skipped, so that errors in the rest are found too.
pub(super) fn scan(source: &str) -> (Vec<Token<'_>>, Vec<Issue>) {
    let mut tokens = Vec::new();
    let mut issues = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let skipped = blank(rest);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        match token(rest) {
            Some((kind, length)) => {
                tokens.push(Token {
                    kind,
                    text: &rest[..length],
                    offset: at,
                });
                at += length;
            }
            None => {
                let length = unrecognized(rest);
                let message = format!(
                    "Syntax error: token recognition error at: '{}'",
                    &rest[..length]
                );
                issues.push(Issue::new(source, at, message));
                if issues.len() > 30 {
                    break;
                }
                at += length;
            }
        }
    }
    tokens.push(Token {
        kind: Kind::End,
        text: "<EOF>",
        offset: source.len(),
    });
    (tokens, issues)
}

fn blank(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    rest.bytes()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c))
        .count()
}

/// Returns how much of the text an error message quotes: an unfinished string up to the end of its
/// line.
fn unrecognized(rest: &str) -> usize {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    // Half of an operator is reported together with the character in place of its other half.
    if rest.starts_with(['&', '|', '=']) {
        let second = rest[first..].chars().next().map_or(0, char::len_utf8);
        return first + second;
    }
    if rest.starts_with(['"', '\'']) {
        return rest.find(['\n', '\r']).unwrap_or(rest.len()).max(first);
    }
    first
}

fn token(rest: &str) -> Option<(Kind, usize)> {
    let first = rest.as_bytes()[0];
    if let Some(found) = quoted(rest) {
        return Some(found);
    }
    if first == b'`' {
        let end = rest[1..].find('`')? + 1;
        let valid = rest[1..end]
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(&byte));
        return (valid && end > 1).then_some((Kind::Quoted, end + 1));
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count();
        let kind = match &rest[..length] {
            "in" | "true" | "false" | "null" => Kind::Mark,
            _ => Kind::Ident,
        };
        return Some((kind, length));
    }
    if let Some(found) = number(rest) {
        return Some(found);
    }
    let mark = MARKS.iter().find(|mark| rest.starts_with(**mark))?;
    (*mark != "=").then_some((Kind::Mark, mark.len()))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn number(rest: &str) -> Option<(Kind, usize)> {
    if let Some(hex) = rest.strip_prefix("0x") {
        let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if length > 0 {
            return Some(whole(rest, length + 2));
        }
    }
    let whole_digits = digits(rest);
    let mut length = whole_digits;
    let fraction = match rest[length..].strip_prefix('.') {
        Some(after) => digits(after),
        None => 0,
    };
    if fraction > 0 {
        length += 1 + fraction;
    } else if whole_digits == 0 {
        return None;
    }
    let exponent = exponent(&rest[length..]);
    if fraction > 0 || exponent > 0 {
        return Some((Kind::Float, length + exponent));
    }
    Some(whole(rest, length))
}

fn whole(rest: &str, length: usize) -> (Kind, usize) {
    match rest.as_bytes().get(length) {
        Some(b'u' | b'U') => (Kind::Uint, length + 1),
        _ => (Kind::Int, length),
    }
}

fn exponent(text: &str) -> usize {
    let Some(after) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let sign = usize::from(after.starts_with(['+', '-']));
    match digits(&after[sign..]) {
        0 => 0,
        count => 1 + sign + count,
    }
}

/// Scans a string or bytes literal with its prefix and quotes.
fn quoted(rest: &str) -> Option<(Kind, usize)> {
    let mut body = rest;
    let mut kind = Kind::String;
    if let Some(after) = body.strip_prefix(['b', 'B']) {
        kind = Kind::Bytes;
        body = after;
    }
    let raw = body.starts_with(['r', 'R']);
    if raw {
        body = &body[1..];
    }
    let prefix = rest.len() - body.len();
    let triple = body.starts_with("\"\"\"") || body.starts_with("'''");
    let quote = match body.as_bytes().first() {
        Some(_) if triple => &body[..3],
        Some(b'"' | b'\'') => &body[..1],
        _ => return None,
    };
    let mut at = quote.len();
    loop {
        let tail = &body[at..];
        if tail.starts_with(quote) {
            return Some((kind, prefix + at + quote.len()));
        }
        let character = tail.chars().next()?;
        match character {
            '\\' if !raw => at += 1 + tail[1..].chars().next()?.len_utf8(),
            '\n' | '\r' if !triple => return None,
            _ => at += character.len_utf8(),
        }
    }
}
