//! From parser events to a value.

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

/// The most bytes, roughly, that aliases may add to a document.
const ALIAS_BUDGET: usize = 8 << 20;

/// Reads the first document; what follows it is not looked at.
pub(super) fn first_document(text: &str) -> Result<Parsed, ParseError> {
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

impl<'t> Loader<'t> {
    fn document(&mut self) -> Result<Value, ParseError> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
                event => return self.node(event, span, 0),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), ParseError> {
        match self.events.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.scan_fault(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Value, ParseError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(&text, style, tag.as_deref(), span)?;
                self.remember(anchor, &value);
                Ok(value)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.check_depth(depth, span)?;
                let value = self.sequence(depth + 1)?;
                self.remember(anchor, &value);
                Ok(value)
            }
            Event::MappingStart(_, anchor, _) => {
                self.check_depth(depth, span)?;
                let value = self.mapping(depth + 1)?;
                self.remember(anchor, &value);
                Ok(value)
            }
            Event::Alias(anchor) => self.alias(anchor, span, depth),
            _ => Err(self.fault(span, "expected a value")),
        }
    }

    /// Invariant: `depth` counts the collections around a node, aliases included.
    fn check_depth(&self, depth: usize, span: Span) -> Result<(), ParseError> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(span, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.node(event, span, depth)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut members: Vec<(Str, Value)> = Vec::new();
        let mut seen: HashSet<Str> = HashSet::new();
        let mut merged: Vec<Map> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            if merges(&event) {
                let (event, span) = self.next()?;
                let value = self.node(event, span, depth)?;
                self.merge(value, span, &mut merged)?;
                continue;
            }
            let key = self.node(event, span, depth)?;
            let Some(key) = Key::from_value(&key) else {
                let message = format!("a key must be a scalar, not {}", key.type_name());
                return Err(self.fault(span, message));
            };
            let (event, span) = self.next()?;
            if !seen.insert(key.text.clone()) && self.duplicates.len() < MAX_FINDINGS {
                let line = span.start.line();
                self.duplicates
                    .push(format!("line {line}: key {} already set in map", key.shown));
            }
            let value = self.node(event, span, depth)?;
            members.push((key.text, value));
        }
        // Of equal keys the last stays: what was merged in first comes last, and what stands in
        // the mapping itself comes after all of it.
        let mut all: Vec<(Str, Value)> = merged.into_iter().rev().flatten().collect();
        all.extend(members);
        Ok(Value::Object(Map::from_unsorted(all)))
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
        // Copying what is anchored costs as much as an alias does. Once the budget is spent the
        // anchor stays unknown, and an alias to it is refused.
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

/// The type a tag of YAML itself names, such as `int` for `!!int`.
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

/// Takes what a copy of the value costs, roughly its bytes, off a budget and gives how many
/// collections it nests; nothing as soon as the budget does not suffice.
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
