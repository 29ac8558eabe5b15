//! Runs the published CEL conformance tests.
//!
//! They are read from BAREBOAT_VECTORS; if the folder is absent, nothing is tested.

#![allow(clippy::unwrap_used)]

mod textproto;

use std::path::PathBuf;

use bareboat_cel::{Budget, Env, EvalError, MapVal, Type, Val, Variables};
use textproto::{Field, Message};

/// Files and sections that need features Kubernetes does not have, with that feature.
const SKIPPED_FILES: &[(&str, &str)] = &[
    ("proto2", "protobuf messages"),
    ("proto2_ext", "protobuf extensions"),
    ("proto3", "protobuf messages"),
    ("enums", "protobuf enums"),
    ("wrappers", "protobuf wrapper messages"),
    ("block_ext", "an optimizer's internal form"),
    ("unknowns", "partial evaluation"),
];

/// Texts in a test that show that it needs protobuf messages.
const MESSAGES: &[&str] = &[
    "TestAllTypes",
    "google.protobuf.",
    "NestedTestAllTypes",
    "GlobalEnum",
    "proto2",
    "proto3",
    "type_url",
];

/// Single tests, with the reason why Kubernetes' language gives another answer.
const SKIPPED_TESTS: &[(&str, &str)] = &[
    ("dynamic/value_null/literal", "protobuf messages"),
    (
        "network_ext/ipv4/ipv4_equals_ipv6",
        "Kubernetes refuses IPv4 addresses mapped into IPv6",
    ),
    (
        "network_ext/ipv4/ipv4_not_equals_ipv6",
        "Kubernetes refuses IPv4 addresses mapped into IPv6",
    ),
    (
        "string_ext/value_errors/indexof_out_of_range",
        "Kubernetes answers -1 beyond the end",
    ),
    (
        "string_ext/value_errors/lastindexof_out_of_range",
        "Kubernetes answers -1 beyond the end",
    ),
    (
        "timestamps/duration_converters/get_milliseconds",
        "Kubernetes gives the whole duration in milliseconds",
    ),
];

struct Outcome {
    passed: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
}

#[test]
fn the_published_conformance_tests_pass() {
    let Some(folder) = bareboat_vectors::folder("cel") else {
        return;
    };
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut outcome = Outcome {
        passed: 0,
        skipped: Vec::new(),
        failed: Vec::new(),
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let Some(name) = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
        else {
            continue;
        };
        let file = textproto::parse(&std::fs::read_to_string(&path).unwrap());
        let count = file
            .messages("section")
            .flat_map(|s| s.messages("test"))
            .count();
        if let Some((_, why)) = SKIPPED_FILES.iter().find(|(file, _)| *file == name) {
            for _ in 0..count {
                outcome.skipped.push(format!("{name}: {why}"));
            }
            continue;
        }
        for section in file.messages("section") {
            for test in section.messages("test") {
                run(
                    &name,
                    &section.text("name").unwrap_or_default(),
                    test,
                    &mut outcome,
                );
            }
        }
    }
    println!(
        "{} passed, {} skipped, {} failed",
        outcome.passed,
        outcome.skipped.len(),
        outcome.failed.len()
    );
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for reason in &outcome.skipped {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason.clone(), 1)),
        }
    }
    for (reason, count) in reasons {
        println!("skipped {count:4}  {reason}");
    }
    assert!(outcome.failed.is_empty(), "{}", outcome.failed.join("\n"));
}

fn run(file: &str, section: &str, test: &Message, outcome: &mut Outcome) {
    let name = format!("{file}/{section}/{}", test.text("name").unwrap_or_default());
    if let Some((_, why)) = SKIPPED_TESTS.iter().find(|(test, _)| *test == name) {
        outcome.skipped.push(format!("{file}: {why}"));
        return;
    }
    if needs_messages(test) {
        outcome.skipped.push(format!("{file}: protobuf messages"));
        return;
    }
    if test
        .messages("type_env")
        .any(|declared| declared.get("function").is_some())
    {
        outcome
            .skipped
            .push(format!("{file}: functions only the test declares"));
        return;
    }
    match check(test) {
        Ok(()) => outcome.passed += 1,
        Err(why) => {
            let expr = test.text("expr").unwrap_or_default();
            outcome.failed.push(format!("{name}: {expr}\n    {why}"));
        }
    }
}

/// Returns whether a test needs messages. Timestamps and durations have message names, but are not
/// messages here.
fn needs_messages(test: &Message) -> bool {
    let mut shown = String::new();
    flatten(test, &mut shown);
    let built = ["google.protobuf.Timestamp{", "google.protobuf.Duration{"]
        .iter()
        .any(|text| shown.contains(text));
    let shown = shown
        .replace("google.protobuf.Timestamp", "")
        .replace("google.protobuf.Duration", "")
        // Comments between the parts of a name do not change it.
        .replace("// @", "")
        .replace(char::is_whitespace, "");
    built || MESSAGES.iter().any(|text| shown.contains(text))
}

