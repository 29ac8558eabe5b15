//! Settings of one member's sync, from its annotation: which objects, which of their fields, which indexes.

use crate::types::TypePattern;
use bareboat_api::labels::Selector;
use bareboat_api::{Map, Value, names};
use bareboat_cel::{Budget, DeclType, Env, Program, Val, Variables};
use bareboat_shelf::{Path, Step};
use std::sync::{Arc, LazyLock};

/// Objects have any fields.
static ANY: LazyLock<Arc<DeclType>> = LazyLock::new(DeclType::dynamic);

/// What one judgement of `keep` may cost.
const COST: u64 = 1_000_000;

/// Settings of one member's sync.
#[derive(Clone, Default)]
pub(crate) struct SyncOptions {
    /// Types that are left out.
    pub(crate) exclude: Vec<TypePattern>,
    /// The namespaces that are synced; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// Only namespaces with these labels are synced.
    pub(crate) namespace_selector: Option<String>,
    /// Only objects with these labels are synced.
    pub(crate) label_selector: Option<String>,
    keep: Option<Arc<Program>>,
    trim: Vec<Path>,
    /// Fields that get an index, of one type or of all.
    pub(crate) index: Vec<(Option<TypePattern>, Path)>,
    /// Whether the values of Secrets are synced, if Secrets are named.
    pub(crate) full_secrets: bool,
    text: String,
}

bareboat_api::opaque_debug!(SyncOptions);

impl PartialEq for SyncOptions {
    fn eq(&self, other: &SyncOptions) -> bool {
        self.text == other.text
    }
}

impl SyncOptions {
    /// Reads the annotation, an object in JSON or YAML.
    pub(crate) fn parse(text: &str) -> Result<SyncOptions, String> {
        let parsed = bareboat_wire::yaml::parse(text.as_bytes());
        let parsed = parsed.map_err(|error| error.to_string())?.value;
        let Value::Object(map) = parsed else {
            return Err("it must be an object".to_owned());
        };
        let mut options = SyncOptions {
            text: text.to_owned(),
            ..SyncOptions::default()
        };
        for (key, value) in map.iter() {
            match key {
                "exclude" => {
                    let patterns = list(key, value)?
                        .into_iter()
                        .map(|text| TypePattern::parse(&text));
                    options.exclude = patterns.collect();
                }
                "namespaces" => {
                    options.namespaces = list(key, value)?;
                    let bad = options
                        .namespaces
                        .iter()
                        .find(|name| !names::is_dns1123_label(name));
                    if let Some(bad) = bad {
                        return Err(format!("namespaces: {bad:?} is no name of a namespace"));
                    }
                }
                "namespaceSelector" => options.namespace_selector = Some(selector(key, value)?),
                "labelSelector" => options.label_selector = Some(selector(key, value)?),
                "keep" => options.keep = Some(Arc::new(program(text_of(key, value)?)?)),
                "trim" => {
                    let paths = list(key, value)?;
                    let paths = paths.iter().map(|text| trimmed(text));
                    options.trim = paths.collect::<Result<_, _>>()?;
                }
                "index" => {
                    let fields = list(key, value)?;
                    options.index = fields
                        .iter()
                        .map(|text| field(text))
                        .collect::<Result<_, _>>()?;
                }
                "secrets" => {
                    options.full_secrets = match text_of(key, value)? {
                        "keys" => false,
                        "full" => true,
                        _ => return Err("secrets: it must be keys or full".to_owned()),
                    };
                }
                other => return Err(format!("{other}: there is no such setting")),
            }
        }
        Ok(options)
    }

    /// Returns a text that differs if other objects or other parts of them are synced.
    pub(crate) fn fingerprint(&self) -> String {
        use sha2::{Digest as _, Sha256};
        if self.text.is_empty() {
            return String::new();
        }
        let digest = Sha256::digest(&self.text);
        digest
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Returns whether an object is synced. One that cannot be judged is.
    pub(crate) fn keeps(&self, object: &Value) -> bool {
        if !self.namespaces.is_empty() {
            let namespace = object
                .at(&["metadata", "namespace"])
                .and_then(Value::as_str);
            if let Some(namespace) = namespace
                && !self.namespaces.iter().any(|name| name == namespace)
            {
                return false;
            }
        }
        let Some(program) = &self.keep else {
            return true;
        };
        let variables = Variables::new().bind("object", Val::of(object, &ANY));
        let mut budget = Budget::new(COST);
        let result = program.eval(&variables, &mut budget);
        result
            .ok()
            .and_then(|value| value.as_bool())
            .unwrap_or(true)
    }

    /// Removes the fields that are not synced.
    pub(crate) fn trim(&self, object: &mut Value) {
        for path in &self.trim {
            remove(object, path.steps());
        }
    }
}

fn program(expression: &str) -> Result<Program, String> {
    let env = Env::kubernetes().declare("object", &DeclType::dynamic());
    let checked = env
        .compile(expression)
        .map_err(|issues| format!("keep: {issues}"))?;
    if !matches!(checked.result_type().name(), "bool" | "dyn") {
        return Err("keep: the result must be a bool".to_owned());
    }
    env.program(&checked)
        .map_err(|error| format!("keep: {error}"))
}

fn text_of<'v>(key: &str, value: &'v Value) -> Result<&'v str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("{key}: it must be a text"))
}

