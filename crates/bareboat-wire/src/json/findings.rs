//! Strict findings in the order of the document: a second, slower pass over a document that has
//! some.

use super::{Fault, Reader};
use crate::parsed::MAX_FINDINGS;
use bareboat_api::Str;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The start of a finding about an unknown member; the path and a quote follow.
const UNKNOWN: &str = "unknown field \"";
/// The start of a finding about a duplicate member; the path and a quote follow.
const DUPLICATE: &str = "duplicate field \"";

/// Returns one text per duplicate key, in the order of the second occurrences.
pub(super) fn duplicates(text: &str) -> Vec<String> {
    walk(text, &[])
}

/// Sorts findings by their position in the document. Duplicates inside unknown members are left
/// out, because those are not decoded. Findings that the pass does not meet, such as escaped names,
/// come last.
pub(super) fn in_order(text: &str, findings: Vec<String>) -> Vec<String> {
    let path = |finding: &'_ String| -> Option<String> {
        let path = finding.strip_prefix(UNKNOWN)?.strip_suffix('"')?;
        Some(path.to_owned())
    };
    let mut unknown: Vec<String> = findings.iter().filter_map(path).collect();
    bareboat_api::sort_by(&mut unknown, Ord::cmp);
    let mut ordered = walk(text, &unknown);
    let known: HashSet<String> = ordered.iter().cloned().collect();
    let missed = |finding: &String| !finding.starts_with(DUPLICATE) && !known.contains(finding);
    let room = MAX_FINDINGS.saturating_sub(ordered.len());
    ordered.extend(findings.into_iter().filter(missed).take(room));
    ordered
}

fn walk(text: &str, unknown: &[String]) -> Vec<String> {
    let mut walk = Walk {
        reader: Reader::new(text),
        path: Vec::new(),
        found: Vec::new(),
    };
    walk.reader.skip_space();
    // The document was parsed once without an error, so this pass only ends early when it has
    // enough.
    let _ = walk.value(Unknown {
        paths: unknown,
        at: 0,
    });
    walk.found
}

enum Step {
    Member(Str),
    Element(usize),
}

/// The unknown paths that start with the current path, whose length is `at`.
///
/// They are narrowed down step by step, so that the cost is linear in the length of the document,
/// even with long keys.
#[derive(Clone, Copy)]
struct Unknown<'a> {
    paths: &'a [String],
    at: usize,
}

impl<'a> Unknown<'a> {
    fn below(self, step: &str) -> Unknown<'a> {
        let (at, step) = (self.at, step.as_bytes());
        let from = (self.paths).partition_point(|path| &path.as_bytes()[at..] < step);
        let among = &self.paths[from..];
        let count = among.partition_point(|path| path.as_bytes()[at..].starts_with(step));
        Unknown {
            paths: &among[..count],
            at: at + step.len(),
        }
    }

    fn member(self, key: &str) -> Unknown<'a> {
        match self {
            Unknown { paths: [], .. } => self,
            Unknown { at: 0, .. } => self.below(key),
            _ => self.below(".").below(key),
        }
    }

    fn element(self, index: usize) -> Unknown<'a> {
        match self.paths {
            [] => self,
            _ => self.below(&format!("[{index}]")),
        }
    }

    /// Returns whether the current path is an unknown path.
    fn is_here(self) -> bool {
        // Of paths with the same start, the shortest comes first.
        self.paths.first().is_some_and(|path| path.len() == self.at)
    }
}

struct Walk<'a> {
    reader: Reader<'a>,
    path: Vec<Step>,
    found: Vec<String>,
}

impl Walk<'_> {
    fn value(&mut self, unknown: Unknown<'_>) -> Result<(), Fault> {
        match self.reader.peek() {
            Some(b'{') => self.object(unknown),
            Some(b'[') => self.array(unknown),
            _ => self.reader.value().map(drop),
        }
    }

    fn object(&mut self, unknown: Unknown<'_>) -> Result<(), Fault> {
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
            let below = unknown.member(&key);
            self.path.push(Step::Member(key.clone()));
            if below.is_here() {
                self.report(UNKNOWN);
                self.reader.value()?;
            } else {
                if !seen.insert(key) {
                    self.report(DUPLICATE);
                }
                self.value(below)?;
            }
            self.path.pop();
            self.reader.skip_space();
            if !self.reader.next_follows(b'}', "'}'")? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, unknown: Unknown<'_>) -> Result<(), Fault> {
        self.open();
        if self.closes_at_once(b']') {
            return Ok(());
        }
        for index in 0.. {
            self.path.push(Step::Element(index));
            self.value(unknown.element(index))?;
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

    fn report(&mut self, what: &str) {
        if self.found.len() >= MAX_FINDINGS {
            return;
        }
        let mut text = what.to_owned();
        for step in &self.path {
            let _ = match step {
                Step::Member(key) if text.len() == what.len() => write!(text, "{key}"),
                Step::Member(key) => write!(text, ".{key}"),
                Step::Element(index) => write!(text, "[{index}]"),
            };
        }
        text.push('"');
        if !self.found.contains(&text) {
            self.found.push(text);
        }
    }
}
