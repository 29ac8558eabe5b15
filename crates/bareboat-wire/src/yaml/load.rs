//! Builds a value from parser events.

use super::key::{Key, is_merge};
use super::scalar::{Plain, resolve};
use crate::parsed::MAX_FINDINGS;
use crate::{ParseError, Parsed};
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{Map, Str, Value};
use base64::Engine as _;
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag, options};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The approximate maximum of bytes that aliases may add to a document.
const ALIAS_BUDGET: usize = 8 << 20;

/// Parses the first document and ignores the rest of the stream.
pub(super) fn first_document(text: &str) -> Result<Parsed, ParseError> {
    document(text).or_else(|error| match end_of_flow(text) {
        // The parser looks ahead and may fail on the text after the document.
        Some(end) if end < text.len() => document(&text[..end]).map_err(|_| error),
        _ => Err(error),
    })
}

/// Returns the end of a document that is a collection in brackets.
fn end_of_flow(text: &str) -> Option<usize> {
    let start = text.find(|letter: char| !letter.is_ascii_whitespace())?;
    if !text[start..].starts_with(['{', '[']) {
        return None;
    }
    let mut depth = 0_usize;
    let mut letters = text[start..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            '"' | '\'' => loop {
                match letters.next()?.1 {
                    '\\' if letter == '"' => drop(letters.next()?),
                    end if end == letter => break,
                    _ => {}
                }
            },
            _ => {}
        }
        if depth == 0 {
            let end = start + at + 1;
            // Before a colon it is a key, not a document.
            let is_key = text[end..].trim_start_matches(' ').starts_with(':');
            return (!is_key).then_some(end);
        }
    }
    None
}

/// Rejects a document that declares another version of YAML.
fn check_version(text: &str) -> Result<(), ParseError> {
    let before = |line: &&str| line.starts_with(['%', '#']) || line.trim().is_empty();
    for line in text.lines().take_while(before) {
        if let Some(version) = line.strip_prefix("%YAML")
            && version.split_whitespace().next() != Some("1.1")
        {
            let message = "found incompatible YAML document";
            return Err(ParseError::at(text.as_bytes(), 0, message));
        }
    }
    Ok(())
}

fn document(text: &str) -> Result<Parsed, ParseError> {
    check_version(text)?;
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let mut loader = Loader {
        text,
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        alias_budget: ALIAS_BUDGET,
        duplicates: Vec::new(),
    };
    let value = loader.document()?;
    Ok(Parsed {
        value,
        duplicates: loader.duplicates,
    })
}

/// A value that aliases may refer to.
struct Anchored {
    value: Value,
    weight: usize,
    depth: usize,
}

struct Loader<'t> {
    text: &'t str,
    events: Parser<'t, granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, Anchored>,
    alias_budget: usize,
    duplicates: Vec<String>,
}

/// A collection that is not closed yet.
struct Open {
    kind: Collection,
    anchor: usize,
    /// Where the collection starts.
    span: Span,
}

enum Collection {
    Sequence(Vec<Value>),
    Mapping(Mapping),
}

/// An unfinished mapping.
#[derive(Default)]
struct Mapping {
    members: Vec<(Str, Value)>,
    seen: HashSet<Str>,
    merged: Vec<Map>,
    next: Next,
}

impl Mapping {
    fn into_value(self) -> Value {
        // Of equal keys the last one stays. The first merged mapping therefore comes last, and the
        // mapping's own members come after all merged ones.
        let mut all: Vec<(Str, Value)> = self.merged.into_iter().rev().flatten().collect();
        all.extend(self.members);
        // A growing vector has room for at least four members, which for many small mappings is
        // most of their memory.
        all.shrink_to_fit();
        Value::Object(Map::from_unsorted(all))
    }
}

/// The role of the next value in a mapping.
#[derive(Default)]
enum Next {
    #[default]
    Key,
    /// The value of a key; a duplicate is reported where its value begins.
    Value { key: Str, twice: Option<String> },
    /// A mapping to merge.
    Merged,
}

