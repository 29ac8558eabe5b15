//! Validation of declared conversions, when their definition is written.

use super::conversion_path::ConversionPath;
use super::declared::{self, Pair};
use super::routes::route;
use super::run::{Compiled, check_move};
use super::{declaration, place_of_annotation};
use crate::{Schema, SchemaCache};
use bareboat_api::{FieldError, FieldErrors, FieldPath, Str, Value, interrupt};
use bareboat_cel::DeclType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum size of all annotations of an object; larger ones are rejected as metadata.
const MAX_TEXT: usize = 256 * 1024;
/// The maximum number of versions for which routes are searched.
const MAX_VERSIONS: usize = 64;

/// Checks the annotation of a definition with valid schemas; errors that `old` had already do not
/// count.
pub(in crate::crd) fn check(crd: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let Some(text) = declaration(crd).filter(|text| text.len() <= MAX_TEXT) else {
        return;
    };
    let unchanged = |old: &Value| {
        declaration(old) == Some(text)
            && ["versions", "conversion"]
                .iter()
                .all(|key| crd.at(&["spec", key]) == old.at(&["spec", key]))
    };
    if old.is_some_and(unchanged) {
        return;
    }
    let path = place_of_annotation();
    if crd.at(&["spec", "conversion", "strategy"]) == Some(&Value::string("Webhook")) {
        errors.push(FieldError::forbidden(
            path,
            "spec.conversion.strategy is Webhook; set it to None to convert by this annotation, \
             or remove the annotation",
        ));
        return;
    }
    if crd.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(
            path,
            "spec.preserveUnknownFields must be false, expressions need schemas",
        ));
        return;
    }
    let start = errors.len();
    let versions = super::validate::versions(crd);
    if versions.len() > MAX_VERSIONS {
        let path = FieldPath::new("spec.versions");
        errors.push(FieldError::too_many(path, versions.len(), MAX_VERSIONS));
        return;
    }
    let pairs = declared::read(text, &path, errors);
    let names: Vec<Str> = versions
        .iter()
        .map(|version| Str::new(version.get("name").and_then(Value::as_str).unwrap_or("")))
        .collect();
    check_versions(&pairs, &names, &path, errors);
    if errors.len() > start {
        return;
    }
    let storage = versions
        .iter()
        .position(|version| version.get("storage") == Some(&Value::Bool(true)));
    check_ways(&pairs, &names, storage, &path, errors);
    check_pairs(crd, &pairs, &names, &path, errors);
}

fn check_versions(pairs: &[Pair], names: &[Str], path: &FieldPath, errors: &mut FieldErrors) {
    let ways: HashSet<(&Str, &Str)> = pairs.iter().map(|pair| (&pair.from, &pair.to)).collect();
    let mut seen = HashSet::new();
    for (index, pair) in pairs.iter().enumerate() {
        let at = path.index(index);
        for (key, version) in [("from", &pair.from), ("to", &pair.to)] {
            if !version.is_empty() && !names.contains(version) {
                let at = at.child(key);
                errors.push(FieldError::not_supported(at, version.as_str(), names));
            }
        }
        if pair.from == pair.to && !pair.from.is_empty() {
            let detail = "must be another version than from";
            errors.push(FieldError::invalid(at.child("to"), pair.to.clone(), detail));
        }
        if !seen.insert((&pair.from, &pair.to)) {
            let value = format!("from {} to {}", pair.from, pair.to);
            errors.push(FieldError::duplicate(at.clone(), value));
        }
        if !ways.contains(&(&pair.to, &pair.from)) {
            errors.push(FieldError::required(
                at.clone(),
                format!(
                    "the reverse pair is missing; declare a pair from {} to {} as well, even if it \
                     is empty",
                    pair.to, pair.from
                ),
            ));
        }
        check_overlaps(pair, &at, errors);
    }
}

