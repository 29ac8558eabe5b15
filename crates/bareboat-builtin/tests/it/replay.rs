//! Replays a recorded transcript about every built-in kind and compares the responses.
//!
//! `known-differences.txt` lists the steps with a different response and the reason. A listed step that responds as
//! recorded fails the test, so that the list stays current.

use crate::golden::difference;
use crate::transcript::{Outcome, Refusal, Step, Target, matches, read, target};
use bareboat_api::kind::Now;
use bareboat_api::{Map, Object, Value, value};
use std::collections::BTreeMap;

const KNOWN: &str = include_str!("../known-differences.txt");

/// The steps that differ, and how.
#[derive(Default)]
struct Ledger {
    matched: BTreeMap<&'static str, usize>,
    differ: BTreeMap<String, String>,
}

impl Ledger {
    fn note(&mut self, step: &Step, sort: &'static str, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => *self.matched.entry(sort).or_default() += 1,
            Err(how) => {
                self.differ.insert(step.name.clone(), how);
            }
        }
    }

    /// Fails unless the differences equal the list of known differences.
    fn settle(self, file: &str) {
        for (sort, count) in &self.matched {
            println!("{file}: {count} answers to {sort} match");
        }
        let known: BTreeMap<&str, &str> = KNOWN
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .filter_map(|line| line.split_once(" | "))
            .filter_map(|(name, reason)| {
                Some((name.strip_prefix(file)?.strip_prefix(": ")?, reason))
            })
            .collect();
        let mut wrong = Vec::new();
        for (name, how) in &self.differ {
            match known.get(name.as_str()) {
                Some(reason) => println!("known: {name}: {how} ({reason})"),
                None => wrong.push(format!("{name}: {how}")),
            }
        }
        for name in known
            .keys()
            .filter(|name| !self.differ.contains_key(**name))
        {
            wrong.push(format!("{name} is listed as different but is not"));
        }
        assert!(
            wrong.is_empty(),
            "{} steps:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}

fn compare(step: &Step, outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Ok(object) if step.code < 300 => {
            let answer = &step.answer;
            if matches(answer, object.value()) {
                return Ok(());
            }
            Err(difference(answer, object.value()))
        }
        Ok(_) => Err(format!(
            "accepted, should be {}: {}",
            step.code, step.answer
        )),
        Err(refusal) => refused(step, refusal),
    }
}

fn refused(step: &Step, refusal: &Refusal) -> Result<(), String> {
    let message = step
        .answer
        .at(&["message"])
        .and_then(Value::as_str)
        .unwrap_or("");
    match refusal {
        Refusal::Type(text) if step.code == 400 => {
            let _ = text;
            Ok(())
        }
        Refusal::Strict(findings) if step.code == 400 => {
            let wanted = format!("strict decoding error: {}", findings.join(", "));
            message.ends_with(&wanted).then_some(()).ok_or(wanted)
        }
        Refusal::Unconditional if message.contains("must be specified for an update") => Ok(()),
        Refusal::Reserve(status) if status.message == message => Ok(()),
        Refusal::Invalid(errors) if step.code == 422 => {
            let mut causes: Vec<Value> = errors
                .iter()
                .map(|error| {
                    value!({"reason": (error.kind.reason()), "message": (error.body()), "field": (error.path.to_string())})
                })
                .collect();
            let order = |cause: &Value| cause.to_string();
            causes.sort_by_key(order);
            let mut recorded = step
                .answer
                .at(&["details", "causes"])
                .and_then(Value::as_array)
                .unwrap_or(&[])
                .to_vec();
            recorded.sort_by_key(order);
            if Value::Array(recorded.clone()) == Value::Array(causes.clone()) {
                return Ok(());
            }
            Err(format!(
                "causes {}, should be {}",
                Value::Array(causes),
                Value::Array(recorded)
            ))
        }
        other => Err(format!("refused with {other:?}, should be {}", step.code)),
    }
}

fn table(step: &Step, target: &Target, object: &Object) -> Result<(), String> {
    let columns = &target.kind.version(&target.version).unwrap().columns;
    let own_name = columns.iter().any(|column| column.name == "Name");
    let name = value!({"name": "Name", "type": "string", "format": "name", "priority": 0});
    let mut definitions = Vec::new();
    let mut cells = Vec::new();
    if !own_name {
        definitions.push(name);
        cells.push(object.name().into());
    }
    // The date of the recording, 2026-11-15.
    let now = Now(1_794_740_000);
    for column in columns.iter() {
        definitions.push(
            value!({"name": (column.name.clone()), "type": (column.ty.clone()),
            "format": (column.format.clone()), "priority": (column.priority)}),
        );
        cells.push((column.cell)(object.value(), now));
    }
    let recorded = step.answer.at(&["columnDefinitions"]).unwrap();
    let definitions = Value::Array(definitions);
    if *recorded != definitions {
        return Err(difference(recorded, &definitions));
    }
    let rows = step.answer.at(&["rows"]).and_then(Value::as_array).unwrap();
    let recorded = rows[0].at(&["cells"]).unwrap();
    let cells = Value::Array(cells);
    if matches(recorded, &cells) {
        return Ok(());
    }
    Err(format!("cells {cells}, should be {recorded}"))
}

/// Checks that the recorded reply to a DELETE follows from the kind's policy.
fn delete(step: &Step, target: &Target) -> Result<(), String> {
    let policy = &target.kind.policy;
    let found = policy.delete_returns_object || policy.orphan_by_default;
    let object = step.answer.at(&["kind"]).and_then(Value::as_str) != Some("Status");
    // A definition waits for a finalizer that the server adds.
    let custom = target.kind.names.plural == "customresourcedefinitions";
    if object == found || custom || step.code == 404 {
        return Ok(());
    }
    Err(format!(
        "answers with the object: {found}, should be {object}"
    ))
}

#[test]
fn every_kind_responds_as_recorded() {
    let mut ledger = Ledger::default();
    let mut live: BTreeMap<String, Object> = BTreeMap::new();
    for step in read("builtins.jsonl") {
        let Some(target) = target(&step.path) else {
            continue;
        };
        let key = format!(
            "{} {} {}",
            target.kind.group, target.kind.names.plural, target.name
        );
        match step.method.as_str() {
            "POST" => {
                let outcome = target.create(&step);
                let sort = if step.query.contains("Strict") {
                    "strict POST"
                } else {
                    "POST"
                };
                ledger.note(&step, sort, compare(&step, &outcome));
                if let Ok(object) = outcome
                    && !step.query.contains("dryRun")
                {
                    live.insert(format!("{key}{}", object.name()), object);
                }
            }
            "GET" => {
                if let Some(object) = live.get(&key) {
                    ledger.note(&step, "GET as table", table(&step, &target, object));
                }
            }
            "PUT" => {
                if let Some(object) = live.get(&key) {
                    let outcome = target.update(&step, object);
                    ledger.note(&step, "PUT", compare(&step, &outcome));
                }
            }
            "DELETE" => ledger.note(&step, "DELETE", delete(&step, &target)),
            _ => {}
        }
    }
    ledger.settle("builtins");
}

#[test]
fn invalid_objects_are_rejected_with_the_recorded_texts() {
    let mut ledger = Ledger::default();
    for step in read("errors.jsonl") {
        let Some(target) = target(&step.path) else {
            continue;
        };
        let builtin = step.method == "POST"
            && step
                .body
                .as_object()
                .is_some_and(|body: &Map| body.contains_key("kind"))
            && matches!(step.code, 201 | 422);
        let options = step.answer.at(&["message"]).and_then(Value::as_str);
        if !builtin || options.is_some_and(|text| text.contains("Options.meta")) {
            continue;
        }
        ledger.note(&step, "POST", compare(&step, &target.create(&step)));
    }
    ledger.settle("errors");
}