/// Collects all names and texts of a test except its own name and description.
fn flatten(message: &Message, out: &mut String) {
    for (name, field) in &message.fields {
        if matches!(name.as_str(), "name" | "description") {
            continue;
        }
        out.push_str(name);
        out.push(' ');
        match field {
            Field::Message(inner) => flatten(inner, out),
            Field::Text(text) => out.push_str(&String::from_utf8_lossy(text)),
            Field::Word(word) => out.push_str(word),
        }
        out.push('\n');
    }
}

fn check(test: &Message) -> Result<(), String> {
    let expr = test.text("expr").unwrap_or_default();
    let mut env = Env::permissive();
    if let Some(container) = test.text("container") {
        env = env.container(&container);
    }
    for declared in test.messages("type_env") {
        let name = declared.text("name").unwrap_or_default();
        if let Some(ident) = declared.message("ident") {
            env = env.variable(&name, type_of(ident.message("type").unwrap()));
        }
    }
    let unchecked = test.text("disable_check").as_deref() == Some("true");
    let wants_error = test.get("eval_error").is_some() || test.get("any_eval_errors").is_some();
    let program = if unchecked {
        env.program_unchecked(&expr)
            .map_err(|issues| issues.to_string())
    } else {
        env.compile(&expr)
            .map_err(|issues| issues.to_string())
            .and_then(|checked| {
                let typed = test.message("typed_result");
                if let Some(wanted) = typed.and_then(|typed| typed.message("deduced_type")) {
                    let (wanted, found) = (type_of(wanted), checked.result_type());
                    if wanted.to_string() != found.to_string() {
                        return Err(format!("type is {found}, not {wanted}"));
                    }
                }
                env.program(&checked).map_err(|error| error.to_string())
            })
    };
    let program = match program {
        Ok(program) => program,
        Err(_) if wants_error => return Ok(()),
        Err(why) => return Err(why),
    };
    if test.text("check_only").as_deref() == Some("true") {
        return Ok(());
    }
    let mut variables = Variables::new();
    for binding in test.messages("bindings") {
        let name = binding.text("key").unwrap();
        let value = binding
            .message("value")
            .and_then(|value| value.message("value"));
        variables.set(&name, value_of(value.unwrap())?);
    }
    let mut budget = Budget::new(u64::MAX);
    let result: Result<Val<'_>, EvalError> = program.eval(&variables, &mut budget);
    if wants_error {
        return match result {
            Ok(value) => Err(format!("gave {value} instead of an error")),
            Err(_) => Ok(()),
        };
    }
    let wanted = test.message("value").or_else(|| {
        test.message("typed_result")
            .and_then(|typed| typed.message("result"))
    });
    let wanted = match wanted {
        Some(wanted) => value_of(wanted)?,
        None => Val::Bool(true),
    };
    match result {
        Ok(found) if same(&found, &wanted) => Ok(()),
        Ok(found) => Err(format!("gave {found}, not {wanted}")),
        Err(error) => Err(format!("failed: {error}")),
    }
}

/// Compares values with their types; NaN equals NaN.
fn same(a: &Val<'_>, b: &Val<'_>) -> bool {
    if std::mem::discriminant(a) != std::mem::discriminant(b) {
        return false;
    }
    match (a, b) {
        (Val::Double(a), Val::Double(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Val::List(a), Val::List(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|(a, b)| same(&a.unwrap(), &b.unwrap()))
        }
        (Val::Map(a), Val::Map(b)) => {
            let (a, b) = (entries(a), entries(b));
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.iter().any(|(k, v)| same(key, k) && same(value, v)))
        }
        (Val::Type(a), Val::Type(b)) => a.name() == b.name(),
        _ => a.to_string() == b.to_string(),
    }
}

fn entries<'a>(map: &MapVal<'a>) -> Vec<(Val<'a>, Val<'a>)> {
    match map {
        MapVal::Values(entries) => entries
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
        MapVal::Json { .. } => Vec::new(),
    }
}

