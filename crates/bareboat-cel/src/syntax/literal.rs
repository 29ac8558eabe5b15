//! Parses the values of literals.

/// The error of an invalid literal.
pub(super) type Bad = &'static str;

/// Parses a string literal, including quotes and prefix.
pub(super) fn string(literal: &str) -> Result<String, Bad> {
    let (raw, body) = unwrap(literal);
    if raw {
        return Ok(body.to_owned());
    }
    let mut out = String::with_capacity(body.len());
    unescape(body, false, |piece| match piece {
        Piece::Char(character) | Piece::Point(character) => out.push(character),
        Piece::Byte(byte) => out.push(char::from(byte)),
    })?;
    Ok(out)
}

/// Parses a bytes literal, including quotes and prefix.
pub(super) fn bytes(literal: &str) -> Result<Vec<u8>, Bad> {
    let (raw, body) = unwrap(&literal[1..]);
    if raw {
        return Ok(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    unescape(body, true, |piece| match piece {
        Piece::Char(character) | Piece::Point(character) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Piece::Byte(byte) => out.push(byte),
    })?;
    Ok(out)
}

/// Parses a decimal or hexadecimal integer, negated if `negative`.
pub(super) fn int(text: &str, negative: bool) -> Option<i64> {
    let magnitude = magnitude(text)?;
    let value = i128::from(magnitude) * if negative { -1 } else { 1 };
    i64::try_from(value).ok()
}

/// Parses an unsigned integer, including its `u`.
pub(super) fn uint(text: &str) -> Option<u64> {
    magnitude(&text[..text.len() - 1])
}

fn magnitude(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn unwrap(literal: &str) -> (bool, &str) {
    let raw = literal.starts_with(['r', 'R']);
    let body = if raw { &literal[1..] } else { literal };
    let quotes = if body.len() >= 6 && (body.starts_with("\"\"\"") || body.starts_with("'''")) {
        3
    } else {
        1
    };
    (raw, &body[quotes..body.len() - quotes])
}

enum Piece {
    /// A character as written.
    Char(char),
    /// A code point escape.
    Point(char),
    /// A byte escape; in strings, the character of that number.
    Byte(u8),
}

fn unescape(body: &str, bytes: bool, mut emit: impl FnMut(Piece)) -> Result<(), Bad> {
    let mut rest = body;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character != '\\' {
            // Line ends are normalized, as in source that was read as text.
            if character == '\r' {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                emit(Piece::Char('\n'));
            } else {
                emit(Piece::Char(character));
            }
            continue;
        }
        let escape = rest
            .chars()
            .next()
            .ok_or("unable to unescape string, found '\\' as last character")?;
        rest = &rest[escape.len_utf8()..];
        let digits = match escape {
            'a' => Ok('\u{7}'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            '\\' | '\'' | '"' | '`' | '?' => Ok(escape),
            'x' | 'X' => Err(2),
            'u' if !bytes => Err(4),
            'U' if !bytes => Err(8),
            '0'..='3' => Err(3),
            _ => return Err("unable to unescape string"),
        };
        let count = match digits {
            Ok(plain) => {
                emit(Piece::Point(plain));
                continue;
            }
            Err(count) => count,
        };
        let octal = escape.is_ascii_digit();
        let text = if octal {
            &body[body.len() - rest.len() - 1..]
        } else {
            rest
        };
        let number = text
            .get(..count)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| u32::from_str_radix(text, if octal { 8 } else { 16 }).ok())
            .ok_or("unable to unescape string")?;
        rest = &text[count..];
        if count <= 3 {
            emit(Piece::Byte(number as u8));
        } else {
            let point = char::from_u32(number).ok_or("invalid unicode code point")?;
            emit(Piece::Point(point));
        }
    }
    Ok(())
}