/// Checks that every field is written at most once and removed at most once.
fn check_overlaps(pair: &Pair, at: &FieldPath, errors: &mut FieldErrors) {
    let moves = || pair.moves.iter();
    let move_at = |from: &ConversionPath| at.child("move").key(&from.text);
    let written: Vec<(&ConversionPath, FieldPath)> = moves()
        .map(|(from, to)| (to, move_at(from)))
        .chain(
            pair.sets
                .iter()
                .map(|(place, _)| (place, at.child("set").key(&place.text))),
        )
        .collect();
    let taken: Vec<(&ConversionPath, FieldPath)> = moves()
        .map(|(from, _)| (from, move_at(from)))
        .chain(
            pair.removes
                .iter()
                .enumerate()
                .map(|(index, place)| (place, at.child("remove").index(index))),
        )
        .collect();
    for (places, what) in [(written, "written"), (taken, "removed")] {
        let mut before = Places::default();
        for (index, (place, at)) in places.iter().enumerate() {
            if let Some(first) = before.overlapping(place) {
                let (other, elsewhere) = &places[first];
                let detail = format!(
                    "{} and {} overlap, and {} is {what} by {elsewhere} already",
                    place.text, other.text, other.text
                );
                errors.push(FieldError::invalid(at.clone(), place.text.clone(), detail));
            }
            before.add(place, index);
        }
    }
}

/// Places by their steps. Two places overlap if one is the other or inside it.
#[derive(Default)]
struct Places<'p> {
    /// The first place with exactly these steps.
    exact: HashMap<&'p [Str], usize>,
    /// The first place that begins with these steps.
    inside: HashMap<&'p [Str], usize>,
}

impl<'p> Places<'p> {
    fn add(&mut self, place: &'p ConversionPath, index: usize) {
        self.exact.entry(place.steps()).or_insert(index);
        for steps in place.prefixes() {
            self.inside.entry(steps).or_insert(index);
        }
    }

    /// Returns the first place that overlaps the given one.
    fn overlapping(&self, place: &ConversionPath) -> Option<usize> {
        let around = place.prefixes().filter_map(|steps| self.exact.get(steps));
        around.chain(self.inside.get(place.steps())).min().copied()
    }
}

/// Checks that every version can be converted to every other.
fn check_ways(
    pairs: &[Pair],
    names: &[Str],
    storage: Option<usize>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let Some(storage) = storage else { return };
    let known: Vec<&Str> = names.iter().collect();
    let declared: Vec<(&Str, &Str)> = pairs.iter().map(|pair| (&pair.from, &pair.to)).collect();
    for (version, name) in names.iter().enumerate() {
        // Pairs are declared in both directions, so checking one direction is enough.
        if route(&known, &declared, Some(storage), version, storage).is_none() {
            errors.push(FieldError::required(
                path.clone(),
                format!(
                    "no pair leads from {name} to the storage version {}; declare a pair \
                     from {name} to {} or to a version that leads there",
                    names[storage], names[storage]
                ),
            ));
        }
    }
}

fn check_pairs(
    crd: &Value,
    pairs: &[Pair],
    names: &[Str],
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let cache = SchemaCache::new();
    let schemas: Vec<(&Str, Schema)> = names
        .iter()
        .map(|name| (name, crate::crd::compile(crd, name, &cache)))
        .collect();
    let schema = |name: &Str| {
        let found = schemas.iter().find(|(known, _)| *known == name);
        found.map(|(_, schema)| schema)
    };
    let mut decls: Vec<(&Str, Arc<DeclType>)> = Vec::new();
    for (index, pair) in pairs.iter().enumerate() {
        let (Some(source), Some(target)) = (schema(&pair.from), schema(&pair.to)) else {
            continue;
        };
        if interrupt::requested() {
            return;
        }
        let at = path.index(index);
        for change in &pair.moves {
            if let Err(problem) = check_move(pair, change, source, target) {
                let at = at.child("move").key(&change.0.text);
                errors.push(FieldError::invalid(at, change.1.text.clone(), problem));
            }
        }
        for (index, place) in pair.removes.iter().enumerate() {
            if let Err(problem) = place.find(&source.root) {
                let at = at.child("remove").index(index);
                let problem = format!("{problem} in {}", pair.from);
                errors.push(FieldError::invalid(at, place.text.clone(), problem));
            }
        }
        let known = decls.iter().find(|(name, _)| **name == pair.from);
        let decl = match known {
            Some((_, decl)) => decl.clone(),
            None => {
                let decl = DeclType::of_resource(&*source.root, "self");
                decls.push((&pair.from, decl.clone()));
                decl
            }
        };
        if let Err(problems) = Compiled::new(pair, &decl, target, &at) {
            errors.extend(problems);
        }
    }
}