fn list(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let items = value
        .as_array()
        .ok_or_else(|| format!("{key}: it must be a list"))?;
    let items = items
        .iter()
        .map(|item| text_of(key, item).map(str::to_owned));
    items.collect()
}

/// Reads a selector, as a text or as an object.
fn selector(key: &str, value: &Value) -> Result<String, String> {
    let selector = match value {
        Value::String(text) => Selector::parse(text),
        other => Selector::from_object(other),
    };
    let selector = selector.map_err(|error| format!("{key}: {error}"))?;
    Ok(selector.to_string())
}

/// Reads a path to remove, with or without braces.
fn trimmed(text: &str) -> Result<Path, String> {
    let inner = text
        .trim()
        .trim_start_matches("{.")
        .trim_start_matches('$')
        .trim_end_matches('}');
    let path = Path::parse(inner).map_err(|error| format!("trim: {error}"))?;
    let kept = [
        ["metadata", "name"],
        ["metadata", "namespace"],
        ["metadata", "uid"],
    ];
    let is = |wanted: &[&str]| {
        let steps = path.steps();
        steps.len() == wanted.len()
            && steps
                .iter()
                .zip(wanted)
                .all(|(step, key)| matches!(step, Step::Key(name) if name == key))
    };
    let identity = kept.iter().any(|wanted| is(wanted))
        || is(&["metadata"])
        || is(&["kind"])
        || is(&["apiVersion"]);
    match identity || is(&["metadata", "resourceVersion"]) {
        true => Err(format!("trim: {text} is needed")),
        false => Ok(path),
    }
}

/// Reads a field to index: `status.phase` of all types, or `pods:status.phase` of one.
fn field(text: &str) -> Result<(Option<TypePattern>, Path), String> {
    let (pattern, path) = match text.split_once(':') {
        Some((pattern, path)) => (Some(TypePattern::parse(pattern)), path),
        None => (None, text),
    };
    let path = Path::parse(path).map_err(|error| format!("index: {error}"))?;
    match path.is_simple() {
        true => Ok((pattern, path)),
        false => Err(format!(
            "index: {text} goes through a list or has unusual characters"
        )),
    }
}

fn remove(value: &mut Value, steps: &[Step]) {
    match steps {
        [] => {}
        [Step::Key(key)] => {
            if let Some(map) = value.as_object_mut() {
                Map::remove(map, key);
            }
        }
        [Step::Key(key), rest @ ..] => {
            if let Some(inner) = value.as_object_mut().and_then(|map| map.get_mut(key)) {
                remove(inner, rest);
            }
        }
        [Step::Each, rest @ ..] => {
            for inner in value.as_array_mut().into_iter().flatten() {
                remove(inner, rest);
            }
        }
        [Step::At(at), rest @ ..] => {
            if let Some(inner) = value.as_array_mut().and_then(|items| items.get_mut(*at)) {
                remove(inner, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn objects_are_kept_and_trimmed_as_the_annotation_says() {
        let options = SyncOptions::parse(
            "{namespaces: [a, b], keep: 'object.metadata.name != \"no\"', trim: [status, 'spec.containers[].env']}",
        )
        .expect("it is well formed");
        let object = |namespace: &str, name: &str| {
            value!({"metadata": {"namespace": namespace, "name": name},
                "spec": {"containers": [{"name": "x", "env": [1]}]}, "status": {"phase": "Running"}})
        };
        assert!(options.keeps(&object("a", "x")));
        assert!(!options.keeps(&object("a", "no")));
        assert!(!options.keeps(&object("c", "x")));
        // Objects of cluster scope have no namespace.
        assert!(options.keeps(&value!({"metadata": {"name": "node"}})));
        let mut trimmed = object("a", "x");
        options.trim(&mut trimmed);
        assert_eq!(
            trimmed,
            value!({"metadata": {"namespace": "a", "name": "x"}, "spec": {"containers": [{"name": "x"}]}})
        );
    }

    #[test]
    fn wrong_settings_are_named() {
        for (text, named) in [
            ("[]", "object"),
            ("{a: 1}", "a:"),
            ("{keep: '1 +'}", "keep"),
            ("{keep: '1'}", "bool"),
            ("{trim: [metadata.uid]}", "needed"),
            ("{index: ['spec.containers[].image']}", "index"),
            ("{secrets: all}", "secrets"),
            ("{namespaces: ['A b']}", "namespaces"),
            ("{labelSelector: 'a in'}", "labelSelector"),
        ] {
            let why = SyncOptions::parse(text).expect_err(text);
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
