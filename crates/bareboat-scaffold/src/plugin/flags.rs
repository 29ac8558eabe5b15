//! Flags from a schema: one for each field of the spec that can be given on a command line.

use super::words::{first_sentence, flag_name};
use bareboat_api::Value;
use std::collections::{HashMap, HashSet};

/// Objects inside objects get flags of their own down to this depth below the root; deeper ones are given as JSON.
const DEPTH: usize = 4;
/// The most flags of one plug-in.
const MOST: usize = 300;

/// Fields of every object that are not given by flags of the schema.
const FIXED: &[&str] = &["apiVersion", "kind", "metadata", "status"];

/// Flags of kubectl that a plug-in passes on, with a value.
pub(super) const WITH_VALUE: &[&str] = &[
    "as",
    "as-group",
    "as-uid",
    "as-user-extra",
    "cache-dir",
    "certificate-authority",
    "client-certificate",
    "client-key",
    "cluster",
    "context",
    "field-manager",
    "kubeconfig",
    "kuberc",
    "namespace",
    "output",
    "request-timeout",
    "server",
    "template",
    "tls-server-name",
    "token",
    "user",
    "v",
];
/// Flags of kubectl that a plug-in passes on; a value is after `=` if there is one.
pub(super) const WITHOUT_VALUE: &[&str] = &[
    "allow-missing-template-keys",
    "disable-compression",
    "dry-run",
    "insecure-skip-tls-verify",
    "match-server-version",
    "save-config",
    "show-managed-fields",
    "validate",
    "warnings-as-errors",
];
/// Flags of every plug-in.
pub(super) const OWN: &[&str] = &["annotation", "generate-name", "help", "label"];

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    Text,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// Nothing, or `=true` or `=false`.
    Boolean,
    /// An integer or a string.
    IntegerOrText,
    /// A list of strings: the flag is repeated.
    Texts,
    /// A list of numbers: the flag is repeated.
    Numbers,
    /// A map of strings: `KEY=VALUE`, repeated.
    Map,
    /// Anything else, as JSON.
    Json,
}

/// A flag and the field it sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: String,
    /// The path of the field.
    pub path: Vec<String>,
    /// What it takes.
    pub shape: Shape,
    /// One line of help.
    pub help: String,
    /// Whether an object without it is refused.
    pub required: bool,
}

/// Returns the flags for a schema. References to other schemas are resolved in `schemas`.
pub fn flags(schema: &Value, schemas: &Value) -> Vec<Flag> {
    let mut found = Vec::new();
    let walk = Walk { schemas };
    walk.object(
        &resolved(schema, schemas),
        &mut Vec::new(),
        true,
        &mut found,
    );
    found.truncate(MOST);
    name(&mut found);
    found
}

struct Walk<'s> {
    schemas: &'s Value,
}

impl Walk<'_> {
    /// Adds the flags of an object's fields.
    fn object(&self, schema: &Value, path: &mut Vec<String>, required: bool, out: &mut Vec<Flag>) {
        let names = |key: &str| -> HashSet<&str> {
            let list = schema.get(key).and_then(Value::as_array).unwrap_or(&[]);
            list.iter().filter_map(Value::as_str).collect()
        };
        let needed = names("required");
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (field, schema) in properties.iter() {
            if out.len() > MOST || (path.is_empty() && FIXED.contains(&field)) {
                continue;
            }
            // The field is written into JSON and into a script; odd names are left to `kubectl apply`.
            if flag_name(field).is_none() {
                continue;
            }
            let schema = resolved(schema, self.schemas);
            let has_default = schema.get("default").is_some();
            // Objects are made for their spec, also where the schema allows none.
            let spec = path.is_empty() && field == "spec";
            let required = required && (spec || needed.contains(field)) && !has_default;
            path.push(field.to_owned());
            if nests(&schema) && path.len() < DEPTH {
                self.object(&schema, path, required, out);
            } else {
                out.push(Flag {
                    name: String::new(),
                    path: path.clone(),
                    shape: self.shape(&schema),
                    help: help(&schema),
                    required,
                });
            }
            path.pop();
        }
    }

    fn shape(&self, schema: &Value) -> Shape {
        if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
            || schema.get("format").and_then(Value::as_str) == Some("int-or-string")
        {
            return Shape::IntegerOrText;
        }
        let kind = |schema: &Value| kind(schema).to_owned();
        match kind(schema).as_str() {
            "string" => Shape::Text,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "array" => {
                let items = schema.get("items").cloned().unwrap_or_default();
                match kind(&resolved(&items, self.schemas)).as_str() {
                    "string" => Shape::Texts,
                    "integer" | "number" => Shape::Numbers,
                    _ => Shape::Json,
                }
            }
            "object" if schema.get("properties").is_none() => {
                let values = schema.get("additionalProperties").cloned();
                match kind(&resolved(&values.unwrap_or_default(), self.schemas)).as_str() {
                    "string" => Shape::Map,
                    _ => Shape::Json,
                }
            }
            _ => Shape::Json,
        }
    }
}

