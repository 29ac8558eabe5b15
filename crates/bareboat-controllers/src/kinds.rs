//! The kind of a stored resource, the URL of an object, and cheap checks of an object's metadata.

use bareboat_api::kind::{Kind, Origin, Version};
use bareboat_api::{Object, Status};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::{Backing, Table};
use bareboat_storage::Entry;
use memchr::memmem::Finder;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// The store resource of namespaces.
pub(crate) const NAMESPACES: &str = "core/namespaces";
/// The store resource of CustomResourceDefinitions.
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

fn stored(backing: &Backing) -> Option<&Arc<Kind>> {
    match backing {
        Backing::Stored(served) => Some(&served.kind),
        Backing::Computed(_) => None,
    }
}

/// The URL of an object in the first version that is served, if there is one.
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

/// The URL of a stored object for [`Client::keeping`]. That of a custom object names the version it is stored in, even if
/// that version is not served: a controller must not depend on a converter.
///
/// [`Client::keeping`]: crate::Client::keeping
pub(crate) fn entry_path(kind: &Kind, entry: &Entry) -> Option<String> {
    let (namespace, name) = (entry.namespace(), entry.name());
    let own = stored_version(entry)?;
    let served = |version: &Version| version.served && version.name == own;
    match kind.origin == Origin::Custom || kind.versions.iter().any(served) {
        true => Some(path_in(kind, own, namespace, name)),
        false => path(kind, namespace, name),
    }
}

/// The version an object is stored in. Stored bytes begin with it.
fn stored_version(entry: &Entry) -> Option<&str> {
    let rest = entry.json().strip_prefix(br#"{"apiVersion":""#)?;
    let end = memchr::memchr(b'"', rest)?;
    let api_version = std::str::from_utf8(&rest[..end]).ok()?;
    Some(api_version.rsplit('/').next().unwrap_or(api_version))
}

/// The object of an entry, in the version it is stored in.
pub(crate) fn read(entry: &Entry) -> Result<Object, Status> {
    let parsed = bareboat_wire::json::parse(entry.json()).map_err(Status::internal)?;
    Object::try_from(parsed.value)
        .map_err(|_| Status::internal("a stored value is not a JSON object"))
}

/// Adds a segment to a path, escaped: names of some kinds may contain nearly any character.
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

/// Whether an object may have owners, without parsing its metadata. `false` is certain; `true` may be wrong.
///
/// Quotes inside strings are escaped, so this finds only a member of that name, perhaps in another part of the object.
pub(crate) fn may_have_owners(entry: &Entry) -> bool {
    OWNERS.find(entry.json()).is_some()
}

/// Whether an object is being deleted. Metadata is parsed only if it may be.
pub(crate) fn is_deleting(entry: &Entry) -> bool {
    DELETION.find(entry.json()).is_some() && entry.facets().deletion_timestamp.is_some()
}

/// Whether a namespace exists and is not being deleted.
pub(crate) fn is_active(server: &Server, namespace: &str) -> bool {
    let live = server.store().resource(NAMESPACES).get(namespace);
    live.is_some_and(|entry| !is_deleting(&entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::kind::{Names, Scope};

    #[test]
    fn the_stored_version_is_read_from_the_first_bytes() {
        let bytes =
            br#"{"apiVersion":"g.io/v1","kind":"T","metadata":{"name":"x","namespace":"ns"}}"#;
        let entry = Entry::new("ns/x".into(), 1, bytes, 0).expect("an object");
        assert_eq!(stored_version(&entry), Some("v1"));
        // The kind serves no version. A custom object has a URL all the same.
        let mut kind = Kind::new("g.io", Names::new("things", "Thing"), Scope::Namespaced);
        assert_eq!(entry_path(&kind, &entry), None);
        kind = kind.into_custom();
        assert_eq!(
            entry_path(&kind, &entry).as_deref(),
            Some("/apis/g.io/v1/namespaces/ns/things/x")
        );
    }

    #[test]
    fn names_are_escaped_in_urls() {
        let kind = Kind::new("g.io", Names::new("things", "Thing"), Scope::Namespaced);
        assert_eq!(path(&kind, Some("ns"), "x"), None, "no version is served");
        let mut out = String::new();
        push_segment(&mut out, "system:a b/ü%");
        assert_eq!(out, "system:a%20b%2F%C3%BC%25");
    }
}
