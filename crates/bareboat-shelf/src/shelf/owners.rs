//! Owner search: from an owner down to its descendants, by the uids of controllers.

use super::{Shelf, ShelfError};
use crate::engine::Session;
use crate::param::{Param, text};
use crate::plan::among_numbers;
use crate::row::{KindId, MemberId};

/// The most objects of one generation.
const MOST: usize = 10_000;
/// The most generations.
const DEEPEST: usize = 8;

/// The owner that is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// By uid.
    Uid(String),
    /// By name, perhaps of one kind.
    Name {
        /// The name.
        name: String,
        /// The kind; any if there is none.
        kind: Option<KindId>,
    },
}

/// A search for the owners of objects.
#[derive(Clone, Debug)]
pub struct OwnerSearch {
    /// The first owner.
    pub owner: Owner,
    /// How many generations are between it and the objects: 0 for its own children.
    pub seniority: usize,
    /// The members to search.
    pub members: Vec<MemberId>,
    /// The namespaces of the owner; empty for all. Owners without a namespace always count.
    pub namespaces: Vec<String>,
}

impl Shelf {
    /// Returns the uids of those whose children are searched for.
    pub fn owners(&self, search: &OwnerSearch) -> Result<Vec<String>, ShelfError> {
        if search.seniority > DEEPEST {
            return Err(ShelfError::Query(format!(
                "ownerSeniority is at most {DEEPEST}"
            )));
        }
        self.reading(|session| {
            let mut uids = match &search.owner {
                Owner::Uid(uid) => vec![uid.clone()],
                Owner::Name { name, kind } => named(session, search, name, *kind)?,
            };
            for _ in 0..search.seniority {
                let mut next = Vec::new();
                for part in uids.chunks(500) {
                    let sql = format!(
                        "SELECT uid FROM object WHERE gone IS NULL AND owner <> '' AND {} AND owner IN ({}) LIMIT {}",
                        members(search),
                        vec!["?"; part.len()].join(", "),
                        MOST + 1,
                    );
                    let texts: Vec<Param> = part.iter().map(|uid| uid.as_str().into()).collect();
                    next.extend(texts_of(session, &sql, &texts)?);
                    if next.len() > MOST {
                        return Err(too_many());
                    }
                }
                uids = next;
            }
            Ok(uids)
        })
    }
}

fn named(
    session: &dyn Session,
    search: &OwnerSearch,
    name: &str,
    kind: Option<KindId>,
) -> Result<Vec<String>, ShelfError> {
    let mut values = Vec::new();
    // With all kinds the index on kind, namespace and name is used once per kind.
    let kinds = match kind {
        Some(kind) => format!("kind = {}", kind.0),
        None => "kind IN (SELECT id FROM kind)".to_owned(),
    };
    let mut sql = format!(
        "SELECT uid FROM object WHERE gone IS NULL AND {kinds} AND name = ? AND {}",
        members(search)
    );
    values.push(name.into());
    if !search.namespaces.is_empty() {
        let marks = vec!["?"; search.namespaces.len()].join(", ");
        sql.push_str(&format!(" AND ns IN ('', {marks})"));
        values.extend(
            search
                .namespaces
                .iter()
                .map(|text| Param::from(text.as_str())),
        );
    }
    sql.push_str(&format!(" LIMIT {}", MOST + 1));
    let uids = texts_of(session, &sql, &values)?;
    match uids.len() > MOST {
        true => Err(too_many()),
        false => Ok(uids),
    }
}

fn too_many() -> ShelfError {
    ShelfError::Query(format!(
        "more than {MOST} owners match; name clusters or namespaces"
    ))
}

fn members(search: &OwnerSearch) -> String {
    among_numbers("member", search.members.iter().map(|member| member.0))
}

fn texts_of(session: &dyn Session, sql: &str, values: &[Param]) -> Result<Vec<String>, ShelfError> {
    let mut texts = Vec::new();
    session.rows(sql, values, &mut |row| {
        texts.push(text(row, 0)?);
        Ok(true)
    })?;
    Ok(texts)
}