impl<'t> Loader<'t> {
    /// Open collections are kept in a list, because the stack of the thread may be small.
    fn document(&mut self) -> Result<Value, ParseError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if let Some(Collection::Mapping(mapping)) = open.last_mut().map(|open| &mut open.kind) {
                self.report_twice(mapping, span);
                if matches!(mapping.next, Next::Key) && merges(&event) {
                    mapping.next = Next::Merged;
                    continue;
                }
            }
            let (value, span) = match event {
                Event::StreamStart | Event::DocumentStart(..) if open.is_empty() => continue,
                Event::StreamEnd | Event::DocumentEnd if open.is_empty() => return Ok(Value::Null),
                Event::SequenceStart(_, anchor, _) => {
                    let kind = Collection::Sequence(Vec::new());
                    self.begin(&mut open, kind, anchor, span)?;
                    continue;
                }
                Event::MappingStart(_, anchor, _) => {
                    let kind = Collection::Mapping(Mapping::default());
                    self.begin(&mut open, kind, anchor, span)?;
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let Some(ended) = open.pop() else {
                        return Err(self.fault(span, "expected a value"));
                    };
                    let value = match ended.kind {
                        Collection::Sequence(mut items) => {
                            items.shrink_to_fit();
                            Value::Array(items)
                        }
                        Collection::Mapping(mapping) => mapping.into_value(),
                    };
                    self.remember(ended.anchor, &value);
                    (value, ended.span)
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let in_brackets = open.last().is_some_and(|open| self.is_flow(open.span));
                    if style == ScalarStyle::Plain && text.starts_with(':') && in_brackets {
                        return Err(self.fault(span, "did not find expected node content"));
                    }
                    let value = self.scalar(&text, style, tag.as_deref(), span)?;
                    self.remember(anchor, &value);
                    (value, span)
                }
                Event::Alias(anchor) => (self.alias(anchor, span, open.len())?, span),
                _ => return Err(self.fault(span, "expected a value")),
            };
            match open.last_mut().map(|open| &mut open.kind) {
                None => return Ok(value),
                Some(Collection::Sequence(items)) => items.push(value),
                Some(Collection::Mapping(mapping)) => self.take(mapping, value, span)?,
            }
        }
    }

    /// Returns whether a collection is in brackets.
    fn is_flow(&self, span: Span) -> bool {
        let offset = span.start.byte_offset().unwrap_or(0);
        matches!(self.text.as_bytes().get(offset), Some(b'{' | b'['))
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), ParseError> {
        match self.events.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.scan_fault(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn begin(
        &self,
        open: &mut Vec<Open>,
        kind: Collection,
        anchor: usize,
        span: Span,
    ) -> Result<(), ParseError> {
        if open.len() >= MAX_DEPTH {
            return Err(self.fault(span, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        open.push(Open { kind, anchor, span });
        Ok(())
    }

    /// Reports a duplicate key.
    fn report_twice(&mut self, mapping: &mut Mapping, span: Span) {
        if let Next::Value { twice, .. } = &mut mapping.next
            && let Some(shown) = twice.take()
            && self.duplicates.len() < MAX_FINDINGS
        {
            let line = span.start.line();
            self.duplicates
                .push(format!("line {line}: key {shown} already set in map"));
        }
    }

    /// Adds a value to a mapping: as a key, a value or a merged mapping.
    fn take(&self, mapping: &mut Mapping, value: Value, span: Span) -> Result<(), ParseError> {
        match std::mem::take(&mut mapping.next) {
            Next::Key => {
                let Some(key) = Key::from_value(&value) else {
                    let message = format!("a key must be a scalar, not {}", value.type_name());
                    return Err(self.fault(span, message));
                };
                let fresh = mapping.seen.insert(key.text.clone());
                mapping.next = Next::Value {
                    key: key.text,
                    twice: (!fresh).then_some(key.shown),
                };
            }
            Next::Value { key, .. } => mapping.members.push((key, value)),
            Next::Merged => self.merge(value, span, &mut mapping.merged)?,
        }
        Ok(())
    }

    fn merge(&self, value: Value, span: Span, merged: &mut Vec<Map>) -> Result<(), ParseError> {
        let refused = || {
            self.fault(
                span,
                "map merge requires map or sequence of maps as the value",
            )
        };
        match value {
            Value::Object(map) => merged.push(map),
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::Object(map) => merged.push(map),
                        _ => return Err(refused()),
                    }
                }
            }
            _ => return Err(refused()),
        }
        Ok(())
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Value, ParseError> {
        let core = tag.and_then(yaml_type);
        let core = core.as_deref();
        let plain = match (tag, core) {
            (None, _) if style == ScalarStyle::Plain => resolve(text),
            (Some(_), Some("int" | "float" | "bool" | "null")) => resolve(text),
            (Some(_), Some("binary")) => return self.binary(text, span),
            _ => Plain::Text,
        };
        let fits = match (&plain, core) {
            (Plain::Int(_), Some("int" | "float")) => true,
            (Plain::Float(_), Some("float")) => true,
            (Plain::Bool(_), Some("bool")) => true,
            (Plain::Null, Some("null")) => true,
            (_, Some("int" | "float" | "bool" | "null")) => false,
            _ => true,
        };
        if !fits {
            let tag = core.unwrap_or_default();
            return Err(self.fault(span, format!("cannot decode `{text}` as a !!{tag}")));
        }
        plain
            .into_value(text)
            .ok_or_else(|| self.fault(span, format!("JSON has no number `{text}`")))
    }

    fn binary(&self, text: &str, span: Span) -> Result<Value, ParseError> {
        let packed: String = text.split_ascii_whitespace().collect();
        let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
        bytes
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(Value::from)
            .ok_or_else(|| self.fault(span, "!!binary value contains invalid base64 data"))
    }

    fn remember(&mut self, anchor: usize, value: &Value) {
        if anchor == 0 {
            return;
        }
        // Copying an anchored value costs as much as an alias. Once the budget is spent, the anchor
        // stays unknown, and an alias to it is rejected.
        let mut left = self.alias_budget;
        if let Some(depth) = measure(value, &mut left) {
            let weight = self.alias_budget - left;
            self.alias_budget = left;
            let value = value.clone();
            self.anchors.insert(
                anchor,
                Anchored {
                    value,
                    weight,
                    depth,
                },
            );
        }
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Value, ParseError> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(self.fault(span, "the alias refers to itself or to too large a value"));
        };
        if depth + anchored.depth > MAX_DEPTH {
            return Err(self.fault(span, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        if anchored.weight > self.alias_budget {
            return Err(self.fault(span, "document contains excessive aliasing"));
        }
        self.alias_budget -= anchored.weight;
        Ok(anchored.value.clone())
    }

    fn fault(&self, span: Span, message: impl Into<String>) -> ParseError {
        let offset = span.start.byte_offset().unwrap_or(0);
        ParseError::at(self.text.as_bytes(), offset, message)
    }

    fn scan_fault(&self, error: &ScanError) -> ParseError {
        let marker = error.marker();
        ParseError {
            offset: marker.byte_offset().unwrap_or(0),
            line: marker.line(),
            column: marker.col() + 1,
            message: error.info(),
        }
    }
}

/// Returns the type named by a tag of YAML itself, such as `int` for `!!int`.
fn yaml_type(tag: &Tag) -> Option<Cow<'_, str>> {
    tag.suffix_in_namespace("tag:yaml.org,2002:")
}

fn merges(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => is_merge(&resolve(text)),
        Event::Scalar(text, _, _, Some(tag)) => {
            text == "<<" && yaml_type(tag).as_deref() == Some("merge")
        }
        _ => false,
    }
}

/// Subtracts the approximate size of the value from a budget and returns its nesting depth; `None`
/// as soon as the budget does not suffice.
fn measure(value: &Value, left: &mut usize) -> Option<usize> {
    const NODE: usize = std::mem::size_of::<Value>();
    let mut spend = |bytes: usize| -> Option<()> {
        *left = left.checked_sub(NODE + bytes)?;
        Some(())
    };
    let mut depth = 0;
    match value {
        Value::String(text) => spend(text.len())?,
        Value::Array(items) => {
            spend(0)?;
            for item in items {
                depth = depth.max(measure(item, left)?);
            }
            depth += 1;
        }
        Value::Object(map) => {
            spend(0)?;
            for (key, item) in map.iter() {
                *left = left.checked_sub(NODE + key.len())?;
                depth = depth.max(measure(item, left)?);
            }
            depth += 1;
        }
        _ => spend(0)?,
    }
    Some(depth)
}
