//! A strict reader of JSON text, straight into a value.
//!
//! Strict means RFC 8259 and no more: bad UTF-8, lone surrogates, raw control characters, leading
//! zeros, a byte order mark and bytes after the value are refused. Keys that stand twice are
//! legal JSON; they are reported, and the last one wins.

mod findings;
mod number;
mod string;

use crate::{ParseError, Parsed};
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{Map, Str, Value};

/// Reads one JSON document.
pub fn parse(document: &[u8]) -> Result<Parsed, ParseError> {
    let text = std::str::from_utf8(document).map_err(|error| {
        ParseError::at(document, error.valid_up_to(), "the text is not valid UTF-8")
    })?;
    let mut reader = Reader::new(text);
    let value = reader.document().map_err(|fault| fault.locate(document))?;
    let duplicates = if reader.saw_duplicates {
        findings::duplicates(text)
    } else {
        Vec::new()
    };
    Ok(Parsed { value, duplicates })
}

/// Brings what strict decoding found in a document, keys that stand twice and `unknown field "…"`, into the order
/// in which a reader of the document meets it.
pub fn in_order(document: &[u8], findings: Vec<String>) -> Vec<String> {
    match std::str::from_utf8(document) {
        Ok(text) if findings.len() > 1 => findings::in_order(text, findings),
        _ => findings,
    }
}

/// A fault while it travels up; the line is counted once, at the end. Boxed, because results
/// that are small where all goes well are what makes the reader fast.
struct Fault(Box<(usize, String)>);

impl Fault {
    #[cold]
    fn new(offset: usize, message: impl Into<String>) -> Fault {
        Fault(Box::new((offset, message.into())))
    }

    fn locate(self, document: &[u8]) -> ParseError {
        let (offset, message) = *self.0;
        ParseError::at(document, offset, message)
    }
}

/// Documents of so many bytes are read with room made beforehand: long ones, and none that is no body of a request.
const LONG: std::ops::RangeInclusive<usize> = 64 << 10..=4 << 20;
/// Collections of so many items are not copied when they close.
const MANY: usize = 4096;

/// What was gathered since `first`, in its exact size.
fn close<T>(gathered: &mut Vec<T>, first: usize) -> Vec<T> {
    if first == 0 && gathered.len() >= MANY {
        let mut all = std::mem::take(gathered);
        all.shrink_to_fit();
        return all;
    }
    gathered.split_off(first)
}

/// A cursor over text that is known to be UTF-8.
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    saw_duplicates: bool,
    // Members and elements gather here and move out when their container closes, so that each
    // container is allocated once, in its exact size.
    members: Vec<(Str, Value)>,
    elements: Vec<Value>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        // Room for all that a long document can hold, most of which is never touched: growing there would take up to
        // three times the memory of what was read.
        let room = match LONG.contains(&text.len()) {
            true => 1 + text.bytes().filter(|byte| *byte == b',').count(),
            false => 0,
        };
        Reader {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
            saw_duplicates: false,
            members: Vec::with_capacity(room),
            elements: Vec::with_capacity(room),
        }
    }

    fn document(&mut self) -> Result<Value, Fault> {
        if self.bytes.starts_with(b"\xEF\xBB\xBF") {
            return Err(self.fault("a byte order mark may not stand before JSON"));
        }
        self.skip_space();
        let value = self.value()?;
        self.skip_space();
        if self.at < self.bytes.len() {
            return Err(self.expected("the end of the document"));
        }
        Ok(value)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, Fault> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.expected("a value")),
        }
    }

    /// Invariant: everything that recurses passes here, so the stack is bounded by `MAX_DEPTH`.
    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_space();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Fault> {
        let first = self.members.len();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::object());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a quoted key"));
            }
            let key = self.string()?;
            self.skip_space();
            self.take(b':', "':' after the key")?;
            self.skip_space();
            let value = self.value()?;
            self.members.push((key, value));
            self.skip_space();
            if !self.next_follows(b'}', "',' or '}'")? {
                break;
            }
        }
        let members = close(&mut self.members, first);
        let count = members.len();
        let map = Map::from_unsorted(members);
        self.saw_duplicates |= map.len() < count;
        Ok(Value::Object(map))
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let first = self.elements.len();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(Vec::new()));
        }
        loop {
            let value = self.value()?;
            self.elements.push(value);
            self.skip_space();
            if !self.next_follows(b']', "',' or ']'")? {
                break;
            }
        }
        Ok(Value::Array(close(&mut self.elements, first)))
    }

    /// Takes a comma, and says that more follows, or the closing byte.
    #[inline]
    fn next_follows(&mut self, close: u8, expected: &str) -> Result<bool, Fault> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected(expected)),
        }
    }

    #[inline]
    fn take(&mut self, byte: u8, expected: &str) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected(&format!("'{word}'")));
        }
        self.at += word.len();
        Ok(value)
    }

    #[cold]
    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.at, message)
    }

    #[cold]
    fn expected(&self, expected: &str) -> Fault {
        let found = match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            Some(character) => format!("{character:?}"),
            None => "the end".to_owned(),
        };
        self.fault(format!("expected {expected}, found {found}"))
    }
}

#[cfg(test)]
mod tests;
