//! What the server that syncs a member tells the others about it, on a shelf that they share.

use super::state::MemberState;
use crate::discovery::ApiResource;
use crate::types::{Chosen, Definitions};
use bareboat_api::{Map, Value, value};
use sha2::{Digest as _, Sha256};

/// How exact the time is at which a member was last heard, in milliseconds. Every other time would be a change of the note.
const EXACT: i64 = 10_000;
/// The most bytes of a note. A longer one is told without its types, which other servers then find on the shelf.
const LONGEST: usize = 1 << 20;

/// What is told about a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Note {
    pub(crate) ready: bool,
    pub(crate) reason: String,
    pub(crate) in_sync: bool,
    pub(crate) version: Value,
    pub(crate) shows_secrets: bool,
    /// The types, without their definitions.
    pub(crate) types: Vec<Chosen>,
}

impl Note {
    /// Prints what is told, or the most important part of it.
    fn text(&self) -> String {
        let text = self.print();
        match text.len() > LONGEST {
            true => Note {
                types: Vec::new(),
                ..self.clone()
            }
            .print(),
            false => text,
        }
    }

    fn print(&self) -> String {
        let types: Vec<Value> = self.types.iter().map(print_type).collect();
        let note = value!({
            "ready": (self.ready), "reason": (self.reason.as_str()), "inSync": (self.in_sync), "version": (self.version.clone()),
            "secrets": (self.shows_secrets), "types": (Value::Array(types)),
        });
        String::from_utf8(note.to_json()).unwrap_or_default()
    }

    /// Reads a note, and when the member was last heard.
    pub(crate) fn parse(text: &str) -> Option<(Note, Option<i64>)> {
        let (heard, note) = text.split_once(' ')?;
        let heard = heard.parse().ok().filter(|time| *time > 0);
        let note = bareboat_wire::json::parse(note.as_bytes()).ok()?.value;
        let holds = |key: &str| note.get(key) == Some(&Value::Bool(true));
        let types = note.get("types")?.as_array()?.iter();
        let parsed = Note {
            ready: holds("ready"),
            reason: note.get("reason")?.as_str()?.to_owned(),
            in_sync: holds("inSync"),
            version: note.get("version")?.clone(),
            shows_secrets: holds("secrets"),
            types: types.filter_map(parse_type).collect(),
        };
        Some((parsed, heard))
    }

    /// Adds the definitions of custom types.
    pub(crate) fn complete(&mut self, definitions: &Definitions) {
        for one in &mut self.types {
            one.definition = definitions.get(&one.key()).cloned();
        }
    }
}

/// Returns the text of a note.
pub(crate) fn of(state: &MemberState) -> String {
    let heard = state.last_heard().unwrap_or(0) / EXACT * EXACT;
    let note = state.noted(Note::text);
    format!("{heard} {note}")
}

fn print_type(chosen: &Chosen) -> Value {
    let resource = &chosen.resource;
    let texts = |texts: &[String]| -> Value { texts.iter().map(Value::string).collect() };
    let mut map = Map::new();
    for (key, text) in [
        ("group", &resource.group),
        ("version", &resource.version),
        ("resource", &resource.resource),
        ("kind", &resource.kind),
        ("singular", &resource.singular),
    ] {
        map.insert(key, Value::string(text));
    }
    map.insert("namespaced", Value::Bool(resource.namespaced));
    for (key, list) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
        ("others", &chosen.others),
    ] {
        map.insert(key, texts(list));
    }
    if let Some(definition) = &chosen.definition {
        // The definition itself is on the shelf. Its digest tells that it changed.
        let digest = Sha256::digest(definition.to_json());
        let digest: String = digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        map.insert("definition", Value::string(digest));
    }
    Value::Object(map)
}

fn parse_type(value: &Value) -> Option<Chosen> {
    let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
    let texts = |key: &str| -> Vec<String> {
        let list = value.get(key).and_then(Value::as_array).unwrap_or_default();
        list.iter()
            .filter_map(|one| Some(one.as_str()?.to_owned()))
            .collect()
    };
    let resource = ApiResource {
        group: text("group")?,
        version: text("version")?,
        resource: text("resource")?,
        kind: text("kind")?,
        singular: text("singular")?,
        short_names: texts("shortNames"),
        categories: texts("categories"),
        namespaced: value.get("namespaced") == Some(&Value::Bool(true)),
        verbs: Vec::new(),
    };
    Some(Chosen {
        resource,
        others: texts("others"),
        // It is for the status, which only the server that syncs the member writes.
        alias: None,
        definition: None,
        shown: true,
        named: false,
    })
}

#[cfg(test)]
mod tests {
    use super::{Note, parse_type};
    use bareboat_api::value;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let pods = value!({
            "group": "", "version": "v1", "resource": "pods", "kind": "Pod", "singular": "pod", "namespaced": true,
            "shortNames": ["po"], "categories": ["all"], "others": ["v2"],
        });
        let note = Note {
            ready: true,
            reason: "x".to_owned(),
            in_sync: true,
            version: value!({"gitVersion": "v1"}),
            shows_secrets: true,
            types: vec![parse_type(&pods).expect("it is complete")],
        };
        let text = format!("20000 {}", note.print());
        let (read, heard) = Note::parse(&text).expect("it can be read");
        assert_eq!((read, heard), (note, Some(20_000)));
        assert_eq!(Note::parse(""), None);
        assert_eq!(Note::parse("0 {}"), None);
    }
}
