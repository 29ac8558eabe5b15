//! Joins facts from Go declarations and the schema, and writes one line for each reachable message.

mod values;

use super::golang::{self, Declaration, GoType, Member, Package};
use super::modules::Modules;
use super::schema::{FieldFacts, Schema, TypeFacts};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1";
const CORE: &str = "k8s.io/api/core/v1";
const EXTENSIONS: &str = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1";

struct Writer<'a> {
    modules: &'a Modules,
    schema: &'a Schema,
    packages: BTreeMap<String, Package>,
    /// Messages that are referred to and not written yet.
    waiting: BTreeSet<(String, String)>,
    lines: BTreeMap<String, String>,
}

/// A field's type: cardinality, base type, and how Go treats absence.
struct Resolved {
    prefix: &'static str,
    base: String,
    pointer: bool,
    /// A struct that is not a pointer, which `omitempty` never omits.
    solid: bool,
    list: bool,
    map: bool,
}

/// Returns the whole table as text.
pub(crate) fn write(modules: &Modules, schema: &Schema, version: &str) -> Result<String> {
    let mut writer = Writer {
        modules,
        schema,
        packages: BTreeMap::new(),
        waiting: BTreeSet::new(),
        lines: BTreeMap::new(),
    };
    let mut head = String::new();
    writeln!(
        head,
        "# Facts about built-in messages, written by `cargo run -p xtask -- facts` from k8s.io modules {version}; see facts.rs for the form."
    )?;
    let mut groups = BTreeSet::new();
    for import in modules.api_packages()? {
        writer.load(&import)?;
        let package = &writer.packages[&import];
        let group = if import == META {
            "meta.k8s.io".to_owned()
        } else if import.contains("/kube-aggregator/") {
            "apiregistration.k8s.io".to_owned()
        } else {
            package
                .group
                .clone()
                .ok_or_else(|| anyhow!("{import} names no group"))?
        };
        let version = import.rsplit('/').next().unwrap_or_default();
        groups.insert(format!("@{group}/{version} {}", dotted(&import)));
        let kinds: Vec<String> = package
            .types
            .iter()
            .filter(|(name, declaration)| {
                is_kind(declaration) || (import == META && name.as_str() == "WatchEvent")
            })
            .map(|(name, _)| name.clone())
            .collect();
        for kind in kinds {
            writer.waiting.insert((import.clone(), kind));
        }
    }
    while let Some((import, name)) = writer.waiting.pop_first() {
        let full = format!("{}.{name}", dotted(&import));
        if !writer.lines.contains_key(&full) {
            let line = writer
                .message(&import, &name)
                .with_context(|| format!("in {full}"))?;
            writer.lines.insert(full, line);
        }
    }
    for group in groups {
        writeln!(head, "{group}")?;
    }
    for line in writer.lines.values() {
        writeln!(head, "{line}")?;
    }
    Ok(head)
}

/// Converts an import path to a protobuf package.
fn dotted(import: &str) -> String {
    import.replace('/', ".").replace('-', "_")
}

fn is_kind(declaration: &Declaration) -> bool {
    matches!(declaration, Declaration::Struct(members, _) if members.iter().any(|member| {
        member.name == "TypeMeta" && member.ty == GoType::Named(META.to_owned(), "TypeMeta".to_owned())
    }))
}

