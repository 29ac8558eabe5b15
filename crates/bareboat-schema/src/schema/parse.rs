//! Compiles the schema of a definition to a tree.
//!
//! Parsing is lenient: malformed parts are skipped here and reported by the validation of the
//! definition, so that an old stored schema never keeps a server from starting.

use super::{Additional, Checks, Flags, Kind, Node, SchemaCache, SchemaError};
use crate::format::Format;
use crate::rules::{self, Rules};
use bareboat_api::typing::{ListKey, ListType};
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{Map, Str, Value};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Compiles one schema against a cache.
pub(super) struct Parser<'a> {
    cache: &'a SchemaCache,
}

impl<'a> Parser<'a> {
    pub(super) fn new(cache: &'a SchemaCache) -> Parser<'a> {
        Parser { cache }
    }

    pub(super) fn root(&self, schema: &Value) -> Result<Arc<Node>, SchemaError> {
        let map = schema.as_object().ok_or(SchemaError::NotAnObject)?;
        self.node(map, 0)
    }

    fn node(&self, map: &Map, depth: usize) -> Result<Arc<Node>, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        if let Some(part) = rules::unavailable(map) {
            return Err(SchemaError::NeedsExpressions(part));
        }
        let mut digest = Sha256::new();
        let children = self.children(map, depth, &mut digest)?;
        for (key, value) in map.iter() {
            if is_for_people(key) || is_child(key) {
                continue;
            }
            mark(&mut digest, key);
            let text = value.to_json();
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(&text);
        }
        let id = id_of(digest);
        Ok(self.cache.node(id, || self.build(id, map, children)))
    }

    fn children(
        &self,
        map: &Map,
        depth: usize,
        digest: &mut Sha256,
    ) -> Result<Children, SchemaError> {
        let mut children = Children::default();
        let parse = |value: &Value| match value.as_object() {
            Some(map) => self.node(map, depth + 1).map(Some),
            None => Ok(None),
        };
        for (key, value) in map.iter() {
            let before = children.count();
            match (key, value) {
                ("properties", Value::Object(members)) => {
                    let mut list = Vec::with_capacity(members.len());
                    for (name, member) in members.iter() {
                        if let Some(node) = parse(member)? {
                            list.push((Box::from(name), node));
                        }
                    }
                    children.properties = list.into();
                    mark(digest, key);
                    for (name, node) in &children.properties {
                        mark(digest, name);
                        digest.update(node.id.to_le_bytes());
                    }
                    continue;
                }
                ("additionalProperties", Value::Bool(allowed)) => {
                    children.additional = Additional::Allowed(*allowed);
                    mark(digest, if *allowed { "any" } else { "none" });
                    continue;
                }
                ("additionalProperties", other) => {
                    if let Some(node) = parse(other)? {
                        children.additional = Additional::Node(node);
                    }
                }
                ("items", other) => children.items = parse(other)?,
                ("not", other) => children.not = parse(other)?,
                ("allOf", Value::Array(list)) => {
                    children.all_of = self.list(list, depth)?;
                }
                ("anyOf", Value::Array(list)) => {
                    children.any_of = self.list(list, depth)?;
                }
                ("oneOf", Value::Array(list)) => {
                    children.one_of = self.list(list, depth)?;
                }
                _ => continue,
            }
            if children.count() > before {
                mark(digest, key);
                for node in children.of(key) {
                    digest.update(node.id.to_le_bytes());
                }
            }
        }
        Ok(children)
    }

    fn list(&self, list: &[Value], depth: usize) -> Result<Box<[Arc<Node>]>, SchemaError> {
        list.iter()
            .filter_map(Value::as_object)
            .map(|map| self.node(map, depth + 1))
            .collect()
    }

    fn build(&self, id: u128, map: &Map, children: Children) -> Node {
        let truth = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        let kind = Kind::named(map.get_str("type").unwrap_or(""));
        let list = match map.get_str("x-kubernetes-list-type") {
            Some("set") => Some(ListType::Set),
            Some("map") => Some(ListType::Map),
            Some("atomic") => Some(ListType::Atomic),
            _ => None,
        };
        let default = map.get("default").filter(|value| !value.is_null());
        let rules = Rules::parse(map.get("x-kubernetes-validations"));
        let int_or_string = truth("x-kubernetes-int-or-string");
        let embedded = truth("x-kubernetes-embedded-resource");

        let mut flags = Flags::default();
        flags.set(Flags::NULLABLE, truth("nullable"));
        let preserve = truth("x-kubernetes-preserve-unknown-fields");
        flags.set(Flags::PRESERVE, preserve);
        flags.set(Flags::EMBEDDED, embedded);
        flags.set(Flags::EMBEDDED_BELOW, embedded);
        flags.set(Flags::INT_OR_STRING, int_or_string);
        let atomic = map.get_str("x-kubernetes-map-type") == Some("atomic");
        flags.set(Flags::ATOMIC_MAP, atomic);
        flags.set(Flags::DEFAULTS_BELOW, default.is_some());
        let unique = matches!(list, Some(ListType::Set | ListType::Map));
        flags.set(Flags::UNIQUE_BELOW, unique);
        flags.set(Flags::RULES_BELOW, rules.is_some());
        let mut size = 1_u32;
        for child in children.structural() {
            flags.inherit(child.flags);
            size = size.saturating_add(child.size);
        }

        Node {
            id,
            size,
            kind,
            flags,
            list,
            keys: list_keys(map, children.items.as_deref()),
            default: default.map(|value| {
                Box::new(super::DefaultValue {
                    value: value.clone(),
                    bytes: crate::default::bytes_of(value),
                })
            }),
            checks: self.checks(map, kind, int_or_string, &children),
            properties: children.properties,
            additional: children.additional,
            items: children.items,
            rules: rules.map(Box::new),
        }
    }

