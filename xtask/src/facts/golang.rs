//! A minimal parser of Go API type declarations: structs, tags, markers, aliases.
//!
//! It relies on gofmt: declarations start at column zero, and a struct member takes one line.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The type declarations of a package.
#[derive(Default)]
pub(crate) struct Package {
    /// Declared types by name.
    pub(crate) types: BTreeMap<String, Declaration>,
    /// Types whose values are all declared (`+enum`).
    pub(crate) enums: BTreeSet<String>,
    /// The values of string constants, by the name of their type.
    pub(crate) constants: BTreeMap<String, BTreeSet<Constant>>,
    /// The values of string constants, by their own name.
    pub(crate) texts: BTreeMap<String, String>,
    /// The API group that the package registers, if any.
    pub(crate) group: Option<String>,
    /// The package's protobuf definitions.
    proto: String,
}

impl Package {
    /// Returns whether protobuf has a message of that name.
    ///
    /// This is true for a few slices that are messages in protobuf, because they are values of maps.
    pub(crate) fn has_message(&self, name: &str) -> bool {
        self.proto.contains(&format!("\nmessage {name} {{"))
    }
}

/// The value of a string constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Constant {
    /// A text.
    Text(String),
    /// The value of a constant of another package, by import path and name.
    Of(String, String),
}

/// The declaration of a name.
pub(crate) enum Declaration {
    /// A struct, with the markers in its comment.
    Struct(Vec<Member>, Vec<String>),
    /// Another name for a type, or a new type with the same underlying type.
    Alias(GoType),
}

/// A member of a struct.
pub(crate) struct Member {
    /// The Go name; for embedded types the name of the type.
    pub(crate) name: String,
    /// Its type.
    pub(crate) ty: GoType,
    /// The struct tag.
    pub(crate) tag: String,
    /// Lines of its comment that start with `+`, without the plus.
    pub(crate) markers: Vec<String>,
}

/// A type expression with package names resolved to import paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GoType {
    /// A name in a package; predeclared names have an empty package.
    Named(String, String),
    /// A pointer.
    Pointer(Box<GoType>),
    /// A slice.
    Slice(Box<GoType>),
    /// A map; only the values matter.
    Map(Box<GoType>),
}

impl Member {
    /// Returns the value of one key of the struct tag.
    pub(crate) fn tag(&self, key: &str) -> Option<&str> {
        let start = self.tag.find(&format!("{key}:\""))? + key.len() + 2;
        let rest = &self.tag[start..];
        Some(&rest[..rest.find('"')?])
    }
}

/// Reads every hand-written source file of a package.
pub(crate) fn read(import: &str, dir: &Path) -> Result<Package> {
    let mut package = Package {
        proto: std::fs::read_to_string(dir.join("generated.proto")).unwrap_or_default(),
        ..Package::default()
    };
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".go") || name.ends_with("_test.go") || name.contains("generated") {
            continue;
        }
        let text = std::fs::read_to_string(file.path())?;
        read_file(import, &text, &mut package)
            .with_context(|| format!("reading {}", file.path().display()))?;
    }
    Ok(package)
}

fn read_file(import: &str, text: &str, package: &mut Package) -> Result<()> {
    let imports = imports(text);
    let mut lines = text.lines();
    let mut markers = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("//") {
            push_marker(comment, &mut markers);
            continue;
        }
        if let Some((name, ty, value)) = constant(&imports, line) {
            if let Constant::Text(text) = &value {
                package.texts.insert(name, text.clone());
            }
            package.constants.entry(ty).or_default().insert(value);
        }
        if let Some(rest) = line.strip_prefix("const GroupName = \"") {
            package.group = rest.split('"').next().map(str::to_owned);
        }
        if let Some(rest) = line.strip_prefix("type ")
            && let Some((name, rest)) = rest.split_once(' ')
            && !name.contains('[')
        {
            let rest = rest.trim_start_matches("= ").trim();
            if markers.iter().any(|marker| marker == "enum") {
                package.enums.insert(name.to_owned());
            }
            let declaration = if rest.starts_with("struct") {
                let members = if rest.ends_with("{}") {
                    Vec::new()
                } else {
                    read_members(import, &imports, &mut lines)?
                };
                Some(Declaration::Struct(members, markers.clone()))
            } else if rest.starts_with("interface") || rest.starts_with("func") || rest == "(" {
                None
            } else {
                let rest = rest.split("//").next().unwrap_or(rest).trim();
                Some(Declaration::Alias(parse_type(import, &imports, rest)?))
            };
            if let Some(declaration) = declaration {
                package.types.insert(name.to_owned(), declaration);
            }
        }
        if !line.trim().is_empty() {
            markers.clear();
        }
    }
    Ok(())
}

