//! What the catalog and an object's bytes tell controllers: the kind of a stored resource, the URL of an object, and a
//! cheap look at its metadata.

use bareboat_api::kind::{Kind, Version};
use bareboat_api::{Object, Status};
use bareboat_server::kinds::catalog::{Serving, Table};
use bareboat_storage::Entry;
use memchr::memmem::Finder;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// Where namespaces are stored.
pub(crate) const NAMESPACES: &str = "core/namespaces";
/// Where definitions of custom kinds are stored.
pub(crate) const DEFINITIONS: &str = bareboat_server::kinds::custom::STORE;

/// The kind whose objects are stored under a name.
pub(crate) fn of_store<'a>(table: &'a Table, store: &str) -> Option<&'a Arc<Kind>> {
    let (group, plural) = store.split_once('/')?;
    let group = if group == "core" { "" } else { group };
    let usual = table.find(group, plural);
    if let Some(kind) = usual.and_then(stored).filter(|kind| kind.store == store) {
        return Some(kind);
    }
    table
        .iter()
        .filter_map(stored)
        .find(|kind| kind.store == store)
}

fn stored(serving: &Serving) -> Option<&Arc<Kind>> {
    match serving {
        Serving::Stored(served) => Some(&served.kind),
        Serving::Computed(_) => None,
    }
}

/// The URL of an object, in the first version that is served; nothing when none is.
pub(crate) fn path(kind: &Kind, namespace: Option<&str>, name: &str) -> Option<String> {
    let version = kind.versions.iter().find(|version| version.served)?;
    Some(path_in(kind, &version.name, namespace, name))
}

fn path_in(kind: &Kind, version: &str, namespace: Option<&str>, name: &str) -> String {
    join(&collection(kind, version, namespace), name)
}

/// The URL of an object in a collection.
pub(crate) fn join(collection: &str, name: &str) -> String {
    let mut path = format!("{collection}/");
    push_segment(&mut path, name);
    path
}

fn collection(kind: &Kind, version: &str, namespace: Option<&str>) -> String {
    let mut path = if kind.group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{}/{version}", kind.group)
    };
    if let Some(namespace) = namespace {
        path.push_str("/namespaces/");
        push_segment(&mut path, namespace);
    }
    path.push('/');
    path.push_str(&kind.names.plural);
    path
}

/// The URL under which a stored object is kept in order. That of a custom object names the version it is stored in,
/// served or not, for [`Client::keeping`]: a controller must not depend on a converter.
///
/// [`Client::keeping`]: crate::Client::keeping
pub(crate) fn entry_path(kind: &Kind, entry: &Entry) -> Option<String> {
    let (namespace, name) = (entry.namespace(), entry.name());
    let own = stored_version(entry)?;
    let served = |version: &Version| version.served && version.name == own;
    match kind.custom || kind.versions.iter().any(served) {
        true => Some(path_in(kind, own, namespace, name)),
        false => path(kind, namespace, name),
    }
}

/// The version an object is stored in, which is what its bytes begin with.
fn stored_version(entry: &Entry) -> Option<&str> {
    let rest = entry.json().strip_prefix(br#"{"apiVersion":""#)?;
    let end = memchr::memchr(b'"', rest)?;
    let api_version = std::str::from_utf8(&rest[..end]).ok()?;
    Some(api_version.rsplit('/').next().unwrap_or(api_version))
}

/// The object an entry holds, in its stored version.
pub(crate) fn read(entry: &Entry) -> Result<Object, Status> {
    let parsed = bareboat_wire::json::parse(entry.json()).map_err(Status::internal)?;
    Object::try_from(parsed.value)
        .map_err(|_| Status::internal("a stored object is no JSON object"))
}

/// Names of some kinds may hold nearly anything.
pub(crate) fn push_segment(path: &mut String, segment: &str) {
    for byte in segment.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                path.push(char::from(byte));
            }
            _ => write!(path, "%{byte:02X}").expect("writing into a String succeeds"),
        }
    }
}

static OWNERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""ownerReferences":["#));
static DELETION: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(br#""deletionTimestamp":""#));

/// Whether an object may have owners: certain when false, without reading its metadata.
///
/// Quotes inside texts are escaped, so only a member of that name is found, if perhaps one elsewhere in the object.
pub(crate) fn may_have_owners(entry: &Entry) -> bool {
    OWNERS.find(entry.json()).is_some()
}

/// Whether an object is being deleted, reading its metadata only when it may be.
pub(crate) fn is_deleting(entry: &Entry) -> bool {
    DELETION.find(entry.json()).is_some() && entry.facets().deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::kind::{Names, Scope};

    #[test]
    fn the_version_an_object_is_stored_in_is_seen_in_its_bytes() {
        let bytes =
            br#"{"apiVersion":"g.io/v1","kind":"T","metadata":{"name":"x","namespace":"ns"}}"#;
        let entry = Entry::new("ns/x".into(), 1, bytes, 0).expect("an object");
        assert_eq!(stored_version(&entry), Some("v1"));
        // The kind serves no version at all: a custom object is reached nevertheless.
        let mut kind = Kind::new("g.io", Names::new("things", "Thing"), Scope::Namespaced);
        assert_eq!(entry_path(&kind, &entry), None);
        kind.custom = true;
        assert_eq!(
            entry_path(&kind, &entry).as_deref(),
            Some("/apis/g.io/v1/namespaces/ns/things/x")
        );
    }

    #[test]
    fn urls_escape_what_a_path_cannot_hold() {
        let kind = Kind::new("g.io", Names::new("things", "Thing"), Scope::Namespaced);
        assert_eq!(path(&kind, Some("ns"), "x"), None, "no version is served");
        let mut out = String::new();
        push_segment(&mut out, "system:a b/ü%");
        assert_eq!(out, "system:a%20b%2F%C3%BC%25");
    }
}
