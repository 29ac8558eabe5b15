//! Splits a condition in SQL into tokens.

use std::fmt;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Word(String),
    /// A name in double or back quotes.
    Name(String),
    /// A text in single quotes.
    Text(String),
    /// A number.
    Number(String),
    /// A sign.
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(text) | Token::Number(text) => f.write_str(text),
            Token::Name(text) => write!(f, "\"{text}\""),
            Token::Text(text) => write!(f, "'{text}'"),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

/// Longer signs come before their beginnings.
const SIGNS: [&str; 13] = [
    "->>", "->", "<=", "<>", ">=", "!=", "<", ">", "=", "(", ")", ",", "?",
];

/// Splits a text; the error says what is not understood.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' => quoted(rest, '\'').map(|(text, after)| (Token::Text(text), after))?,
            '"' | '`' => quoted(rest, first).map(|(text, after)| (Token::Name(text), after))?,
            '0'..='9' | '-' if is_number(rest) => {
                let end = rest[1..].find(|c: char| !c.is_ascii_digit() && c != '.');
                let (number, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
                (Token::Number(number.to_owned()), after)
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                (Token::Word(word.to_owned()), after)
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| format!("{first:?} is not supported"))?;
                (Token::Sign(sign), &rest[sign.len()..])
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

/// Reads up to the closing quote; two quotes stand for one.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut inside = String::new();
    let mut rest = &text[1..];
    loop {
        let Some((before, after)) = rest.split_once(quote) else {
            return Err("a closing quote is missing".to_owned());
        };
        inside.push_str(before);
        match after.strip_prefix(quote) {
            Some(more) => {
                inside.push(quote);
                rest = more;
            }
            None => return Ok((inside, after)),
        }
    }
}
