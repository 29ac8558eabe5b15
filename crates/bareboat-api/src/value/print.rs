//! Canonical JSON text: compact, keys sorted, control characters escaped.

use super::{Value, number::write_float};

/// Appends the compact text of a value.
pub(super) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
        Value::Float(number) => write_float(*number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write(item, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends text indented by two spaces per level.
pub(super) fn write_pretty(value: &Value, level: usize, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                line(index > 0, level + 1, out);
                write_pretty(item, level + 1, out);
            }
            line(false, level, out);
            out.push(b']');
        }
        Value::Object(map) if !map.is_empty() => {
            out.push(b'{');
            for (index, (key, item)) in map.iter().enumerate() {
                line(index > 0, level + 1, out);
                write_string(key, out);
                out.extend_from_slice(b": ");
                write_pretty(item, level + 1, out);
            }
            line(false, level, out);
            out.push(b'}');
        }
        other => write(other, out),
    }
}

fn line(comma: bool, level: usize, out: &mut Vec<u8>) {
    if comma {
        out.push(b',');
    }
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
}

/// Returns the quoted JSON text of a string.
pub fn print_string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    String::from_utf8(out).expect("escaping keeps UTF-8 whole")
}

/// Appends a string in quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    match is_plain(bytes) {
        true => out.extend_from_slice(bytes),
        false => write_escaped(bytes, out),
    }
    out.push(b'"');
}

/// Returns whether no byte of a string has to be escaped.
fn is_plain(bytes: &[u8]) -> bool {
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    // The last eight bytes overlap the word before them, and the halves of a shorter word overlap.
    let Some(last) = bytes.last_chunk() else {
        return match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(&head), Some(&tail)) => {
                let (head, tail) = (u32::from_le_bytes(head), u32::from_le_bytes(tail));
                is_plain_word(u64::from(head) | u64::from(tail) << 32)
            }
            _ => bytes.iter().all(plain),
        };
    };
    let (words, _) = bytes.as_chunks();
    let is_plain = |word: &[u8; 8]| is_plain_word(u64::from_le_bytes(*word));
    words.iter().all(is_plain) && is_plain(last)
}

/// The same for eight bytes at once: a byte below 0x20, or equal to a quote or backslash, sets its top bit. A byte after
/// such a one may set its own by mistake, which does not change the answer.
fn is_plain_word(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOPS;
    let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslashes = below(word ^ (ONES * u64::from(b'\\')), 1);
    below(word, 0x20) | quotes | backslashes == 0
}

/// Appends the bytes of a string with escapes.
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut start = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..index]);
        start = index + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(other >> 4)]);
                out.push(HEX[usize::from(other & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_escaped_wherever_it_stands() {
        for byte in 0..0x80_u8 {
            for before in 0..20 {
                let text = format!("{}{}é tail", "x".repeat(before), char::from(byte));
                let mut escaped = vec![b'"'];
                write_escaped(text.as_bytes(), &mut escaped);
                escaped.push(b'"');
                assert_eq!(print_string(&text).as_bytes(), escaped, "{text:?}");
                let plain = byte >= 0x20 && byte != b'"' && byte != b'\\';
                assert_eq!(is_plain(text.as_bytes()), plain, "{text:?}");
                let short = format!("{}{}", "x".repeat(before), char::from(byte));
                assert_eq!(is_plain(short.as_bytes()), plain, "{short:?}");
            }
        }
    }
}