impl Writer<'_> {
    fn load(&mut self, import: &str) -> Result<()> {
        if !self.packages.contains_key(import) {
            let dir = self
                .modules
                .package(import)
                .ok_or_else(|| anyhow!("no module contains {import}"))?;
            let package = golang::read(import, &dir)?;
            self.packages.insert(import.to_owned(), package);
        }
        Ok(())
    }

    fn message(&mut self, import: &str, name: &str) -> Result<String> {
        self.load(import)?;
        // Removed while it is read, because resolving its members may load other packages.
        let package = self.packages.remove(import).context("loaded above")?;
        let result = self.lines_of(import, name, &package);
        self.packages.insert(import.to_owned(), package);
        let (line, references) = result?;
        self.waiting.extend(references);
        Ok(line)
    }

    #[allow(clippy::type_complexity)]
    fn lines_of(
        &mut self,
        import: &str,
        name: &str,
        package: &Package,
    ) -> Result<(String, Vec<(String, String)>)> {
        let Some(Declaration::Struct(members, markers)) = package.types.get(name) else {
            bail!("{name} is not a struct");
        };
        let facts = self.schema.get(&format!("{}.{name}", model(import)));
        let mut line = format!("{}.{name}", dotted(import));
        if is_kind(&package.types[name]) || name == "WatchEvent" {
            line.push('*');
        }
        let marked = markers.iter().any(|marker| marker == "structType=atomic");
        if facts.map_or(marked, |facts| facts.atomic) {
            line.push('!');
        }
        let mut references = Vec::new();
        for member in members {
            if let Some(text) = self.member(import, package, member, facts, &mut references)? {
                write!(line, " {text}")?;
            }
        }
        Ok((line, references))
    }

    fn member(
        &mut self,
        import: &str,
        package: &Package,
        member: &Member,
        facts: Option<&TypeFacts>,
        references: &mut Vec<(String, String)>,
    ) -> Result<Option<String>> {
        let Some(json) = member.tag("json") else {
            bail!("{} has no JSON name", member.name);
        };
        let mut parts = json.split(',');
        let json_name = parts.next().unwrap_or_default();
        let options: Vec<&str> = parts.collect();
        if json_name == "-" {
            return Ok(None);
        }
        let number: u32 = match member.tag("protobuf") {
            None | Some("-") => 0,
            Some(tag) => tag
                .split(',')
                .nth(1)
                .and_then(|number| number.parse().ok())
                .unwrap_or(0),
        };
        if json_name.is_empty() && member.name == "TypeMeta" {
            return Ok(Some("apiVersion=0:str kind=0:str".to_owned()));
        }
        let resolved = self.resolve(import, package, &member.ty, references)?;
        if json_name.is_empty() {
            return Ok(Some(format!("~={number}:{}", resolved.base)));
        }
        let omitted = if resolved.solid {
            options.contains(&"omitzero")
        } else {
            options.contains(&"omitempty") || options.contains(&"omitzero")
        };
        let mut text = format!("{json_name}={number}:{}{}", resolved.prefix, resolved.base);
        if resolved.pointer {
            text.push('?');
        }
        if !omitted {
            text.push('+');
        }
        let declared;
        let field = match facts.and_then(|facts| facts.fields.get(json_name)) {
            Some(field) => field,
            None => {
                declared = from_markers(member, &resolved);
                &declared
            }
        };
        self.merging(&mut text, field, &resolved, &member.ty, package, import)?;
        if let Some(strategy) = member.tag("patchStrategy") {
            if strategy.split(',').any(|part| part == "merge") {
                match member.tag("patchMergeKey") {
                    Some(key) => write!(text, ",merge({key})")?,
                    None => text.push_str(",merge"),
                }
            }
            if strategy.split(',').any(|part| part == "replace") {
                text.push_str(",replace");
            }
            if strategy.split(',').any(|part| part == "retainKeys") {
                text.push_str(",retainKeys");
            }
        }
        if let Some(default) = field.default.as_deref().and_then(meaningful) {
            write!(text, ",default={default}")?;
        }
        if let Some(values) = self.values(import, package, &member.ty)? {
            write!(text, ",enum({values})")?;
        }
        Ok(Some(text))
    }

    /// Returns how the field merges in server-side apply.
    fn merging(
        &self,
        text: &mut String,
        field: &FieldFacts,
        resolved: &Resolved,
        ty: &GoType,
        package: &Package,
        import: &str,
    ) -> Result<()> {
        match field.relationship.as_deref() {
            Some("associative") if field.keys.is_empty() => text.push_str(",set"),
            Some("associative") => {
                let keys: Vec<String> = field
                    .keys
                    .iter()
                    .map(|key| match self.key_default(ty, key, package, import) {
                        Some(default) => format!("{key}={default}"),
                        None => key.clone(),
                    })
                    .collect();
                write!(text, ",map({})", keys.join(";"))?;
            }
            Some("atomic") if !resolved.list => text.push_str(",atomic"),
            Some("separable") if !resolved.list && !resolved.map => text.push_str(",granular"),
            _ => {}
        }
        Ok(())
    }

    /// Returns the value of an absent key of a map list: the element's declared default.
    fn key_default(
        &self,
        ty: &GoType,
        key: &str,
        package: &Package,
        import: &str,
    ) -> Option<String> {
        let GoType::Slice(element) = ty else {
            return None;
        };
        let GoType::Named(owner, name) = element.as_ref() else {
            return None;
        };
        if let Some(facts) = self.schema.get(&format!("{}.{name}", model(owner))) {
            return literal(facts.fields.get(key)?.default.as_deref()?);
        }
        let package = if owner == import {
            package
        } else {
            self.packages.get(owner)?
        };
        let Some(Declaration::Struct(members, _)) = package.types.get(name) else {
            return None;
        };
        let member = members.iter().find(|member| {
            member.tag("json").and_then(|json| json.split(',').next()) == Some(key)
        })?;
        let default = member
            .markers
            .iter()
            .find_map(|marker| marker.strip_prefix("default="))?;
        literal(default)
    }

    fn resolve(
        &mut self,
        import: &str,
        package: &Package,
        ty: &GoType,
        references: &mut Vec<(String, String)>,
    ) -> Result<Resolved> {
        let mut resolved = Resolved {
            prefix: "",
            base: String::new(),
            pointer: false,
            solid: false,
            list: false,
            map: false,
        };
        let mut ty = ty.clone();
        if let GoType::Pointer(inner) = ty {
            resolved.pointer = true;
            ty = *inner;
        }
        let wrapped = matches!(&ty, GoType::Named(owner, name)
            if owner == import && package.has_message(name));
        ty = self.underlying(import, package, &ty)?;
        match ty {
            GoType::Slice(element) if is_byte(&element) => resolved.base = "bytes".to_owned(),
            GoType::Slice(_) if wrapped => resolved.base = "strs".to_owned(),
            GoType::Slice(element) => {
                resolved.list = true;
                resolved.prefix = "[]";
                resolved.base = self.base(import, package, &element, references)?.0;
            }
            GoType::Map(element) => {
                resolved.map = true;
                resolved.prefix = "{}";
                resolved.base = self.base(import, package, &element, references)?.0;
            }
            other => {
                let (base, is_struct) = self.base(import, package, &other, references)?;
                resolved.base = base;
                resolved.solid = is_struct && !resolved.pointer;
            }
        }
        Ok(resolved)
    }

    /// Returns the base type's name in the table, and whether it is a struct in Go.
    fn base(
        &mut self,
        import: &str,
        package: &Package,
        ty: &GoType,
        references: &mut Vec<(String, String)>,
    ) -> Result<(String, bool)> {
        let ty = match ty {
            GoType::Pointer(inner) => inner.as_ref(),
            other => other,
        };
        let ty = self.underlying(import, package, ty)?;
        let (owner, name) = match ty {
            GoType::Slice(element) if is_byte(&element) => return Ok(("bytes".to_owned(), false)),
            GoType::Slice(_) => return Ok(("strs".to_owned(), false)),
            GoType::Named(owner, name) => (owner, name),
            other => bail!("no base type: {other:?}"),
        };
        if owner.is_empty() {
            let base = match name.as_str() {
                "bool" => "bool",
                "string" => "str",
                "int32" | "int16" | "int8" | "uint8" | "uint16" => "int",
                "int" | "int64" | "uint32" | "uint64" => "long",
                "float64" => "double",
                "interface{}" | "any" => return Ok(("json".to_owned(), false)),
                other => bail!("unknown type {other}"),
            };
            return Ok((base.to_owned(), false));
        }
        if let Some(special) = special(&owner, &name) {
            if special.starts_with("schemaOr") {
                references.push((EXTENSIONS.to_owned(), "JSONSchemaProps".to_owned()));
            }
            return Ok((special.to_owned(), true));
        }
        references.push((owner.clone(), name.clone()));
        let reference = if owner == import {
            format!(".{name}")
        } else if owner == META {
            format!("meta.{name}")
        } else if owner == CORE {
            format!("core.{name}")
        } else {
            format!("{}.{name}", dotted(&owner))
        };
        Ok((reference, true))
    }

    /// Resolves names that are declared as something other than a struct.
    fn underlying(&mut self, import: &str, package: &Package, ty: &GoType) -> Result<GoType> {
        let mut ty = ty.clone();
        for _ in 0..8 {
            let GoType::Named(owner, name) = &ty else {
                return Ok(ty);
            };
            if owner.is_empty() || special(owner, name).is_some() {
                return Ok(ty);
            }
            let package = if owner == import {
                package
            } else {
                self.load(owner)?;
                &self.packages[owner]
            };
            match package.types.get(name) {
                Some(Declaration::Alias(target)) => ty = target.clone(),
                Some(Declaration::Struct(..)) => return Ok(ty),
                None => bail!("{owner} declares no {name}"),
            }
        }
        bail!("aliases without end");
    }
}

