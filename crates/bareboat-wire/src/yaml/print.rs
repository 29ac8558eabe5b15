//! YAML text in the style of sigs.k8s.io/yaml: two spaces, sorted keys, quotes only where needed.

use super::scalar::stays_text;
use bareboat_api::Value;

/// The maximum length of a key that is written on one line with its value.
const SIMPLE_KEY_MAX: usize = 128;

/// Prints a value as YAML.
pub fn print(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    match value {
        Value::Array(items) if !items.is_empty() => sequence(items, 0, &mut out),
        Value::Object(map) if !map.is_empty() => mapping(map, 0, &mut out),
        scalar => {
            leaf(scalar, 0, &mut out);
            out.push(b'\n');
        }
    }
    out
}

fn mapping(map: &bareboat_api::Map, indent: usize, out: &mut Vec<u8>) {
    for (index, (key, value)) in map.iter().enumerate() {
        // The first member of a mapping in a sequence follows right after the dash.
        if index > 0 || out.last() == Some(&b'\n') || out.is_empty() {
            spaces(indent, out);
        }
        let long = key.len() > SIMPLE_KEY_MAX || key.contains('\n');
        if long {
            out.extend_from_slice(b"? ");
        }
        single_line(key, out);
        if long {
            out.push(b'\n');
            spaces(indent, out);
        }
        out.push(b':');
        match value {
            Value::Array(items) if !items.is_empty() => {
                out.push(b'\n');
                sequence(items, indent, out);
            }
            Value::Object(map) if !map.is_empty() => {
                out.push(b'\n');
                mapping(map, indent + 2, out);
            }
            scalar => {
                out.push(b' ');
                leaf(scalar, indent, out);
                out.push(b'\n');
            }
        }
    }
}

/// Writes a sequence; its elements have the indent of the key they belong to.
fn sequence(items: &[Value], indent: usize, out: &mut Vec<u8>) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || out.last() == Some(&b'\n') || out.is_empty() {
            spaces(indent, out);
        }
        out.extend_from_slice(b"- ");
        match item {
            Value::Array(items) if !items.is_empty() => sequence(items, indent + 2, out),
            Value::Object(map) if !map.is_empty() => mapping(map, indent + 2, out),
            scalar => {
                leaf(scalar, indent, out);
                out.push(b'\n');
            }
        }
    }
}

/// Writes a scalar or an empty collection inline, or a block literal, without the last line break.
fn leaf(value: &Value, indent: usize, out: &mut Vec<u8>) {
    match value {
        Value::String(text) if can_be_block(text) => block(text, indent + 2, out),
        Value::String(text) => single_line(text, out),
        // Numbers, `{}` and `[]` look the same in JSON.
        other => other.write_json(out),
    }
}

fn block(text: &str, indent: usize, out: &mut Vec<u8>) {
    out.push(b'|');
    if text.starts_with([' ', '\n']) {
        out.push(b'2');
    }
    let body = match text.strip_suffix('\n') {
        None => {
            out.push(b'-');
            text
        }
        Some(body) if body.is_empty() || body.ends_with('\n') => {
            out.push(b'+');
            body
        }
        Some(body) => body,
    };
    for line in body.split('\n') {
        out.push(b'\n');
        if !line.is_empty() {
            spaces(indent, out);
            out.extend_from_slice(line.as_bytes());
        }
    }
}

fn can_be_block(text: &str) -> bool {
    text.contains('\n')
        && !text.ends_with(' ')
        && !text.contains(" \n")
        && text
            .chars()
            .all(|character| character == '\n' || is_printable(character))
}

fn single_line(text: &str, out: &mut Vec<u8>) {
    if !stays_text(text) || text.chars().any(|character| !is_printable(character)) {
        double_quoted(text, out);
    } else if needs_quotes(text) {
        out.push(b'\'');
        out.extend_from_slice(text.replace('\'', "''").as_bytes());
        out.push(b'\'');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Returns whether a plain scalar of this text would be parsed as something else.
fn needs_quotes(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return true;
    };
    let starts_badly = match first {
        b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
        | b'"' | b'%' | b'@' | b'`' | b' ' => true,
        b'?' | b':' | b'-' => matches!(bytes.get(1), None | Some(b' ')),
        _ => false,
    };
    starts_badly
        || *last == b' '
        || *last == b':'
        || text.starts_with("---")
        || text.starts_with("...")
        || text.contains(": ")
        || text.contains(" #")
}

fn is_printable(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
        // YAML 1.1 parsers break lines here.
        && !matches!(character, '\u{2028}' | '\u{2029}')
}

fn double_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0' => out.extend_from_slice(b"\\0"),
            printable if is_printable(printable) => {
                out.extend_from_slice(printable.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => {
                let code = u32::from(other);
                let escape = match code {
                    0..=0xff => format!("\\x{code:02X}"),
                    0x100..=0xffff => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                out.extend_from_slice(escape.as_bytes());
            }
        }
    }
    out.push(b'"');
}

fn spaces(count: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + count, b' ');
}
