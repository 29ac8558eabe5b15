//! Reads one page of a list: object by object, so that a page of millions of tiny objects takes no memory.

use bareboat_api::Str;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// How many finalizers, and how many owners, one object may have.
const MOST_MEMBERS: usize = 4096;

/// What is read of the metadata of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: Str,
    pub(crate) namespace: Str,
    pub(crate) uid: Str,
    pub(crate) resource_version: Str,
    pub(crate) deletion_timestamp: Option<Str>,
    pub(crate) finalizers: Members<Str>,
    pub(crate) owner_references: Members<OwnerReference>,
}

/// A reference to an owner.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    pub(crate) api_version: Str,
    pub(crate) kind: Str,
    pub(crate) name: Str,
    pub(crate) uid: Str,
    pub(crate) controller: Option<bool>,
    pub(crate) block_owner_deletion: Option<bool>,
}

impl Metadata {
    /// About how much memory it takes.
    pub(super) fn size(&self) -> usize {
        let texts = [
            &self.name,
            &self.namespace,
            &self.uid,
            &self.resource_version,
        ];
        let texts = texts.into_iter().chain(&self.finalizers.0);
        let owners = self
            .owner_references
            .0
            .iter()
            .flat_map(|owner| [&owner.api_version, &owner.kind, &owner.name, &owner.uid]);
        let each = size_of::<OwnerReference>();
        let texts: usize = texts.chain(owners).map(|text| text.len()).sum();
        texts + each * (1 + self.owner_references.0.len())
    }
}

/// A list in the metadata. Its length has a limit, and `null` is an empty list.
#[derive(Debug)]
pub(crate) struct Members<T>(pub(crate) Vec<T>);

impl<T> Default for Members<T> {
    fn default() -> Members<T> {
        Members(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<T>, D::Error> {
        deserializer.deserialize_any(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
    type Value = Members<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<Members<T>, E> {
        Ok(Members::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Members<T>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = list.next_element()? {
            if members.len() == MOST_MEMBERS {
                return Err(A::Error::custom(
                    "an object has too many owners or finalizers",
                ));
            }
            members.push(member);
        }
        Ok(Members(members))
    }
}

/// Takes the objects of a page.
pub(super) trait Page {
    /// Takes one object, or says why no more are read.
    fn object(&mut self, metadata: Metadata) -> Result<(), &'static str>;
}

/// Reads a page, and returns the `continue` of the list.
pub(super) fn read(bytes: &[u8], page: &mut impl Page) -> Result<Option<Str>, serde_json::Error> {
    let mut input = serde_json::Deserializer::from_slice(bytes);
    let next = List(page).deserialize(&mut input)?;
    input.end()?;
    Ok(next)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMetadata {
    r#continue: Option<Str>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

struct List<'a, P>(&'a mut P);

impl<'de, P: Page> DeserializeSeed<'de> for List<'_, P> {
    type Value = Option<Str>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Option<Str>, D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de, P: Page> Visitor<'de> for List<'_, P> {
    type Value = Option<Str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Str>, A::Error> {
        let (mut next, mut has_items) = (None, false);
        while let Some(key) = map.next_key::<Str>()? {
            match key.as_str() {
                "metadata" => {
                    next = map
                        .next_value::<Option<ListMetadata>>()?
                        .and_then(|it| it.r#continue);
                }
                "items" => {
                    map.next_value_seed(Items(self.0))?;
                    has_items = true;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        // An answer that is no list does not say that there are no objects.
        match has_items {
            true => Ok(next),
            false => Err(A::Error::missing_field("items")),
        }
    }
}

struct Items<'a, P>(&'a mut P);

impl<'de, P: Page> DeserializeSeed<'de> for Items<'_, P> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, P: Page> Visitor<'de> for Items<'_, P> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    /// Go encodes an empty list as `null`.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Item>()? {
            self.0.object(item.metadata).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