fn value_of(message: &Message) -> Result<Val<'static>, String> {
    let (kind, field) = message.fields.first().ok_or("no value")?;
    let word = match field {
        Field::Word(word) => word.clone(),
        Field::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Field::Message(_) => String::new(),
    };
    Ok(match (kind.as_str(), field) {
        ("null_value", _) => Val::Null,
        ("bool_value", _) => Val::Bool(word == "true"),
        ("int64_value", _) => Val::Int(number(&word)? as i64),
        ("uint64_value", _) => Val::Uint(number(&word)? as u64),
        ("double_value", _) => Val::Double(match word.as_str() {
            "inf" | "infinity" => f64::INFINITY,
            "-inf" | "-infinity" => f64::NEG_INFINITY,
            "nan" => f64::NAN,
            other => other.parse().map_err(|_| format!("no double: {other}"))?,
        }),
        ("string_value", _) => Val::text(word),
        ("bytes_value", Field::Text(bytes)) => Val::bytes(bytes.clone()),
        ("type_value", _) => Val::Type(named_type(&word)),
        ("list_value", Field::Message(list)) => {
            let items = list
                .messages("values")
                .map(value_of)
                .collect::<Result<_, _>>()?;
            Val::list(items)
        }
        ("map_value", Field::Message(map)) => {
            let program = build_map(map)?;
            return Ok(program);
        }
        ("object_value", Field::Message(object)) => time_of(object)?,
        (other, _) => return Err(format!("cannot read {other}")),
    })
}

fn number(word: &str) -> Result<i128, String> {
    let digits = word.trim_start_matches('-');
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let magnitude = magnitude.map_err(|_| format!("no number: {word}"))?;
    Ok(if word.starts_with('-') {
        -magnitude
    } else {
        magnitude
    })
}

/// Builds a map value by evaluating the insertion of its entries.
fn build_map(map: &Message) -> Result<Val<'static>, String> {
    let mut entries = Vec::new();
    for entry in map.messages("entries") {
        let key = value_of(entry.message("key").ok_or("no key")?)?;
        let value = value_of(entry.message("value").ok_or("no value")?)?;
        entries.push((key, value));
    }
    Val::map(entries).map_err(|error| error.to_string())
}

fn time_of(object: &Message) -> Result<Val<'static>, String> {
    let (name, value) = object.fields.first().ok_or("no object")?;
    let Field::Message(value) = value else {
        return Err("no object".into());
    };
    let part = |name: &str| value.text(name).map_or(Ok(0), |word| number(&word));
    let (seconds, nanos) = (part("seconds")?, part("nanos")?);
    if name.ends_with("google.protobuf.Timestamp]") {
        let text = format!("timestamp({seconds}) + duration('{nanos}ns')");
        return constant(&text);
    }
    if name.ends_with("google.protobuf.Duration]") {
        return Ok(Val::Duration((seconds * 1_000_000_000 + nanos) as i64));
    }
    Err(format!("cannot read {name}"))
}

fn constant(expr: &str) -> Result<Val<'static>, String> {
    let env = Env::permissive();
    let checked = env.compile(expr).map_err(|issues| issues.to_string())?;
    let program = env.program(&checked).map_err(|error| error.to_string())?;
    let value = program.eval(&Variables::new(), &mut Budget::new(1000));
    match value.map_err(|error| error.to_string())? {
        Val::Timestamp(timestamp) => Ok(Val::Timestamp(timestamp)),
        other => Err(format!("no time: {other}")),
    }
}

fn named_type(name: &str) -> Type {
    match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Type(None),
        other => Type::opaque(other),
    }
}

fn type_of(message: &Message) -> Type {
    let Some((kind, field)) = message.fields.first() else {
        return Type::Dyn;
    };
    match (kind.as_str(), field) {
        ("primitive", Field::Word(word)) => match word.as_str() {
            "BOOL" => Type::Bool,
            "INT64" => Type::Int,
            "UINT64" => Type::Uint,
            "DOUBLE" => Type::Double,
            "STRING" => Type::String,
            _ => Type::Bytes,
        },
        ("well_known", Field::Word(word)) => match word.as_str() {
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            _ => Type::Dyn,
        },
        ("null", _) => Type::Null,
        ("list_type", Field::Message(list)) => {
            Type::list(list.message("elem_type").map_or(Type::Dyn, type_of))
        }
        ("map_type", Field::Message(map)) => Type::map(
            map.message("key_type").map_or(Type::Dyn, type_of),
            map.message("value_type").map_or(Type::Dyn, type_of),
        ),
        ("message_type", Field::Text(name)) => match name.as_slice() {
            b"google.protobuf.Timestamp" => Type::Timestamp,
            b"google.protobuf.Duration" => Type::Duration,
            _ => Type::Dyn,
        },
        ("type", Field::Message(of)) if of.fields.is_empty() => Type::Type(None),
        ("type", Field::Message(of)) => Type::Type(Some(std::sync::Arc::new(type_of(of)))),
        ("abstract_type", Field::Message(ty)) => {
            let params: Vec<Type> = ty.messages("parameter_types").map(type_of).collect();
            match (ty.text("name").as_deref(), &params[..]) {
                (Some("optional_type"), [of]) => Type::optional(of.clone()),
                (Some(name), _) => Type::opaque(name),
                _ => Type::Dyn,
            }
        }
        _ => Type::Dyn,
    }
}
