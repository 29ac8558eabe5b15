//! Compiles a pair of versions and runs it on objects.

use super::conversion_path::{ConversionPath, Found};
use super::declared::Pair;
use super::fit::{place_fits, type_fits, value_fits};
use crate::Schema;
use crate::rules::OBJECT_BUDGET;
use bareboat_api::metadata::validate_converted;
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Str, Value};
use bareboat_cel::{Budget, DeclType, Env, EvalError, Program, Type, Val, Variables};
use std::sync::Arc;

/// The maximum size that all expressions of a pair may add to one object, in bytes.
const MAX_GROWTH: usize = 4 << 20;
/// The maximum length of an expression in messages.
const SHOWN: usize = 200;

/// A compiled pair.
pub(super) struct Compiled {
    decl: Arc<DeclType>,
    target: Schema,
    moves: Box<[(ConversionPath, ConversionPath)]>,
    sets: Box<[Set]>,
    removes: Box<[ConversionPath]>,
    touches_metadata: bool,
}

/// An expression and the place of its result.
struct Set {
    place: ConversionPath,
    /// Where it stands in the annotation.
    at: FieldPath,
    expression: Str,
    program: Program,
}

impl Compiled {
    /// Compiles a pair; `decl` is the source type, `target` the target schema, `path` the pair's
    /// path in the annotation.
    pub(super) fn new(
        pair: &Pair,
        decl: &Arc<DeclType>,
        target: &Schema,
        path: &FieldPath,
    ) -> Result<Compiled, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let mut sets = Vec::new();
        for (place, expression) in &pair.sets {
            let at = path.child("set").key(&place.text);
            match compile(pair, place, expression, decl, target) {
                Ok(program) => sets.push(Set {
                    place: place.clone(),
                    at,
                    expression: expression.clone(),
                    program,
                }),
                Err(problem) => {
                    errors.push(FieldError::invalid(at, expression.clone(), problem));
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors.into_list());
        }
        let written = pair.moves.iter().flat_map(|(from, to)| [from, to]);
        let written = written.chain(pair.sets.iter().map(|(place, _)| place));
        Ok(Compiled {
            decl: decl.clone(),
            target: target.clone(),
            touches_metadata: written
                .chain(&pair.removes)
                .any(ConversionPath::is_in_metadata),
            moves: pair.moves.clone().into(),
            removes: pair.removes.clone().into(),
            sets: sets.into(),
        })
    }

    /// Converts an object in place; the error names the failed part of the declaration and the
    /// reason.
    pub(super) fn run(&self, object: &mut Value) -> Result<(), String> {
        let before = match self.touches_metadata {
            true => object.get("metadata").cloned(),
            false => None,
        };
        // All expressions see the original object.
        let results = self.evaluate(object)?;
        let moved: Vec<(&ConversionPath, Option<Value>)> = self
            .moves
            .iter()
            .map(|(from, to)| (to, from.take(object)))
            .collect();
        for place in &self.removes {
            place.take(object);
        }
        let sets = self.sets.iter().map(|set| &set.place).zip(results);
        for (place, value) in moved.into_iter().chain(sets) {
            match value {
                Some(value) => place.put(object, value),
                None => drop(place.take(object)),
            }
        }
        if self.touches_metadata {
            check_metadata(object, before.as_ref())?;
        }
        match is_shallow(object, MAX_DEPTH) {
            true => Ok(()),
            false => Err(format!(
                "the result is nested deeper than {MAX_DEPTH} levels"
            )),
        }
    }

    fn evaluate(&self, object: &Value) -> Result<Vec<Option<Value>>, String> {
        let mut budget = Budget::new(OBJECT_BUDGET);
        let mut room = MAX_GROWTH;
        let variables = Variables::new().bind("self", Val::of(object, &self.decl));
        let mut results = Vec::with_capacity(self.sets.len());
        for set in &self.sets {
            let result = self.result(set, &variables, &mut budget, &mut room);
            results.push(result.map_err(|why| set.failed(&why))?);
        }
        Ok(results)
    }

    fn result<'a>(
        &'a self,
        set: &'a Set,
        variables: &Variables<'a>,
        budget: &mut Budget,
        room: &mut usize,
    ) -> Result<Option<Value>, String> {
        let value = match set.program.eval(variables, budget) {
            Ok(Val::Optional(None)) => return Ok(None),
            Ok(value) => value,
            Err(EvalError::OutOfBudget) => {
                return Err(
                    "it exceeds the cost limit of a conversion; simplify it, or limit the lists and \
                     strings it reads with maxItems and maxLength"
                        .to_owned(),
                );
            }
            Err(EvalError::Failed(why)) if why.starts_with("no such key") => {
                return Err(format!(
                    "{why}; where a field can be absent, read it as in self.spec.?field"
                ));
            }
            Err(error) => return Err(error.to_string()),
        };
        let size = value.json_size(*room);
        let size = size.ok_or_else(|| {
            format!("the converted object would grow by more than {MAX_GROWTH} bytes")
        })?;
        *room -= size;
        let value = value.to_json();
        let mut value = value.ok_or_else(|| "the result cannot be written as JSON".to_owned())?;
        let found = set.place.find(&self.target.root)?;
        value_fits(&mut value, found)?;
        Ok(Some(value))
    }
}