fn is_byte(ty: &GoType) -> bool {
    matches!(ty, GoType::Named(owner, name) if owner.is_empty() && (name == "byte" || name == "uint8"))
}

/// Converts a package to the form of OpenAPI models.
fn model(import: &str) -> String {
    import.replacen("k8s.io", "io.k8s", 1).replace('/', ".")
}

/// Returns the type of structs with a special JSON or protobuf form.
fn special(owner: &str, name: &str) -> Option<&'static str> {
    Some(match (owner, name) {
        (META, "Time") => "time",
        (META, "MicroTime") => "microtime",
        (META, "Duration") => "duration",
        (META, "FieldsV1") => "fields",
        ("k8s.io/apimachinery/pkg/api/resource", "Quantity") => "quantity",
        ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString") => "intstr",
        ("k8s.io/apimachinery/pkg/runtime", "RawExtension") => "raw",
        (EXTENSIONS, "JSON") => "json",
        (EXTENSIONS, "JSONSchemaPropsOrArray") => "schemaOrArray",
        (EXTENSIONS, "JSONSchemaPropsOrBool") => "schemaOrBool",
        (EXTENSIONS, "JSONSchemaPropsOrStringArray") => "schemaOrStrings",
        _ => return None,
    })
}

/// Returns a default as JSON; zero values are omitted.
fn meaningful(default: &str) -> Option<String> {
    match default {
        "\"\"" | "0" | "false" => None,
        other => literal(other),
    }
}

/// Returns a default as JSON. For keys of lists zero values count, because an element may omit the key.
fn literal(default: &str) -> Option<String> {
    match default {
        "" | "{}" | "null" => None,
        text if text.starts_with("ref(") => None,
        text if text.starts_with('"')
            || text.parse::<i64>().is_ok()
            || ["true", "false"].contains(&text) =>
        {
            Some(text.to_owned())
        }
        text => Some(format!("{text:?}")),
    }
}

/// Returns the facts in comment markers, for types without an apply configuration in client-go.
fn from_markers(member: &Member, resolved: &Resolved) -> FieldFacts {
    let mut facts = FieldFacts::default();
    for marker in &member.markers {
        match marker.split_once('=') {
            Some(("listType", "map" | "set")) if resolved.list => {
                facts.relationship = Some("associative".to_owned());
            }
            Some(("mapType" | "structType", "atomic")) if !resolved.list => {
                facts.relationship = Some("atomic".to_owned());
            }
            Some(("listMapKey", key)) => facts.keys.push(key.to_owned()),
            Some(("default", value)) => facts.default = Some(value.to_owned()),
            _ => {}
        }
    }
    facts
}
