//! Reads events and pages of a member into changes of the shelf. Nothing that a member sends is trusted: objects that are
//! malformed are left out, and versions that go backwards end the watch.

use super::redact::Redaction;
use crate::api::MemberError;
use crate::options::SyncOptions;
use bareboat_api::Value;
use bareboat_shelf::{Change, Draft};
use bytes::Bytes;
use std::sync::Arc;

/// The annotation of the bookmark after the present state.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Reads objects of one type.
pub(super) struct Reader {
    pub(super) member: Arc<str>,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) options: Arc<SyncOptions>,
    pub(super) namespaces: Option<Arc<[String]>>,
    pub(super) redaction: Redaction,
}

/// What a batch of events means.
#[derive(Default)]
pub(super) struct Events {
    pub(super) changes: Vec<Change>,
    /// The version they lead to.
    pub(super) version: Option<String>,
    /// How many objects were left out because they are malformed.
    pub(super) skipped: usize,
    /// Why the watch is over.
    pub(super) ended: Option<Ended>,
}

/// Why a watch is over.
pub(super) enum Ended {
    Expired,
    Failed(MemberError),
}

/// What a batch of events before the end of the present state means.
#[derive(Default)]
pub(super) struct State {
    pub(super) changes: Vec<Change>,
    /// How many objects were left out because they are malformed.
    pub(super) skipped: usize,
    /// How many lines were read.
    pub(super) read: usize,
    /// How the part with the present state is over.
    pub(super) end: Option<StateEnd>,
}

/// How the part of a watch with the present state is over.
pub(super) enum StateEnd {
    /// All objects were sent; this is their version.
    Complete(String),
    /// The member does not mark the end.
    Unmarked(&'static str),
    Ended(Ended),
}

/// A page of a list.
pub(super) struct Page {
    pub(super) changes: Vec<Change>,
    pub(super) skipped: usize,
    pub(super) version: String,
    pub(super) next: String,
}

impl Reader {
    /// Reads events of a watch that began at a version.
    pub(super) fn events(&self, lines: &[Bytes], start: &str) -> Events {
        let mut events = Events::default();
        let start = start.parse::<u64>().ok();
        for line in lines {
            let Ok(parsed) = bareboat_wire::json::parse(line) else {
                let why = "an event of the watch is not JSON".to_owned();
                events.ended = Some(Ended::Failed(MemberError::Garbage(why)));
                break;
            };
            let mut event = parsed.value;
            let object = event
                .at_mut(&["object"])
                .map(Value::take)
                .unwrap_or_default();
            let kind = event.get("type").and_then(Value::as_str).unwrap_or("");
            if kind == "ERROR" {
                events.ended = Some(failed(&object));
                break;
            }
            let Some(version) = version_of(&object).map(str::to_owned) else {
                events.skipped += 1;
                continue;
            };
            // A watch brings what is newer than its start. Anything else is of a member whose versions were reset.
            let backwards = match (start, version.parse::<u64>().ok()) {
                (Some(start), Some(found)) if kind == "BOOKMARK" => found < start,
                (Some(start), Some(found)) => found <= start,
                _ => false,
            };
            if backwards {
                events.ended = Some(Ended::Expired);
                break;
            }
            match kind {
                "ADDED" | "MODIFIED" => match self.change(object) {
                    Some(change) => events.changes.push(change),
                    None => events.skipped += 1,
                },
                "DELETED" => match deletion(&object, Some(version.clone())) {
                    Some(change) => events.changes.push(change),
                    None => events.skipped += 1,
                },
                "BOOKMARK" => {}
                _ => {
                    let why = "the watch has events of an unknown type".to_owned();
                    events.ended = Some(Ended::Failed(MemberError::Garbage(why)));
                    break;
                }
            }
            events.version = Some(version);
        }
        events
    }

    /// Reads events that bring the present state, up to the bookmark that ends it.
    pub(super) fn state(&self, lines: &[Bytes]) -> State {
        let mut state = State::default();
        for line in lines {
            state.read += 1;
            let Ok(parsed) = bareboat_wire::json::parse(line) else {
                state.end = Some(StateEnd::Unmarked("an event of the watch is not JSON"));
                break;
            };
            let mut event = parsed.value;
            let object = event
                .at_mut(&["object"])
                .map(Value::take)
                .unwrap_or_default();
            let change = match event.get("type").and_then(Value::as_str).unwrap_or("") {
                "ADDED" => match self.change(object) {
                    // What is not kept is removed at the end.
                    Some(Change::Delete { .. }) => continue,
                    other => other,
                },
                "MODIFIED" => self.change(object),
                "DELETED" => {
                    let version = version_of(&object).map(str::to_owned);
                    deletion(&object, version)
                }
                "BOOKMARK" => {
                    let end = object.at(&["metadata", "annotations", INITIAL_END]);
                    let is_end = end.and_then(Value::as_str) == Some("true");
                    state.end = Some(match version_of(&object).filter(|_| is_end) {
                        Some(version) => StateEnd::Complete(version.to_owned()),
                        None => StateEnd::Unmarked("a bookmark does not end the present state"),
                    });
                    break;
                }
                "ERROR" => {
                    state.end = Some(StateEnd::Ended(failed(&object)));
                    break;
                }
                _ => {
                    let why = "the watch has events of an unknown type";
                    state.end = Some(StateEnd::Unmarked(why));
                    break;
                }
            };
            match change {
                Some(change) => state.changes.push(change),
                None => state.skipped += 1,
            }
        }
        state
    }