impl Set {
    fn failed(&self, why: &str) -> String {
        let mut end = self.expression.len().min(SHOWN);
        while !self.expression.is_char_boundary(end) {
            end -= 1;
        }
        let more = if end < self.expression.len() {
            "…"
        } else {
            ""
        };
        let shown = &self.expression[..end];
        format!("{} ({shown}{more}): {why}", self.at)
    }
}

/// Compiles an expression whose result must fit its place.
fn compile(
    pair: &Pair,
    place: &ConversionPath,
    expression: &str,
    decl: &DeclType,
    target: &Schema,
) -> Result<Program, String> {
    let found = place
        .find(&target.root)
        .map_err(|problem| format!("{problem} in {}", pair.to))?;
    let env = Env::kubernetes().declare("self", decl);
    let checked = env.compile(expression).map_err(|issues| {
        format!(
            "compilation failed: {issues}\nself is the object in {}",
            pair.from
        )
    })?;
    let given = checked.result_type();
    if !type_fits(given, found) {
        return Err(format!(
            "the expression gives {given}, but {} is {} in {}{}",
            place.text,
            wanted(found),
            pair.to,
            advice(given, found)
        ));
    }
    env.program(&checked)
        .map_err(|error| format!("program instantiation failed: {error}"))
}

/// Returns the type of a place, for messages.
fn wanted(found: Found<'_>) -> String {
    match found {
        Found::Node(node) => format!("of type {}", node.type_text()),
        Found::Anything => "anything".to_owned(),
        Found::Texts => "a map of strings".to_owned(),
        Found::Text => "a string".to_owned(),
    }
}

fn advice(given: &Type, found: Found<'_>) -> String {
    let wanted = match found {
        Found::Node(node) => node.type_text(),
        Found::Text => "string",
        _ => "",
    };
    let inner = given.as_optional();
    match (inner.unwrap_or(given), wanted) {
        (Type::Null, _) => "; optional.none() leaves it out".to_owned(),
        (_, function @ ("integer" | "string" | "number" | "boolean")) => {
            let function = match function {
                "integer" => "int",
                "number" => "double",
                "boolean" => "bool",
                other => other,
            };
            match inner {
                Some(_) => format!("; convert it, as in self.?a.optMap(a, {function}(a))"),
                None => format!("; convert it, as in {function}(self.a)"),
            }
        }
        _ => String::new(),
    }
}

/// Checks that a move connects places of matching types.
pub(super) fn check_move(
    pair: &Pair,
    (from, to): &(ConversionPath, ConversionPath),
    source: &Schema,
    target: &Schema,
) -> Result<(), String> {
    let start = from
        .find(&source.root)
        .map_err(|problem| format!("{problem} in {}", pair.from))?;
    let end = to
        .find(&target.root)
        .map_err(|problem| format!("{problem} in {}", pair.to))?;
    match place_fits(start, end) {
        true => Ok(()),
        false => Err(format!(
            "{} is {} in {}, but {} is {} in {}; compute it in set instead",
            from.text,
            wanted(start),
            pair.from,
            to.text,
            wanted(end),
            pair.to
        )),
    }
}

/// Checks labels and annotations that a conversion changed.
fn check_metadata(object: &mut Value, before: Option<&Value>) -> Result<(), String> {
    let Some(Value::Object(metadata)) =
        object.as_object_mut().and_then(|it| it.get_mut("metadata"))
    else {
        return Ok(());
    };
    for member in ["labels", "annotations"] {
        let empty = |value: &Value| value.as_object().is_some_and(bareboat_api::Map::is_empty);
        if metadata.get(member).is_some_and(empty) {
            metadata.remove(member);
        }
    }
    let wrong = validate_converted(before.and_then(Value::as_object), metadata);
    match wrong.first() {
        None => Ok(()),
        Some(error) => Err(error.to_string()),
    }
}

fn is_shallow(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if left == 0 => false,
        Value::Array(list) => list.iter().all(|item| is_shallow(item, left - 1)),
        Value::Object(map) => map.values().all(|member| is_shallow(member, left - 1)),
        _ => true,
    }
}
