//! Collects the definitions of a document: those of its kinds, and all that they refer to.

use super::message::{reference, schema};
use super::names::{META, kind_definition, list_definition, message_definition};
use super::routes::group_version_kind;
use super::{Sources, custom, walk};
use bareboat_api::facts::MessageRef;
use bareboat_api::kind::{OpenApiStyle, PublishedSchema, Verb, Version};
use bareboat_api::{Kind, Map, Str, Value, value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

/// Schemas that all documents may refer to.
const COMMON: &str = include_str!("common.json");

/// The schema dialect of custom kinds in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaDialect {
    /// Schemas as they are declared.
    V3,
    /// Schemas without what OpenAPI 2 clients cannot parse.
    V2,
}

/// The definitions of a document while they are collected.
pub(super) struct Definitions<'a> {
    sources: &'a Sources,
    form: SchemaDialect,
    done: BTreeMap<Str, Value>,
    /// Definitions that are referred to but not made yet.
    wanted: BTreeSet<Str>,
    /// The messages of wanted definitions.
    messages: HashMap<Str, MessageRef>,
    /// The group, version and kind of definitions.
    kinds: HashMap<Str, Vec<Value>>,
}

impl<'a> Definitions<'a> {
    /// Starts without definitions. `kinds` lists the built-in kinds, in this document or not.
    pub(super) fn new(
        sources: &'a Sources,
        form: SchemaDialect,
        kinds: impl Iterator<Item = (Str, Value)>,
    ) -> Definitions<'a> {
        let mut by_definition: HashMap<Str, Vec<Value>> = HashMap::new();
        for (definition, kind) in kinds {
            by_definition.entry(definition).or_default().push(kind);
        }
        Definitions {
            sources,
            form,
            done: BTreeMap::new(),
            wanted: BTreeSet::new(),
            messages: HashMap::new(),
            kinds: by_definition,
        }
    }

    /// Adds a kind and its list.
    pub(super) fn add_kind(&mut self, kind: &Kind, version: &Version) {
        let name = kind_definition(kind, version);
        let subject = group_version_kind(&kind.group, &version.name, &kind.names.kind);
        match version.shape.published_schema() {
            PublishedSchema::Message(message) => {
                self.messages.insert(name.clone(), message);
                self.want(name.clone());
            }
            PublishedSchema::Structural(declared) => {
                let mut schema = custom::publish(declared, self.form);
                let members = schema.make_object();
                members.insert(KINDS, value!([subject]));
                insert_selectable(members, version);
                self.insert(name.clone(), schema);
            }
            PublishedSchema::Untyped => {
                let schema = value!({"type": "object", KINDS: [subject]});
                self.insert(name.clone(), schema);
            }
        }
        if kind.verbs.has(Verb::List) {
            let list = list_schema(kind, version, &name);
            self.insert(list_definition(kind, version), list);
        }
    }

    /// Registers DeleteOptions and WatchEvent for a group and version.
    pub(super) fn speak_options(&mut self, group: &str, version: &str) {
        for kind in ["DeleteOptions", "WatchEvent"] {
            let kinds = self
                .kinds
                .entry(Str::new(format!("{META}{kind}")))
                .or_insert_with(|| vec![group_version_kind("", "v1", kind)]);
            let spoken = group_version_kind(group, version, kind);
            if !kinds.contains(&spoken) {
                kinds.push(spoken);
            }
        }
    }

    /// Registers the message and the kind of a definition, for the case that it is wanted.
    pub(super) fn know_kind(&mut self, message: MessageRef, kind: Value) {
        let name = message_definition(&message.name);
        let kinds = self.kinds.entry(name.clone()).or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        self.messages.insert(name, message);
    }

    /// Marks a definition as wanted.
    pub(super) fn want(&mut self, name: Str) {
        if !self.done.contains_key(&name) {
            self.wanted.insert(name);
        }
    }

    /// Returns all definitions, including those referred to.
    pub(super) fn finish(mut self) -> Map {
        while let Some(name) = self.wanted.pop_first() {
            let schema = self.make(&name);
            self.insert(name, schema);
        }
        self.done.into_iter().collect()
    }

    fn insert(&mut self, name: Str, mut schema: Value) {
        if let Some(describe) = self.sources.descriptions
            && let Some(described) = describe(&name)
        {
            walk::describe(&mut schema, &described);
        }
        walk::references(&schema, &mut |reference| {
            if reference != name {
                self.want(Str::new(reference));
            }
        });
        self.wanted.remove(&name);
        self.done.insert(name, schema);
    }

    fn make(&mut self, name: &Str) -> Value {
        let mut made = match (common().get(name), self.messages.get(name)) {
            (Some(schema), _) => schema.clone(),
            (None, Some(message)) => {
                let mut reached = Vec::new();
                let schema = schema(message, &mut reached);
                for message in reached {
                    let name = message_definition(&message.name);
                    self.messages.insert(name, message);
                }
                schema
            }
            // An unknown type is any object.
            (None, None) => value!({"type": "object"}),
        };
        if let Some(kinds) = self.kinds.get(name) {
            made.make_object()
                .insert(KINDS, kinds.iter().cloned().collect());
        }
        made
    }
}

/// The extension that lists the kinds of a schema.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// Returns the common schemas by definition name.
fn common() -> &'static Map {
    static PARSED: OnceLock<Map> = OnceLock::new();
    PARSED.get_or_init(|| {
        match bareboat_wire::json::parse(COMMON.as_bytes()).map(|parsed| parsed.value) {
            Ok(Value::Object(schemas)) => schemas,
            _ => unreachable!("the common schemas are part of the program and tested"),
        }
    })
}

fn list_schema(kind: &Kind, version: &Version, item: &str) -> Value {
    let names = &kind.names;
    let mut items = reference(item);
    if kind.conventions.openapi == OpenApiStyle::Typed {
        items = Map::from_iter([
            ("allOf", value!([(Value::Object(items))])),
            ("default", value!({})),
        ]);
    }
    let metadata = Value::Object(reference(&format!("{META}ListMeta")));
    let mut schema = value!({
        "type": "object",
        "description": (format!("{} is a list of {}.", names.list_kind, names.kind)),
        "required": ["items"],
        "properties": {
            "apiVersion": (custom::api_version()),
            "kind": (custom::kind()),
            "metadata": {
                "allOf": [metadata],
                "default": {},
                "description": "What the list says about itself.",
            },
            "items": {
                "type": "array",
                "items": items,
                "description": (format!("The {}.", names.plural)),
            },
        },
        KINDS: [
            (group_version_kind(&kind.group, &version.name, &names.list_kind))
        ],
    });
    if kind.conventions.openapi == OpenApiStyle::Declared {
        insert_selectable(schema.make_object(), version);
    }
    schema
}

/// Lists the fields that selectors support.
fn insert_selectable(members: &mut Map, version: &Version) {
    if version.selectable.is_empty() {
        return;
    }
    let fields: Vec<Value> = version
        .selectable
        .iter()
        .map(|field| value!({"fieldPath": (field.name.clone())}))
        .collect();
    members.insert("x-kubernetes-selectable-fields", fields.into());
}