    /// Reads a page of a list.
    pub(super) fn page(&self, bytes: &[u8]) -> Result<Page, MemberError> {
        let garbage = |why: &str| MemberError::Garbage(why.to_owned());
        let parsed = bareboat_wire::json::parse(bytes);
        let mut list = parsed.map_err(|_| garbage("a list is not JSON"))?.value;
        let meta = |list: &Value, key: &str| {
            let text = list.at(&["metadata", key]).and_then(Value::as_str);
            text.unwrap_or("").to_owned()
        };
        let version = meta(&list, "resourceVersion");
        if version.is_empty() || version.len() > 64 {
            return Err(garbage("a list has no resourceVersion"));
        }
        let next = meta(&list, "continue");
        let items = match list.at_mut(&["items"]).map(Value::take) {
            Some(Value::Array(items)) => items,
            Some(Value::Null) | None => Vec::new(),
            Some(_) => return Err(garbage("the items of a list are no list")),
        };
        let mut page = Page {
            changes: Vec::with_capacity(items.len()),
            skipped: 0,
            version,
            next,
        };
        for item in items {
            match self.change(item) {
                // What is not kept is removed at the end of the list.
                Some(Change::Delete { .. }) => {}
                Some(change) => page.changes.push(change),
                None => page.skipped += 1,
            }
        }
        Ok(page)
    }

    /// Returns what an object means for the shelf; `None` if it is malformed.
    fn change(&self, mut object: Value) -> Option<Change> {
        let map = object.as_object_mut()?;
        // Items of lists do not name their type, and a member cannot choose another one.
        map.insert("apiVersion", Value::string(&self.api_version));
        map.insert("kind", Value::string(&self.kind));
        if !self.keeps(&object) {
            return deletion(&object, None);
        }
        self.redaction.apply(&mut object);
        self.options.trim(&mut object);
        let draft = Draft::new(&self.member, object).ok()?;
        Some(Change::Put(Box::new(draft)))
    }

    fn keeps(&self, object: &Value) -> bool {
        if let Some(allowed) = &self.namespaces {
            let namespace = object
                .at(&["metadata", "namespace"])
                .and_then(Value::as_str);
            if namespace.is_some_and(|namespace| !allowed.iter().any(|name| name == namespace)) {
                return false;
            }
        }
        self.options.keeps(object)
    }
}

/// Returns the version of an object, if it is a sensible one.
fn version_of(object: &Value) -> Option<&str> {
    let version = object.at(&["metadata", "resourceVersion"])?.as_str()?;
    is_text(version, 64).then_some(version)
}

fn deletion(object: &Value, version: Option<String>) -> Option<Change> {
    let text = |key: &str| object.at(&["metadata", key]).and_then(Value::as_str);
    // No object with another name is on the shelf.
    let name = text("name").filter(|name| is_text(name, 253))?;
    let namespace = text("namespace").unwrap_or("");
    (namespace.is_empty() || is_text(namespace, 63)).then(|| Change::Delete {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        version,
    })
}

/// Returns whether a text can be in a column. Databases refuse some control characters, and with them everything in the same
/// transaction.
fn is_text(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.len() <= longest && !text.chars().any(char::is_control)
}

/// Reads the Status of an error in a watch.
fn failed(status: &Value) -> Ended {
    let code = status.get("code").and_then(Value::as_i64).unwrap_or(500);
    let code = u16::try_from(code).unwrap_or(500);
    let reason = status.get("reason").and_then(Value::as_str);
    if code == 410 || matches!(reason, Some("Expired" | "Gone")) {
        return Ended::Expired;
    }
    let message = status
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or("the watch failed");
    Ended::Failed(MemberError::Refused {
        code,
        message: message
            .chars()
            .filter(|c| !c.is_control())
            .take(512)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{deletion, version_of};
    use bareboat_api::value;

    #[test]
    fn texts_that_databases_refuse_are_not_taken() {
        let of = |namespace: &str, name: &str, version: &str| value!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": version}});
        let good = of("default", "one", "5");
        assert_eq!(version_of(&good), Some("5"));
        assert!(deletion(&good, None).is_some());
        let long = "x".repeat(254);
        for (namespace, name, version) in [
            ("default", "o\u{0}ne", "5\u{0}"),
            ("de\u{7}fault", "one", "5\n"),
            (&*long, "one", ""),
            ("default", &*long, &*long),
            ("default", "", "\u{7f}"),
        ] {
            let bad = of(namespace, name, version);
            assert_eq!(version_of(&bad), None, "{version:?}");
            assert!(deletion(&bad, None).is_none(), "{namespace:?} {name:?}");
        }
    }
}
