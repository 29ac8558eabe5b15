//! The narrow row of an object, and the names of members and kinds that rows refer to by number.

use crate::param::{Cells, number, text};
use crate::shelf::ShelfError;
use std::collections::HashMap;

/// The number of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub i64);

/// The number of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub i64);

/// What is known about an object without its body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrow {
    /// The number of the row.
    pub id: i64,
    /// The member that has the object.
    pub member: i64,
    /// The kind of the object.
    pub kind: i64,
    /// The API version of the body, without the group.
    pub version: String,
    /// The namespace, empty for cluster scope.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid in the member.
    pub uid: String,
    /// The uid of the controller that owns the object, or empty.
    pub owner: String,
    /// Seconds since 1970 of the creation.
    pub created: i64,
    /// Seconds since 1970 of the deletionTimestamp.
    pub deleting: Option<i64>,
    /// Milliseconds since 1970 when the row was written.
    pub synced: i64,
    /// The resourceVersion in the member.
    pub member_version: String,
    /// The `rev` at which the object was first seen.
    pub born: i64,
    /// The `rev` of the last change.
    pub rev: i64,
    /// Whether the object was deleted.
    pub gone: bool,
    /// The labels, as a JSON object.
    pub labels: String,
    /// The declared fields that are present, as a JSON object of texts.
    pub fields: String,
}

impl Narrow {
    /// The number of the columns of a row.
    pub const COLUMNS: usize = 17;

    /// Reads a row with the columns of [`crate::Dialect::columns`].
    pub fn read(row: &dyn Cells) -> Result<Narrow, ShelfError> {
        Ok(Narrow {
            id: number(row, 0)?,
            member: number(row, 1)?,
            kind: number(row, 2)?,
            version: text(row, 3)?,
            namespace: text(row, 4)?,
            name: text(row, 5)?,
            uid: text(row, 6)?,
            owner: text(row, 7)?,
            created: number(row, 8)?,
            deleting: row.int(9)?,
            synced: number(row, 10)?,
            member_version: text(row, 11)?,
            born: number(row, 12)?,
            rev: number(row, 13)?,
            gone: row.int(14)?.is_some(),
            labels: text(row, 15)?,
            fields: text(row, 16)?,
        })
    }

    /// The columns of [`Narrow::read_place`]. The index `object_key` has all of them, so the table itself need not be read.
    pub(crate) const PLACE: &str = "o.id, o.kind, o.ns, o.name, o.member";

    /// Reads the number and the place of a row; all else is empty.
    pub(crate) fn read_place(row: &dyn Cells) -> Result<Narrow, ShelfError> {
        Ok(Narrow {
            id: number(row, 0)?,
            kind: number(row, 1)?,
            namespace: text(row, 2)?,
            name: text(row, 3)?,
            member: number(row, 4)?,
            ..Narrow::default()
        })
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<String> {
        member_of(&self.labels, key)
    }

    /// Returns the text of a declared field.
    pub(crate) fn field(&self, path: &str) -> Option<String> {
        member_of(&self.fields, path)
    }
}

/// Returns a text in a flat JSON object.
fn member_of(object: &str, key: &str) -> Option<String> {
    let mut found = None;
    let step = [crate::path::Step::Key(key.to_owned())];
    crate::scan::leaves(object.as_bytes(), &step, &mut |leaf| {
        found = leaf.text().map(str::to_owned);
        false
    });
    found
}

/// A row for a predicate to judge.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    /// The narrow row.
    pub narrow: &'r Narrow,
    /// The body without resourceVersion, if it was read.
    pub body: Option<&'r [u8]>,
    /// The names of members and kinds.
    pub directory: &'r Directory,
}

/// A kind on the shelf. Its versions are those of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KindInfo {
    /// The API group, empty for core.
    pub group: String,
    /// The plural in URLs.
    pub resource: String,
    /// The kind of objects.
    pub kind: String,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
}

/// The names of members and kinds. It is replaced when one is added.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    pub(crate) members: HashMap<i64, String>,
    pub(crate) member_ids: HashMap<String, i64>,
    pub(crate) kinds: HashMap<i64, KindInfo>,
    pub(crate) kind_ids: HashMap<(String, String), i64>,
    /// The declared fields of kinds.
    pub(crate) declared: HashMap<i64, Vec<crate::path::Path>>,
}

impl Directory {
    /// Returns the number of a member.
    pub fn member(&self, name: &str) -> Option<MemberId> {
        self.member_ids.get(name).copied().map(MemberId)
    }

    /// Returns the name of a member.
    pub fn member_name(&self, id: i64) -> &str {
        self.members.get(&id).map_or("", String::as_str)
    }

    /// Returns the members, by name.
    pub fn members(&self) -> impl Iterator<Item = (&str, MemberId)> {
        let members = self.member_ids.iter();
        members.map(|(name, id)| (name.as_str(), MemberId(*id)))
    }

    /// Returns the number of a kind.
    pub fn kind(&self, group: &str, resource: &str) -> Option<KindId> {
        let key = (group.to_owned(), resource.to_owned());
        self.kind_ids.get(&key).copied().map(KindId)
    }

    /// Returns what is known about a kind.
    pub fn kind_info(&self, id: i64) -> Option<&KindInfo> {
        self.kinds.get(&id)
    }

    /// Returns the kinds.
    pub fn kinds(&self) -> impl Iterator<Item = (KindId, &KindInfo)> {
        self.kinds.iter().map(|(id, info)| (KindId(*id), info))
    }

    /// Returns the declared fields of a kind.
    pub fn declared(&self, kind: KindId) -> &[crate::path::Path] {
        let declared = self.declared.get(&kind.0);
        declared.map_or(&[][..], Vec::as_slice)
    }

    /// Returns whether a field is declared for a kind.
    pub fn declares(&self, kind: KindId, path: &crate::path::Path) -> bool {
        let declared = self.declared.get(&kind.0);
        declared.is_some_and(|paths| paths.contains(path))
    }
}
