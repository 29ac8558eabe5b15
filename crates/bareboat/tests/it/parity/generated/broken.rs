//! Broken bodies, generated from a seed: content, format and kind of damage.
//!
//! All requests are dry runs, so each is independent of the others.

use super::author::with_name;
use super::chance::Chance;
use super::menu::Subject;
use super::spoil::{other_type, with_duplicate};
use super::tree::{self, Step};
use crate::support::{APPLY, JSON_PATCH, MERGE, PROTOBUF, STRATEGIC, Value, json};
use bareboat_builtin::facts;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// A request that is usually invalid.
pub(super) struct Broken {
    pub(super) what: String,
    pub(super) method: &'static str,
    pub(super) media: &'static str,
    pub(super) body: Vec<u8>,
}

/// Generates a request about an object with that name.
pub(super) fn broken(chance: &mut Chance, subject: &Subject, name: &str) -> Broken {
    let version = &subject.versions[0];
    let mut object = with_name(version, version.base.clone(), name);
    let pieces: Vec<_> = version
        .pieces
        .iter()
        .filter(|piece| !piece.of_status())
        .collect();
    for _ in 0..chance.below(4) {
        let piece = chance.one(&pieces);
        let value = chance.one(&piece.values).clone();
        tree::set(&mut object, &piece.path, value);
    }
    let method = chance.word(&["POST", "POST", "PUT", "PATCH"]);
    if method == "PATCH" {
        return patch(chance, object);
    }
    match chance.below(20) {
        0..=8 => {
            let what = misplace(chance, &mut object);
            let media = chance.word(&[JSON, JSON, YAML]);
            made(what, method, media, object.to_string())
        }
        9 | 10 => cut(chance, method, &object),
        11 => whole(chance, method),
        12 => foreign(chance, method, &object),
        13 => {
            let body = with_duplicate(chance, &object);
            made("a member twice".to_owned(), method, YAML, body)
        }
        _ if subject.custom => made("as it is".to_owned(), method, PROTOBUF, object.to_string()),
        _ => protobuf(chance, method, subject, &object),
    }
}

fn made(
    what: String,
    method: &'static str,
    media: &'static str,
    body: impl Into<Vec<u8>>,
) -> Broken {
    let form = media.rsplit(['/', '.']).next().unwrap_or(media);
    Broken {
        what: format!("{method} {form}: {what}"),
        method,
        media,
        body: body.into(),
    }
}

/// Replaces a value by one of another type, or removes it; returns a description.
fn misplace(chance: &mut Chance, object: &mut Value) -> String {
    let mut places = tree::places(object);
    for text in [
        "apiVersion",
        "kind",
        "metadata",
        "metadata/name",
        "metadata/uid",
    ] {
        places.push(tree::path(text));
    }
    let place = chance.one(&places).clone();
    let before = tree::get(object, &place).cloned().unwrap_or_default();
    let wrong = match chance.percent(20) {
        true => Value::Null,
        false => other_type(chance, &before),
    };
    let message = format!("{} is {wrong}", tree::pointer(object, &place));
    tree::set(object, &place, wrong);
    message
}

/// Truncates the text or inserts something invalid.
fn cut(chance: &mut Chance, method: &'static str, object: &Value) -> Broken {
    let media = chance.word(&[JSON, YAML]);
    let mut text = object.to_string().into_bytes();
    let at = chance.below(text.len());
    let what = match chance.below(3) {
        0 => {
            text.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            let letter = chance.word(&["}", "]", ",", "\"", "\\", "\u{1}", "{", "x"]);
            text.splice(at..at, letter.bytes());
            format!("{letter:?} at {at}")
        }
        _ => {
            text.extend(b"{}");
            "more after the end".to_owned()
        }
    };
    made(what, method, media, text)
}

/// Returns a body that is not an object.
fn whole(chance: &mut Chance, method: &'static str) -> Broken {
    let text = chance.word(&[
        "", "null", "7", "[]", "\"text\"", "true", "{}", "[{}]", "---", " ",
    ]);
    let media = chance.word(&[JSON, YAML, PROTOBUF]);
    made(format!("{text:?}"), method, media, text)
}

/// Returns a body with an unsupported media type.
fn foreign(chance: &mut Chance, method: &'static str, object: &Value) -> Broken {
    let media = chance.word(&[
        "text/plain",
        "application/xml",
        "nonsense",
        MERGE,
        APPLY,
        "application/json; charset=utf-8",
        "application/json;stream=watch",
        "APPLICATION/JSON",
        "*/*",
    ]);
    made("another form".to_owned(), method, media, object.to_string())
}

/// Returns a damaged protobuf body.
fn protobuf(
    chance: &mut Chance,
    method: &'static str,
    subject: &Subject,
    object: &Value,
) -> Broken {
    let version = &subject.versions[0];
    let (group, number) = match version.api_version.split_once('/') {
        Some((group, number)) => (group, number),
        None => ("", version.api_version.as_str()),
    };
    let message = facts::kind(group, number, &version.kind).expect("a built-in kind");
    let parsed = bareboat_wire::json::parse(object.to_string().as_bytes()).expect("JSON");
    let mut value = parsed.value;
    // An invalid object cannot be encoded, so the plain one is used.
    let shape = bareboat_builtin::kinds::find(group, &subject.plural).expect("a built-in kind");
    let shape = &shape.version(number).expect("its version").shape;
    let formed = shape.conform(&mut value, &mut Vec::new());
    let mut bytes = match formed {
        Ok(()) => bareboat_wire::proto::encode_object(message.get(), &value).unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    if bytes.is_empty() {
        return made("nothing".to_owned(), method, PROTOBUF, bytes);
    }
    let at = chance.below(bytes.len());
    let what = match chance.below(6) {
        0 | 1 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        2 | 3 => {
            // The low bits of a tag are the wire type.
            bytes[at] ^= 1 + chance.below(7) as u8;
            format!("other bits at {at}")
        }
        4 => {
            // Keep texts valid UTF-8: kube-apiserver accepts any bytes.
            bytes[at] = 0x7f;
            format!("0x7f at {at}")
        }
        _ => "as it is".to_owned(),
    };
    made(what, method, PROTOBUF, bytes)
}

/// Returns an invalid patch.
fn patch(chance: &mut Chance, mut object: Value) -> Broken {
    let media = chance.word(&[MERGE, STRATEGIC, JSON_PATCH, APPLY]);
    let what = match chance.below(4) {
        0 => {
            let text = chance.word(&[
                "",
                "null",
                "7",
                "[]",
                "{}",
                "\"text\"",
                "{",
                "[{}]",
                "[7]",
                "{\"data\":",
                "a: [",
            ]);
            return made(format!("{text:?}"), "PATCH", media, text);
        }
        1 => {
            let mut text = object.to_string();
            text.truncate(chance.below(text.len()));
            return made(format!("cut at {}", text.len()), "PATCH", media, text);
        }
        _ => misplace(chance, &mut object),
    };
    if media == JSON_PATCH {
        let places = tree::places(&object);
        let place = chance.one(&places);
        let path = tree::pointer(&object, place);
        let operation = chance.word(&["add", "replace", "remove", "test", "copy", "fly", ""]);
        let mut step = json!({"op": operation, "path": path, "from": path, "value": 7});
        if chance.percent(30) {
            let member = chance.word(&["op", "path", "from", "value"]);
            tree::remove(&mut step, &[Step::Member(member.to_owned())]);
        }
        let body = json!([step]).to_string();
        return made(body.clone(), "PATCH", media, body);
    }
    made(what, "PATCH", media, object.to_string())
}
