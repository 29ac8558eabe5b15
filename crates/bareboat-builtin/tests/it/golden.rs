//! Every built-in kind with every field set: no field is unknown, lost or changed.

use crate::vectors;
use bareboat_api::Value;
use bareboat_api::facts::MessageRef;
use bareboat_builtin::facts;
use bareboat_builtin::typed::{Empties, conform};
use std::path::Path;

/// Returns the message of a file name such as `apps.v1.Deployment.json`.
fn message_of(path: &Path) -> MessageRef {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let (rest, kind) = name.rsplit_once('.').unwrap();
    let (group, version) = rest.rsplit_once('.').unwrap();
    let group = if group == "core" { "" } else { group };
    facts::kind(group, version, kind).unwrap_or_else(|| panic!("{name} is not in the table"))
}

#[test]
fn filled_objects_are_not_changed_by_normalization() {
    let Some(folder) = vectors::folder("kinds") else {
        return;
    };
    let mut wrong = Vec::new();
    for path in vectors::files(&folder, "json") {
        let original = vectors::json(&path);
        let mut object = original.clone();
        let mut findings = Vec::new();
        let result = conform(
            &message_of(&path),
            &mut object,
            Empties::Null,
            &mut findings,
        );
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Err(error) = result {
            wrong.push(format!("{name}: {error}"));
        } else if !findings.is_empty() {
            wrong.push(format!("{name}: {findings:?}"));
        } else if object != original {
            wrong.push(format!("{name}: {}", difference(&original, &object)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the first place where two values differ.
pub(crate) fn difference(expected: &Value, found: &Value) -> String {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a.iter() {
                match b.get(key) {
                    None => return format!(".{key} is missing, should be {value}"),
                    Some(other) if other != value => {
                        return format!(".{key}{}", difference(value, other));
                    }
                    Some(_) => {}
                }
            }
            let extra: Vec<&str> = b.keys().filter(|key| !a.contains_key(key)).collect();
            match extra.first() {
                Some(key) => format!(".{key} should not be there, is {}", b.get(key).unwrap()),
                None => " no difference".to_owned(),
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let index = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
            format!("[{index}]{}", difference(&a[index], &b[index]))
        }
        _ => format!(" is {found}, should be {expected}"),
    }
}

#[test]
fn filled_objects_survive_protobuf_byte_for_byte() {
    let Some(folder) = vectors::folder("kinds") else {
        return;
    };
    let mut wrong = Vec::new();
    let mut compared = 0;
    for path in vectors::files(&folder, "json") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let object = vectors::json(&path);
        let bytes = std::fs::read(path.with_extension("pb")).unwrap();
        let message = message_of(&path);
        let find = |_: &str, _: &str| Some(message);
        let decoded = bareboat_wire::proto::decode_object(&bytes, find).map(|mut value| {
            // A WatchEvent has no type meta, so its envelope has none.
            let map = value.as_object_mut().unwrap();
            map.retain(|key, value| {
                !matches!(key, "apiVersion" | "kind") || value.as_str() != Some("")
            });
            value
        });
        match decoded {
            Err(error) => wrong.push(format!("{name} decoding: {error}")),
            Ok(found) if found != object => {
                wrong.push(format!("{name} decoding: {}", difference(&object, &found)));
            }
            Ok(_) => {}
        }
        match bareboat_wire::proto::encode_object(&message, &object) {
            Err(error) => wrong.push(format!("{name} encoding: {error}")),
            Ok(found) if found != bytes => wrong.push(format!("{name} encoding: other bytes")),
            Ok(_) => {}
        }
        compared += 1;
    }
    println!("{compared} kinds compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