/// Returns whether an object has fields of its own, so that they get flags.
fn nests(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    kind(schema) == "object" && properties.is_some_and(|properties| !properties.is_empty())
}

/// Returns the type of a schema; optional fields of some generators have a list of types with `null`.
fn kind(schema: &Value) -> &str {
    let stated = schema.get("type");
    let among = stated.and_then(Value::as_array).unwrap_or(&[]);
    let listed = among.iter().filter_map(Value::as_str);
    let stated = stated.and_then(Value::as_str);
    match stated.or_else(|| listed.into_iter().find(|name| *name != "null")) {
        Some(name) => name,
        None if schema.get("properties").is_some() => "object",
        None => "",
    }
}

/// Follows references: `$ref`, and `allOf` with one member, which is how references with a description are written.
fn resolved(schema: &Value, schemas: &Value) -> Value {
    let mut schema = schema.clone();
    for _ in 0..8 {
        let inner = schema.get("allOf").and_then(Value::as_array);
        let reference = match inner {
            Some([only]) => only.get("$ref"),
            _ => schema.get("$ref"),
        };
        let name = reference.and_then(Value::as_str).and_then(|reference| {
            let prefixes = ["#/components/schemas/", "#/definitions/"];
            prefixes
                .iter()
                .find_map(|prefix| reference.strip_prefix(prefix))
        });
        let Some(target) = name.and_then(|name| schemas.get(name)) else {
            break;
        };
        let mut target = target.clone();
        for key in ["description", "default"] {
            if let Some(own) = schema.get(key) {
                target.make_object().insert(key, own.clone());
            }
        }
        schema = target;
    }
    schema
}

fn help(schema: &Value) -> String {
    let mut help = schema
        .get("description")
        .and_then(Value::as_str)
        .map(first_sentence)
        .unwrap_or_default();
    let mut add = |text: String| {
        if !help.is_empty() {
            help.push(' ');
        }
        help.push_str(&text);
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(plain).collect();
        add(format!("[one of: {}]", first_sentence(&values.join(", "))));
    }
    match schema.get("default") {
        // An empty object is a default for the sake of defaults inside it.
        Some(Value::Object(_)) | None => {}
        Some(default) => add(format!("[default: {}]", first_sentence(&plain(default)))),
    }
    help
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => other.to_string(),
    }
}

/// Names the flags: by the fields below `spec`, by the whole path if that is taken.
fn name(flags: &mut [Flag]) {
    let reserved: HashSet<&str> = [WITH_VALUE, WITHOUT_VALUE, OWN]
        .concat()
        .into_iter()
        .collect();
    let join = |path: &[String]| -> String {
        let parts: Vec<String> = path.iter().filter_map(|field| flag_name(field)).collect();
        parts.join("-")
    };
    let short = |flag: &Flag| match flag.path.split_first() {
        Some((root, rest)) if root == "spec" && !rest.is_empty() => join(rest),
        _ => join(&flag.path),
    };
    let mut uses: HashMap<String, usize> = HashMap::new();
    for flag in flags.iter() {
        *uses.entry(short(flag)).or_default() += 1;
    }
    let mut taken = HashSet::new();
    for flag in flags.iter_mut() {
        let wanted = short(flag);
        let free = uses.get(&wanted) == Some(&1) && !reserved.contains(wanted.as_str());
        let mut name = match free {
            true => wanted,
            false => join(&flag.path),
        };
        // Two fields may differ only in how they are written: `aB` and `a-b`.
        while reserved.contains(name.as_str()) || !taken.insert(name.clone()) {
            name.push_str("-2");
        }
        flag.name = name;
    }
}
