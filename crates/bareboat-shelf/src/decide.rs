//! What a change means for the row that an object has, without a database.

use crate::draft::Draft;
use crate::path::Path;
use crate::ring::{Before, Event, EventType};
use crate::row::Narrow;
use bareboat_api::{Map, Value};
use bytes::Bytes;

/// Returns whether a row has the object already, apart from its body. A member that was restored from a backup gives versions a
/// second time, so the body must be compared as well.
pub fn is_same(old: &Narrow, draft: &Draft) -> bool {
    old.uid == draft.uid
        && old.member_version == draft.member_version
        && old.version == draft.version
}

/// Returns the row of an object: that of the same object, changed, or a new one.
pub fn next(old: Option<Narrow>, draft: &Draft, declared: &[Path], now: i64) -> Narrow {
    let fields = extracted(&draft.object, declared);
    let mut narrow = old.unwrap_or_else(|| Narrow {
        namespace: draft.namespace.clone(),
        name: draft.name.clone(),
        uid: draft.uid.clone(),
        ..Narrow::default()
    });
    narrow.version.clone_from(&draft.version);
    narrow.owner.clone_from(&draft.owner);
    narrow.member_version.clone_from(&draft.member_version);
    narrow.labels.clone_from(&draft.labels);
    (narrow.created, narrow.deleting) = (draft.created, draft.deleting);
    (narrow.fields, narrow.synced) = (fields, now);
    narrow
}

/// Returns the event of a row that was written.
pub fn put(narrow: Narrow, draft: &Draft, before: Option<(Narrow, Bytes)>) -> Event {
    let event = match before.is_some() {
        true => EventType::Modified,
        false => EventType::Added,
    };
    Event {
        event,
        narrow,
        body: draft.body.clone(),
        splice: draft.splice,
        before: before.map(|(narrow, body)| Before { narrow, body }),
        merged: false,
    }
}

/// Returns the event of a row that was removed. `narrow` is the row with the version of its deletion.
pub fn bury(narrow: Narrow, before: Narrow, body: Bytes) -> Event {
    Event {
        event: EventType::Deleted,
        narrow,
        body: body.clone(),
        splice: splice_of(&body),
        before: Some(Before {
            narrow: before,
            body,
        }),
        merged: false,
    }
}

/// Returns where the resourceVersion belongs in a body of the shelf.
fn splice_of(body: &[u8]) -> usize {
    const START: &[u8] = b"\"metadata\":{";
    memchr::memmem::find(body, START).map_or(0, |at| at + START.len())
}

/// Returns the declared fields of an object as a JSON object of texts.
pub(crate) fn extracted(object: &Value, declared: &[Path]) -> String {
    let mut fields = Map::new();
    for path in declared {
        let text = match path.read(object) {
            None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => continue,
            Some(Value::String(text)) => text.to_string(),
            Some(other) => other.to_string(),
        };
        // Some databases cannot store the zero character.
        let text = text.replace('\0', "\u{fffd}");
        fields.insert(path.to_string(), Value::string(text));
    }
    String::from_utf8(Value::Object(fields).to_json()).unwrap_or_default()
}
