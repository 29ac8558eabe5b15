//! Where keys stand twice: a second, slower walk over a document that is known to have some.

use super::{Fault, Reader};
use crate::parsed::MAX_FINDINGS;
use bareboat_api::Str;
use std::collections::HashSet;
use std::fmt::Write as _;

/// One text per key that stands more than once, in the order of the second occurrences.
pub(super) fn find(text: &str) -> Vec<String> {
    let mut walk = Walk {
        reader: Reader::new(text),
        path: Vec::new(),
        found: Vec::new(),
    };
    walk.reader.skip_space();
    // The document was read once without a fault, so this walk ends only early by having enough.
    let _ = walk.value();
    walk.found
}

enum Step {
    Member(Str),
    Element(usize),
}

struct Walk<'a> {
    reader: Reader<'a>,
    path: Vec<Step>,
    found: Vec<String>,
}

impl Walk<'_> {
    fn value(&mut self) -> Result<(), Fault> {
        match self.reader.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            _ => self.reader.value().map(drop),
        }
    }

    fn object(&mut self) -> Result<(), Fault> {
        self.open();
        if self.closes_at_once(b'}') {
            return Ok(());
        }
        let mut seen = HashSet::new();
        loop {
            let key = self.reader.string()?;
            self.reader.skip_space();
            self.reader.take(b':', "':'")?;
            self.reader.skip_space();
            self.path.push(Step::Member(key.clone()));
            if !seen.insert(key) {
                self.report();
            }
            self.value()?;
            self.path.pop();
            self.reader.skip_space();
            if !self.reader.next_follows(b'}', "'}'")? {
                return Ok(());
            }
        }
    }

    fn array(&mut self) -> Result<(), Fault> {
        self.open();
        if self.closes_at_once(b']') {
            return Ok(());
        }
        for index in 0.. {
            self.path.push(Step::Element(index));
            self.value()?;
            self.path.pop();
            self.reader.skip_space();
            if !self.reader.next_follows(b']', "']'")? {
                break;
            }
        }
        Ok(())
    }

    fn open(&mut self) {
        self.reader.at += 1;
        self.reader.skip_space();
    }

    fn closes_at_once(&mut self, close: u8) -> bool {
        let closes = self.reader.peek() == Some(close);
        self.reader.at += usize::from(closes);
        closes
    }

    fn report(&mut self) {
        if self.found.len() >= MAX_FINDINGS {
            return;
        }
        let mut path = String::new();
        for step in &self.path {
            let _ = match step {
                Step::Member(key) if path.is_empty() => write!(path, "{key}"),
                Step::Member(key) => write!(path, ".{key}"),
                Step::Element(index) => write!(path, "[{index}]"),
            };
        }
        let text = format!("duplicate field \"{path}\"");
        if !self.found.contains(&text) {
            self.found.push(text);
        }
    }
}
