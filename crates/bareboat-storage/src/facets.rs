//! The parsed metadata of an object, for indexes, selectors and collectors.
//!
//! Only the metadata object is parsed, and only at its first use. Annotations and managed fields
//! are skipped.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// The parsed metadata of an object, without annotations and managed fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// `metadata.uid`, empty if absent.
    pub uid: Box<str>,
    /// `metadata.generateName`.
    pub generate_name: Option<Box<str>>,
    /// `metadata.creationTimestamp` in its wire form.
    pub creation_timestamp: Option<Box<str>>,
    /// `metadata.deletionTimestamp` in its wire form; present while the object is being deleted.
    pub deletion_timestamp: Option<Box<str>>,
    /// `metadata.deletionGracePeriodSeconds`.
    pub deletion_grace_period_seconds: Option<i64>,
    /// `metadata.generation`, 0 if absent.
    pub generation: i64,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.finalizers` in order.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.ownerReferences` in order.
    pub owners: Box<[Owner]>,
}

/// One owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The owner's `apiVersion`.
    pub api_version: Box<str>,
    /// The owner's `kind`.
    pub kind: Box<str>,
    /// The owner's `name`.
    pub name: Box<str>,
    /// The owner's `uid`.
    pub uid: Box<str>,
    /// Whether this owner is the managing controller.
    pub controller: bool,
    /// Whether the owner's foreground deletion waits for this object.
    pub block_owner_deletion: bool,
}

impl Facets {
    /// Parses the metadata object at the start of `bytes`; ignores everything after it.
    ///
    /// The bytes are our own canonical output. If they do not parse, the fields parsed so far are
    /// used.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut input = serde_json::Deserializer::from_slice(bytes);
        match Meta::deserialize(&mut input) {
            Ok(meta) => meta.into(),
            Err(error) => {
                tracing::warn!(%error, "metadata of a stored object does not parse");
                Self::default()
            }
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .binary_search_by(|(k, _)| (**k).cmp(key))
            .ok()
            .map(|at| &*self.labels[at].1)
    }

    /// Returns whether the finalizer `name` is set.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|f| **f == *name)
    }

    /// Returns the owner that manages this object, if any.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    generate_name: Option<Text<'a>>,
    #[serde(borrow)]
    creation_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    deletion_timestamp: Option<Text<'a>>,
    deletion_grace_period_seconds: Option<i64>,
    generation: Option<i64>,
    labels: Pairs,
    #[serde(borrow)]
    finalizers: Option<Vec<Text<'a>>>,
    owner_references: Option<Owners>,
}

#[derive(Deserialize, Default)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Reference<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    uid: Text<'a>,
    controller: Option<bool>,
    block_owner_deletion: Option<bool>,
}

impl From<Text<'_>> for Box<str> {
    fn from(text: Text<'_>) -> Self {
        text.0.into()
    }
}

impl From<Meta<'_>> for Facets {
    fn from(meta: Meta<'_>) -> Self {
        let mut labels = meta.labels.0;
        labels.sort_unstable();
        let finalizers = meta.finalizers.unwrap_or_default();
        Self {
            uid: meta.uid.into(),
            generate_name: meta.generate_name.map(Into::into),
            creation_timestamp: meta.creation_timestamp.map(Into::into),
            deletion_timestamp: meta.deletion_timestamp.map(Into::into),
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
            generation: meta.generation.unwrap_or_default(),
            labels: labels.into(),
            finalizers: finalizers.into_iter().map(Into::into).collect(),
            owners: meta.owner_references.unwrap_or_default().0.into(),
        }
    }
}

/// A map of strings. Null values count as empty.
#[derive(Default)]
struct Pairs(Vec<(Box<str>, Box<str>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_unit<E>(self) -> Result<Pairs, E> {
                Ok(Pairs::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'de>, Option<Text<'de>>>()? {
                    pairs.push((key.into(), value.unwrap_or_default().into()));
                }
                Ok(Pairs(pairs))
            }
        }
        input.deserialize_any(Collect)
    }
}

#[derive(Default)]
struct Owners(Vec<Owner>);

impl<'de> Deserialize<'de> for Owners {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Owners;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of owner references")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Owners, A::Error> {
                let mut owners = Vec::new();
                while let Some(reference) = seq.next_element::<Reference<'de>>()? {
                    owners.push(Owner {
                        api_version: reference.api_version.into(),
                        kind: reference.kind.into(),
                        name: reference.name.into(),
                        uid: reference.uid.into(),
                        controller: reference.controller.unwrap_or_default(),
                        block_owner_deletion: reference.block_owner_deletion.unwrap_or_default(),
                    });
                }
                Ok(Owners(owners))
            }
        }
        input.deserialize_seq(Collect)
    }
}

#[cfg(test)]
mod tests;
