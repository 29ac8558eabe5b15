//! Declared conversion: CEL expressions in an annotation of the definition convert between
//! versions.
//!
//! `declared` parses the annotation, `check` validates it when the definition is written, `place`
//! resolves paths, `routes` finds the route between two versions, and `run` converts. The server
//! decides when to convert and stores the result. `conversion` handles webhooks.

mod check;
mod conversion_path;
mod declared;
mod fit;
mod routes;
mod run;

pub(super) use check::check;

use super::validate;
use crate::{Schema, SchemaCache};
use bareboat_api::kind::ConvertError;
use bareboat_api::{FieldErrors, FieldPath, Str, Value};
use bareboat_cel::DeclType;
use declared::Pair;
use routes::Leg;
use run::Compiled;
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};

/// The annotation of a definition that declares conversions between versions, as expressions.
pub const ANNOTATION: &str = "bareboat.dev/conversion";

/// Returns the text of the annotation, if the definition has one.
pub(super) fn declaration(crd: &Value) -> Option<&str> {
    crd.at(&["metadata", "annotations", ANNOTATION])?.as_str()
}

/// Returns the field path of the annotation.
fn place_of_annotation() -> FieldPath {
    FieldPath::new("metadata.annotations").key(ANNOTATION)
}

/// The declared conversions of a definition; expressions are compiled for the first object that
/// needs them.
pub struct Conversions {
    group: Str,
    versions: Box<[ConvertibleVersion]>,
    storage: Option<usize>,
    /// The reason why conversion is impossible, for a stored annotation that is no longer valid.
    broken: Option<String>,
    pairs: Box<[LazyPair]>,
}

bareboat_api::opaque_debug!(Conversions);

/// A pair, and its compiled form or the error.
type LazyPair = (Pair, OnceLock<Result<Compiled, String>>);

/// A version, as conversions need it.
struct ConvertibleVersion {
    name: Str,
    schema: Schema,
    /// The type of `self`.
    decl: OnceLock<Arc<DeclType>>,
}

impl ConvertibleVersion {
    fn decl(&self) -> &Arc<DeclType> {
        self.decl
            .get_or_init(|| DeclType::of_resource(&*self.schema.root, "self"))
    }
}

impl Conversions {
    /// Returns the conversions that a definition declares; `None` if it declares none. Equal
    /// declarations over equal schemas share one value while it is in use.
    pub fn of(crd: &Value, cache: &SchemaCache) -> Option<Arc<Conversions>> {
        let text = declaration(crd)?;
        let id = identity(crd, text);
        Some(cache.shared(id, || Conversions::read(crd, text, cache)))
    }

    fn read(crd: &Value, text: &str, cache: &SchemaCache) -> Conversions {
        let mut errors = FieldErrors::default();
        let pairs = declared::read(text, &place_of_annotation(), &mut errors);
        let named = |version: &Value| {
            let name = version.get("name").and_then(Value::as_str);
            Str::new(name.unwrap_or(""))
        };
        let versions = validate::versions(crd);
        let forms = versions.iter().map(|version| {
            let name = named(version);
            ConvertibleVersion {
                schema: super::compile(crd, &name, cache),
                name,
                decl: OnceLock::new(),
            }
        });
        let group = crd.at(&["spec", "group"]).and_then(Value::as_str);
        Conversions {
            group: Str::new(group.unwrap_or("")),
            versions: forms.collect(),
            storage: versions
                .iter()
                .position(|version| version.get("storage") == Some(&Value::Bool(true))),
            broken: errors.kept().first().map(ToString::to_string),
            pairs: pairs
                .into_iter()
                .map(|pair| (pair, OnceLock::new()))
                .collect(),
        }
    }

    /// Converts an object to the wanted apiVersion, through other versions where no direct
    /// conversion is declared.
    ///
    /// Defaults of the target version are not filled in; the caller does that.
    pub fn convert(&self, mut object: Value, to: &str) -> Result<Value, ConvertError> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or("");
        let (from, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        if from == to {
            return Ok(object);
        }
        let label = label(&object);
        let failed = |why: &str| {
            ConvertError(format!(
                "conversion of {from}, Kind={kind}{label} to {to} failed: {why}"
            ))
        };
        if let Some(broken) = &self.broken {
            return Err(failed(broken));
        }
        let found = self.index(&from).zip(self.index(to));
        let legs = found.and_then(|(from, to)| self.route(from, to));
        let Some(legs) = legs else {
            return Err(failed(&format!(
                "the annotation {ANNOTATION} of the definition declares no conversion"
            )));
        };
        let last = legs.len().saturating_sub(1);
        for (at, leg) in legs.into_iter().enumerate() {
            self.go(leg, &mut object).map_err(|why| failed(&why))?;
            let form = &self.versions[leg.to(self)];
            form.schema.prune(&mut object, None);
            form.schema.drop_nulls(&mut object);
            if at < last {
                // The expressions of the next step see the object with this version's defaults.
                let defaulted = form.schema.default(&mut object);
                defaulted.map_err(|why| failed(&why.to_string()))?;
            }
        }
        Ok(object)
    }

    fn go(&self, leg: Leg, object: &mut Value) -> Result<(), String> {
        if let Leg::Pair(at) = leg {
            let (pair, compiled) = &self.pairs[at];
            let compiled = compiled.get_or_init(|| self.compile(at, pair));
            compiled.as_ref().map_err(Clone::clone)?.run(object)?;
        }
        let version = &self.versions[leg.to(self)].name;
        let api_version = format!("{}/{version}", self.group);
        object
            .make_object()
            .insert("apiVersion", Value::from(api_version));
        Ok(())
    }

    fn compile(&self, at: usize, pair: &Pair) -> Result<Compiled, String> {
        let find = |name: &Str| self.versions.iter().find(|form| form.name == *name);
        let (Some(from), Some(to)) = (find(&pair.from), find(&pair.to)) else {
            return Err(format!("{} is a pair of unknown versions", pair.label(at)));
        };
        let place = place_of_annotation().index(at);
        Compiled::new(pair, from.decl(), &to.schema, &place).map_err(|errors| {
            let first = errors.first().map(ToString::to_string);
            first.unwrap_or_default()
        })
    }

    /// Returns the index of the version in an apiVersion.
    fn index(&self, api_version: &str) -> Option<usize> {
        let name = api_version
            .strip_prefix(self.group.as_str())?
            .strip_prefix('/')?;
        self.versions.iter().position(|form| form.name == name)
    }
}

/// Returns ` namespace/name`, as far as an object has them.
fn label(object: &Value) -> String {
    let text = |key: &str| {
        let found = object.at(&["metadata", key]).and_then(Value::as_str);
        found.unwrap_or("")
    };
    match (text("namespace"), text("name")) {
        (_, "") => String::new(),
        ("", name) => format!(" {name}"),
        (namespace, name) => format!(" {namespace}/{name}"),
    }
}

/// Returns a hash of everything that affects the conversions.
fn identity(crd: &Value, text: &str) -> u128 {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    };
    add(text.as_bytes());
    if let Some(group) = crd.at(&["spec", "group"]) {
        add(&group.to_json());
    }
    for version in validate::versions(crd) {
        for key in ["name", "storage", "schema"] {
            add(&version.get(key).map(Value::to_json).unwrap_or_default());
        }
    }
    let digest = digest.finalize();
    let first: [u8; 16] = digest[..16].try_into().expect("a digest has 32 bytes");
    u128::from_le_bytes(first)
}

#[cfg(test)]
mod tests;
