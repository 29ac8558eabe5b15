//! A strict JSON parser that builds values directly.
//!
//! It follows RFC 8259 exactly: invalid UTF-8, lone surrogates, raw control characters, leading
//! zeros, a byte order mark and bytes after the value are rejected. Duplicate keys are legal JSON;
//! they are reported, and the last one wins.

mod findings;
mod number;
mod string;

use crate::{ParseError, Parsed};
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{Map, Str, Value};

/// Parses one JSON document.
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

/// Sorts the findings of strict decoding, duplicate keys and `unknown field "…"`, by their position
/// in the document.
pub fn in_order(document: &[u8], findings: Vec<String>) -> Vec<String> {
    match std::str::from_utf8(document) {
        Ok(text) if findings.len() > 1 => findings::in_order(text, findings),
        _ => findings,
    }
}

/// An error before its line is known; the line is counted once, at the end. It is boxed because
/// small results make the parser fast.
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

/// Documents of this size are parsed into preallocated buffers. Shorter ones do not need it; longer
/// ones are not request bodies.
const LONG: std::ops::RangeInclusive<usize> = 64 << 10..=4 << 20;
/// Collections with at least this many items are not copied when they close.
const MANY: usize = 4096;

/// Moves the items from `first` on into a vector of exact size.
fn close<T>(gathered: &mut Vec<T>, first: usize) -> Vec<T> {
    if first == 0 && gathered.len() >= MANY {
        let mut all = std::mem::take(gathered);
        all.shrink_to_fit();
        return all;
    }
    gathered.split_off(first)
}

/// A cursor over text that is valid UTF-8.
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    saw_duplicates: bool,
    // Members and elements collect here and move out when their container closes, so that each
    // container is allocated once, in its exact size.
    members: Vec<(Str, Value)>,
    elements: Vec<Value>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        // Reserves room for everything a long document can contain, most of which is never touched.
        // Growing the buffers would take up to three times the memory of the parsed value.
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
            return Err(self.fault("a byte order mark before JSON is not allowed"));
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

    /// Invariant: all recursion passes through here, so `MAX_DEPTH` bounds the stack.
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

    /// Consumes a comma and returns true, or consumes the closing byte and returns false.
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
