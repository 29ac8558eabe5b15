//! Digests of kinds: they change when the documents of a kind would change, and are computed without a document.

use super::Sources;
use bareboat_api::Kind;
use bareboat_api::kind::{OpenApiStyle, PublishedSchema, SubresourceRole, Verbs, Version};
use ring::digest::{Context, SHA512};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

/// A kind and the digests of its versions, computed on first use.
pub(super) struct Entry {
    pub(super) kind: Arc<Kind>,
    digests: Box<[OnceLock<[u8; 32]>]>,
}

impl Entry {
    /// A kind without digests yet.
    pub(super) fn new(kind: Arc<Kind>) -> Entry {
        let digests = kind.versions.iter().map(|_| OnceLock::new()).collect();
        Entry { kind, digests }
    }

    fn digest(&self, index: usize) -> &[u8; 32] {
        self.digests[index].get_or_init(|| digest(&self.kind, &self.kind.versions[index]))
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind.fmt(f)
    }
}

/// Starts the hash of a document.
pub(super) fn start(sources: &Sources, path: &str) -> Context {
    let mut hash = Context::new(&SHA512);
    // Another release may render the same kind differently.
    for text in [
        env!("CARGO_PKG_VERSION"),
        &sources.title,
        &sources.version,
        path,
    ] {
        hash.update(text.as_bytes());
        hash.update(&[0]);
    }
    hash
}

/// Adds kinds to the hash of a document.
pub(super) fn add_kinds(hash: &mut Context, kinds: &[(Arc<Entry>, usize)]) {
    for (entry, index) in kinds {
        hash.update(entry.digest(*index));
    }
}

/// Returns the hash as upper-case hexadecimal.
pub(super) fn finish(hash: Context) -> String {
    let bytes = hash.finish();
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn digest(kind: &Kind, version: &Version) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update(text.as_bytes());
        hash.update([0]);
    };
    for text in [
        &kind.group,
        &version.name,
        &kind.names.plural,
        &kind.names.kind,
        &kind.names.list_kind,
        &version.shape.definition_name(),
    ] {
        add(text);
    }
    for flag in [
        kind.namespaced(),
        kind.conventions.openapi == OpenApiStyle::Declared,
        kind.policy.delete_returns_object,
    ] {
        add(if flag { "1" } else { "0" });
    }
    add(&verbs(kind.verbs));
    for sub in &version.subresources {
        add(&sub.name);
        add(match sub.role {
            SubresourceRole::Connect { paths: true } => "connect/paths",
            SubresourceRole::Connect { paths: false } => "connect",
            _ => "part",
        });
        add(&verbs(sub.verbs));
        if let Some((group, version, kind)) = &sub.response {
            [group, version, kind]
                .into_iter()
                .for_each(|text| add(text));
        }
    }
    for field in &version.selectable {
        add(&field.name);
    }
    match version.shape.published_schema() {
        PublishedSchema::Message(message) => add(&message.name),
        PublishedSchema::Structural(schema) => hash.update(schema.to_json()),
        PublishedSchema::Untyped => add("untyped"),
    }
    hash.finalize().into()
}

fn verbs(verbs: Verbs) -> String {
    verbs.iter().map(|verb| verb.name()).collect()
}