    fn checks(
        &self,
        map: &Map,
        kind: Kind,
        int_or_string: bool,
        children: &Children,
    ) -> Option<Box<Checks>> {
        let number = |key: &str| map.get(key).and_then(Value::as_f64);
        let count = |key: &str| map.get(key).and_then(Value::as_i64);
        let truth = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        let format = map.get_str("format").and_then(|name| {
            let kind = if int_or_string { Kind::Any } else { kind };
            Format::named(name, kind).map(|format| (format, Box::from(name)))
        });
        let pattern = map.get_str("pattern").filter(|text| !text.is_empty());
        let required: Box<[Box<str>]> = list_of(map, "required")
            .iter()
            .filter_map(Value::as_str)
            .map(Box::from)
            .collect();
        let mut required_order: Box<[u32]> = (0..required.len() as u32).collect();
        let name = |at: &u32| &*required[*at as usize];
        bareboat_api::sort_by(&mut required_order, |a, b| name(a).cmp(name(b)));
        let checks = Checks {
            format,
            maximum: number("maximum"),
            minimum: number("minimum"),
            exclusive_maximum: truth("exclusiveMaximum"),
            exclusive_minimum: truth("exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            pattern: pattern.map(|text| self.cache.pattern(text)),
            choice_texts: Checks::texts_of(list_of(map, "enum")),
            choices: list_of(map, "enum").to_vec().into(),
            required_order,
            required,
            all_of: children.all_of.clone(),
            any_of: children.any_of.clone(),
            one_of: children.one_of.clone(),
            not: children.not.clone(),
        };
        checks.says_something().then(|| Box::new(checks))
    }
}

impl Checks {
    fn says_something(&self) -> bool {
        self.format.is_some()
            || self.maximum.is_some()
            || self.minimum.is_some()
            || self.multiple_of.is_some()
            || self.max_length.is_some()
            || self.min_length.is_some()
            || self.max_items.is_some()
            || self.min_items.is_some()
            || self.max_properties.is_some()
            || self.min_properties.is_some()
            || self.pattern.is_some()
            || !self.choices.is_empty()
            || !self.required.is_empty()
            || !self.all_of.is_empty()
            || !self.any_of.is_empty()
            || !self.one_of.is_empty()
            || self.not.is_some()
    }
}

#[derive(Default)]
struct Children {
    properties: Box<[(Box<str>, Arc<Node>)]>,
    additional: Additional,
    items: Option<Arc<Node>>,
    all_of: Box<[Arc<Node>]>,
    any_of: Box<[Arc<Node>]>,
    one_of: Box<[Arc<Node>]>,
    not: Option<Arc<Node>>,
}

impl Children {
    /// Returns the children for nested values, without mere value validations.
    fn structural(&self) -> impl Iterator<Item = &Arc<Node>> {
        let additional = match &self.additional {
            Additional::Node(node) => Some(node),
            _ => None,
        };
        let members = self.properties.iter().map(|(_, node)| node);
        members.chain(additional).chain(&self.items)
    }

    fn count(&self) -> usize {
        usize::from(matches!(self.additional, Additional::Node(_)))
            + usize::from(self.items.is_some())
            + usize::from(self.not.is_some())
            + self.all_of.len()
            + self.any_of.len()
            + self.one_of.len()
    }

    fn of(&self, key: &str) -> Vec<&Arc<Node>> {
        match key {
            "additionalProperties" => match &self.additional {
                Additional::Node(node) => vec![node],
                _ => vec![],
            },
            "items" => self.items.iter().collect(),
            "not" => self.not.iter().collect(),
            "allOf" => self.all_of.iter().collect(),
            "anyOf" => self.any_of.iter().collect(),
            "oneOf" => self.one_of.iter().collect(),
            _ => vec![],
        }
    }
}

fn list_of<'m>(map: &'m Map, key: &str) -> &'m [Value] {
    map.get(key).and_then(Value::as_array).unwrap_or(&[])
}

fn list_keys(map: &Map, items: Option<&Node>) -> Box<[ListKey]> {
    list_of(map, "x-kubernetes-list-map-keys")
        .iter()
        .filter_map(Value::as_str)
        .map(|name| ListKey {
            name: Str::new(name),
            default: items
                .and_then(|node| node.property(name))
                .and_then(|node| node.default.as_deref().map(|default| default.value.clone())),
        })
        .collect()
}

fn is_for_people(key: &str) -> bool {
    matches!(key, "description" | "title" | "example" | "externalDocs")
}

fn is_child(key: &str) -> bool {
    matches!(
        key,
        "properties" | "additionalProperties" | "items" | "not" | "allOf" | "anyOf" | "oneOf"
    )
}

/// Hashes a word with its length first, so that different lists of words have different hashes.
fn mark(digest: &mut Sha256, word: &str) {
    digest.update((word.len() as u64).to_le_bytes());
    digest.update(word);
}

fn id_of(digest: Sha256) -> u128 {
    let hash = digest.finalize();
    let mut head = [0; 16];
    head.copy_from_slice(&hash[..16]);
    u128::from_le_bytes(head)
}
