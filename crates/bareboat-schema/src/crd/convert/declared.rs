//! The parsed annotation: pairs of versions, and the changes between them.

use super::conversion_path::ConversionPath;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Map, Str, Value};

/// The changes to an object from one version to another.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) from: Str,
    pub(super) to: Str,
    /// Where values go that only have another place.
    pub(super) moves: Vec<(ConversionPath, ConversionPath)>,
    /// What is computed from the object in the source version.
    pub(super) sets: Vec<(ConversionPath, Str)>,
    /// What is left behind although the target version would take it.
    pub(super) removes: Vec<ConversionPath>,
}

impl Pair {
    /// Returns the name of the pair in messages.
    pub(super) fn label(&self, at: usize) -> String {
        format!("pair {at} (from {} to {})", self.from, self.to)
    }
}

/// The maximum number of pairs.
const MAX_PAIRS: usize = 256;
/// The maximum number of fields of a pair.
const MAX_CHANGES: usize = 1024;
const KEYS: [&str; 5] = ["from", "to", "move", "set", "remove"];
const EXAMPLE: &str = "write a list such as [{from: v1, to: v2, move: {spec.old: spec.new}, set: {spec.port: \"int(self.spec.text)\"}, remove: [spec.text]}]";

/// Parses an annotation; invalid parts are reported and skipped.
pub(super) fn read(text: &str, path: &FieldPath, errors: &mut FieldErrors) -> Vec<Pair> {
    let parsed = match bareboat_wire::yaml::parse(text.as_bytes()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let detail = format!(
                "is neither YAML nor JSON: {error}; {EXAMPLE}, with quotes around expressions"
            );
            errors.push(FieldError::invalid_whole(path.clone(), detail));
            return Vec::new();
        }
    };
    for twice in parsed.duplicates {
        errors.push(FieldError::invalid_whole(path.clone(), twice));
    }
    let Value::Array(list) = parsed.value else {
        let detail = format!("must be a list of pairs of versions; {EXAMPLE}");
        errors.push(FieldError::invalid_whole(path.clone(), detail));
        return Vec::new();
    };
    if list.len() > MAX_PAIRS {
        errors.push(FieldError::too_many(path.clone(), list.len(), MAX_PAIRS));
        return Vec::new();
    }
    let mut pairs = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let at = path.index(index);
        match item.as_object() {
            Some(map) => pairs.push(pair(map, &at, errors)),
            None => errors.push(FieldError::invalid_whole(
                at,
                format!("must be a pair of versions; {EXAMPLE}"),
            )),
        }
    }
    pairs
}

fn pair(map: &Map, path: &FieldPath, errors: &mut FieldErrors) -> Pair {
    for key in map.keys().filter(|key| !KEYS.contains(key)) {
        let detail = format!("unknown key; the keys of a pair are {}", KEYS.join(", "));
        errors.push(FieldError::invalid_whole(path.child(key), detail));
    }
    let mut version = |key: &str| match map.get(key).and_then(Value::as_str) {
        Some(name) if !name.is_empty() => Str::new(name),
        _ => {
            let detail = "name a version of spec.versions";
            errors.push(FieldError::required(path.child(key), detail));
            Str::default()
        }
    };
    let (from, to) = (version("from"), version("to"));
    let mut pair = Pair {
        from,
        to,
        moves: Vec::new(),
        sets: Vec::new(),
        removes: Vec::new(),
    };
    for (key, value, at) in entries(map, "move", path, errors) {
        let to = text(value, &at, "the path it goes to, such as spec.name", errors);
        let from = place(key, &at, errors);
        let to = to.and_then(|to| place(to, &at, errors));
        pair.moves.extend(from.zip(to));
    }
    for (key, value, at) in entries(map, "set", path, errors) {
        let hint = "a CEL expression in quotes, such as \"self.spec.name\"";
        let expression = text(value, &at, hint, errors);
        let target = place(key, &at, errors);
        pair.sets.extend(target.zip(expression.map(Str::new)));
    }
    let nothing = Value::Null;
    match map.get("remove").unwrap_or(&nothing) {
        Value::Null => {}
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                let at = path.child("remove").index(index);
                let path = text(item, &at, "a path, such as spec.name", errors);
                pair.removes
                    .extend(path.and_then(|path| place(path, &at, errors)));
            }
        }
        _ => errors.push(FieldError::invalid_whole(
            path.child("remove"),
            "must be a list of paths, such as [spec.name]",
        )),
    }
    let changes = pair.moves.len() + pair.sets.len() + pair.removes.len();
    if changes > MAX_CHANGES {
        errors.push(FieldError::too_many(path.clone(), changes, MAX_CHANGES));
        pair.moves.truncate(MAX_CHANGES);
        pair.sets.truncate(MAX_CHANGES);
        pair.removes.truncate(MAX_CHANGES);
    }
    pair
}

/// Returns the entries of `move` or `set`, each with the path of its value.
fn entries<'m>(
    map: &'m Map,
    key: &str,
    path: &FieldPath,
    errors: &mut FieldErrors,
) -> Vec<(&'m str, &'m Value, FieldPath)> {
    let at = path.child(key);
    match map.get(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, value)| (name, value, at.key(name)))
            .collect(),
        Some(_) => {
            let detail = match key {
                "move" => "must map paths to paths, such as {spec.old: spec.new}",
                _ => "must map paths to CEL expressions, such as {spec.name: \"self.spec.name\"}",
            };
            errors.push(FieldError::invalid_whole(at, detail));
            Vec::new()
        }
    }
}

fn text<'v>(
    value: &'v Value,
    at: &FieldPath,
    wanted: &str,
    errors: &mut FieldErrors,
) -> Option<&'v str> {
    let text = value.as_str();
    if text.is_none() {
        let detail = format!("must be {wanted}");
        errors.push(FieldError::invalid(at.clone(), value.clone(), detail));
    }
    text
}

fn place(text: &str, at: &FieldPath, errors: &mut FieldErrors) -> Option<ConversionPath> {
    match ConversionPath::parse(text) {
        Ok(place) => Some(place),
        Err(problem) => {
            errors.push(FieldError::invalid(at.clone(), text, problem));
            None
        }
    }
}