/// Parses name, type and value of a string constant: `Name Type = "value"`, `Name = Type("value")` or `Name =
/// Type(package.Name)`.
fn constant(imports: &BTreeMap<String, String>, line: &str) -> Option<(String, String, Constant)> {
    let word = |text: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !text.is_empty() && text.chars().all(letter)
    };
    let declared = line.trim().trim_start_matches("const ");
    let (left, right) = declared.split_once(" = ")?;
    let left = left.trim();
    let (name, ty, value) = match left.split_once(char::is_whitespace) {
        Some((name, ty)) => (name, ty.trim(), right),
        None => {
            let (ty, value) = right.split_once('(')?;
            (left, ty, value)
        }
    };
    // `type Name = package.Name` is not a constant.
    if !word(name) || !word(ty) || name == "type" {
        return None;
    }
    let value = match value.strip_prefix('"') {
        Some(text) => Constant::Text(text.split('"').next()?.to_owned()),
        None => {
            let (package, other) = value.split(')').next()?.split_once('.')?;
            Constant::Of(imports.get(package)?.clone(), other.to_owned())
        }
    };
    Some((name.to_owned(), ty.to_owned(), value))
}

fn push_marker(comment: &str, markers: &mut Vec<String>) {
    if let Some(marker) = comment.trim().strip_prefix('+') {
        markers.push(marker.to_owned());
    }
}

fn read_members<'a>(
    import: &str,
    imports: &BTreeMap<String, String>,
    lines: &mut impl Iterator<Item = &'a str>,
) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    let mut markers = Vec::new();
    let mut in_comment = false;
    for line in lines {
        if in_comment || line.trim_start().starts_with("/*") {
            in_comment = !line.contains("*/");
            continue;
        }
        if line.starts_with('}') {
            return Ok(members);
        }
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("//") {
            push_marker(comment, &mut markers);
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let (head, tag) = match line.split_once('`') {
            Some((head, rest)) => (head.trim(), rest.split('`').next().unwrap_or_default()),
            None => (line.split("//").next().unwrap_or(line).trim(), ""),
        };
        let (name, ty) = match head.split_once(char::is_whitespace) {
            Some((name, ty)) => (name.to_owned(), ty.trim()),
            None => (
                head.rsplit(['.', '*']).next().unwrap_or(head).to_owned(),
                head,
            ),
        };
        members.push(Member {
            name,
            ty: parse_type(import, imports, ty).with_context(|| format!("in `{line}`"))?,
            tag: tag.to_owned(),
            markers: std::mem::take(&mut markers),
        });
    }
    bail!("a struct has no end");
}

/// Returns import paths by the names the file uses for them.
fn imports(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut inside = false;
    for line in text.lines() {
        let entry = if line == "import (" {
            inside = true;
            continue;
        } else if line.starts_with(')') {
            inside = false;
            continue;
        } else if inside {
            line
        } else if let Some(rest) = line.strip_prefix("import ") {
            rest
        } else {
            continue;
        };
        let mut quoted = entry.split('"');
        let (Some(alias), Some(path)) = (quoted.next(), quoted.next()) else {
            continue;
        };
        let alias = match alias.trim() {
            "" => path.rsplit('/').next().unwrap_or(path),
            alias => alias,
        };
        found.insert(alias.to_owned(), path.to_owned());
    }
    found
}

fn parse_type(import: &str, imports: &BTreeMap<String, String>, text: &str) -> Result<GoType> {
    let inner = |rest| parse_type(import, imports, rest).map(Box::new);
    if let Some(rest) = text.strip_prefix('*') {
        return Ok(GoType::Pointer(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return Ok(GoType::Slice(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("map[") {
        let Some((_, value)) = rest.split_once(']') else {
            bail!("no map type: {text}");
        };
        return Ok(GoType::Map(inner(value)?));
    }
    const PREDECLARED: [&str; 15] = [
        "bool",
        "string",
        "byte",
        "int",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float64",
        "interface{}",
        "any",
    ];
    if PREDECLARED.contains(&text) {
        return Ok(GoType::Named(String::new(), text.to_owned()));
    }
    match text.split_once('.') {
        Some((alias, name)) => Ok(GoType::Named(
            // Packages outside the imports are not needed (time.Time).
            imports.get(alias).cloned().unwrap_or_default(),
            name.to_owned(),
        )),
        None => Ok(GoType::Named(import.to_owned(), text.to_owned())),
    }
}
