//! Reads the schema inside client-go's apply configurations: how lists and maps merge, and defaults.

use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Facts of each type, by its dotted name (`io.k8s.api.core.v1.Pod`).
pub(crate) type Schema = BTreeMap<String, TypeFacts>;

/// Facts of a type.
#[derive(Default)]
pub(crate) struct TypeFacts {
    /// Whether server-side apply takes the struct as one value.
    pub(crate) atomic: bool,
    /// Its fields.
    pub(crate) fields: BTreeMap<String, FieldFacts>,
}

/// Facts of a field.
#[derive(Default, Debug)]
pub(crate) struct FieldFacts {
    /// `atomic`, `associative` or `separable`.
    pub(crate) relationship: Option<String>,
    /// The keys of an associative list of objects.
    pub(crate) keys: Vec<String>,
    /// Whether the field is a map.
    pub(crate) is_map: bool,
    /// The declared default, as JSON text.
    pub(crate) default: Option<String>,
}

/// Reads the schema from the Go source that contains it.
pub(crate) fn read(source: &str) -> Result<Schema> {
    let start = source
        .find("YAMLObject(`")
        .context("the apply configurations hold no schema")?
        + "YAMLObject(`".len();
    let yaml = &source[start..];
    let yaml = &yaml[..yaml.find('`').context("the schema has no end")?];
    Ok(read_yaml(yaml))
}

/// Parses the schema's YAML. It has one fixed layout, so the indentation defines the meaning of a line.
fn read_yaml(yaml: &str) -> Schema {
    let mut schema = Schema::new();
    let mut type_name = String::new();
    let mut field_name: Option<String> = None;
    for line in yaml.lines() {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim_start();
        if indent == 0 {
            if let Some(name) = text.strip_prefix("- name: ") {
                type_name = name.to_owned();
                schema.insert(type_name.clone(), TypeFacts::default());
                field_name = None;
            }
            continue;
        }
        let Some(facts) = schema.get_mut(&type_name) else {
            continue;
        };
        if indent == 4 {
            field_name = text.strip_prefix("- name: ").map(str::to_owned);
            if let Some(name) = &field_name {
                facts.fields.insert(name.clone(), FieldFacts::default());
            } else if text == "elementRelationship: atomic" {
                facts.atomic = true;
            }
            continue;
        }
        let Some(field) = field_name
            .as_ref()
            .and_then(|name| facts.fields.get_mut(name))
        else {
            continue;
        };
        // Lines of the field itself are indented by 6, of its type by 8, of a list or map by 10, of keys by 10.
        match (indent, text.split_once(": ")) {
            (6, Some(("default", value))) => field.default = Some(value.to_owned()),
            (8, _) if text == "map:" => field.is_map = true,
            (10, Some(("elementRelationship", value))) => {
                field.relationship = Some(value.to_owned());
            }
            (10, _) if text.starts_with("- ") => field.keys.push(text[2..].to_owned()),
            // A named type may be overridden where it is used.
            (8, Some(("elementRelationship", value))) => {
                field.relationship = Some(value.to_owned());
            }
            _ => {}
        }
    }
    schema
}
