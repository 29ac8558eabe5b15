//! What the shelf needs of a database: transactions that read, small transactions that write, and batches of changes.

use crate::dialect::Dialect;
use crate::draft::Draft;
use crate::param::{Cells, Param};
use crate::ring::Event;
use crate::row::{Directory, KindId, MemberId};
use crate::shelf::ShelfError;
use std::collections::HashMap;

/// A change of an object in a member.
#[derive(Clone, Debug)]
pub enum Change {
    /// The object as it is now.
    Put(Box<Draft>),
    /// The object is gone.
    Delete {
        /// The namespace, or empty.
        namespace: String,
        /// The name.
        name: String,
        /// The member's resourceVersion of the deletion, if it is known.
        version: Option<String>,
    },
}

/// How far a kind of a member is synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The API version that is synced.
    pub version: String,
    /// The member's resourceVersion to resume from; empty if there is none.
    pub resource_version: String,
}

/// Changes of one kind of one member, in order.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The member.
    pub member: MemberId,
    /// The kind.
    pub kind: KindId,
    /// The changes.
    pub changes: Vec<Change>,
    /// The API version, and the member's resourceVersion that the changes lead to; `None` leaves both as they are.
    pub progress: Option<Progress>,
}

/// What a write did.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The rows of all objects that were put, changed or not.
    pub rows: Vec<i64>,
    /// How many rows changed.
    pub changed: usize,
}

/// Where the counter of changes is, as one transaction sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The version of the last change.
    pub last: i64,
    /// Deletions up to this version are forgotten.
    pub floor: i64,
    /// It changes with the names of members and kinds.
    pub names: i64,
}

/// The right of a server to write the rows of some members: a number of each lease, by member.
#[derive(Clone, Debug, Default)]
pub struct Fence {
    /// The server.
    pub hub: String,
    /// The terms of its leases.
    pub terms: HashMap<i64, i64>,
}

/// What a write must know.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    /// The names of members and kinds.
    pub directory: &'c Directory,
    /// The version of those names.
    pub names: i64,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Whether a watch needs the changes.
    pub watched: bool,
    /// The most rows of one member.
    pub most_rows: u64,
    /// The most bytes of objects of one member.
    pub most_bytes: u64,
    /// The leases of this server; `None` if it is alone.
    pub fence: Option<&'c Fence>,
}

/// What a write did.
#[derive(Debug, Default)]
pub struct Written {
    /// What each batch did.
    pub applied: Vec<Applied>,
    /// The changes, if they were wanted.
    pub events: Option<Vec<Event>>,
    /// The version before the write.
    pub first: i64,
    /// The version of its last change; the same as `first` if nothing changed.
    pub last: i64,
}

/// A function that sees the number of a row, its body, and where its resourceVersion belongs.
pub type VisitBody<'v> = &'v mut dyn FnMut(i64, &[u8], usize) -> Result<(), ShelfError>;

/// A transaction. Parameters are marked by `?`.
///
/// ```
/// use bareboat_shelf::{Session, ShelfError};
///
/// /// Returns the names of all members.
/// fn members(session: &dyn Session) -> Result<Vec<String>, ShelfError> {
///     let mut names = Vec::new();
///     let sql = "SELECT name FROM member WHERE id > ? ORDER BY name";
///     session.rows(sql, &[0i64.into()], &mut |row| {
///         names.extend(row.text(0)?.map(str::to_owned));
///         Ok(names.len() < 1000)
///     })?;
///     Ok(names)
/// }
/// ```
pub trait Session {
    /// Calls a function with every row of an answer while it returns true. It may read more through the same transaction.
    fn rows(
        &self,
        sql: &str,
        values: &[Param],
        visit: &mut dyn FnMut(&dyn Cells) -> Result<bool, ShelfError>,
    ) -> Result<(), ShelfError>;

    /// Calls a function for each row that has a body, in any order.
    fn bodies(&self, rows: &[i64], visit: VisitBody<'_>) -> Result<(), ShelfError>;

    /// Runs a statement, and returns how many rows it changed.
    fn run(&self, sql: &str, values: &[Param]) -> Result<usize, ShelfError>;

    /// Returns where the counter is.
    fn standing(&self) -> Result<Standing, ShelfError>;

    /// Notes that names of members or kinds have changed.
    fn renamed(&self) -> Result<(), ShelfError>;
}

/// A function that reads.
pub type Reading<'r> = &'r mut dyn FnMut(&dyn Session) -> Result<(), ShelfError>;

/// A lease of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The number of the member.
    pub member: i64,
    /// The name of the member.
    pub name: String,
    /// The server that syncs it; empty if there is none.
    pub holder: String,
    /// The number of the lease; it grows with every holder.
    pub term: i64,
    /// What the holder says about the member.
    pub note: String,
}

/// An index that is wanted: a generated column over the labels or fields of narrow rows.
#[derive(Clone, Debug)]
pub struct NewIndex<'i> {
    /// What the key is of: `label` or `field`.
    pub sort: &'static str,
    /// The label, or the path of the field.
    pub key: &'i str,
    /// The expression of the column.
    pub expression: String,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// A database.
///
/// An engine that is always empty:
///
/// ```
/// use bareboat_shelf::{
///     Batch, Cells, Context, Dialect, Engine, Param, Reading, Session, Settings, Shelf, ShelfError, Standing, VisitBody, Written,
/// };
///
/// struct Empty;
///
/// impl Session for Empty {
///     fn rows(
///         &self,
///         _sql: &str,
///         _values: &[Param],
///         _visit: &mut dyn FnMut(&dyn Cells) -> Result<bool, ShelfError>,
///     ) -> Result<(), ShelfError> {
///         Ok(())
///     }
///     fn bodies(&self, _rows: &[i64], _visit: VisitBody<'_>) -> Result<(), ShelfError> {
///         Ok(())
///     }
///     fn run(&self, _sql: &str, _values: &[Param]) -> Result<usize, ShelfError> {
///         Ok(0)
///     }
///     fn standing(&self) -> Result<Standing, ShelfError> {
///         Ok(Standing::default())
///     }
///     fn renamed(&self) -> Result<(), ShelfError> {
///         Ok(())
///     }
/// }
///
/// impl Engine for Empty {
///     fn dialect(&self) -> Dialect {
///         Dialect::Sqlite
///     }
///     fn read(&self, read: Reading<'_>) -> Result<(), ShelfError> {
///         read(self)
///     }
///     fn change(&self, change: Reading<'_>) -> Result<(), ShelfError> {
///         change(self)
///     }
///     fn apply(&self, _batches: &[Batch], _context: &Context<'_>) -> Result<Written, ShelfError> {
///         Ok(Written::default())
///     }
///     fn forget(&self, _before: i64, _most: usize) -> Result<usize, ShelfError> {
///         Ok(0)
///     }
///     fn jump(&self, _to: i64) -> Result<bool, ShelfError> {
///         Ok(false)
///     }
///     fn salt(&self) -> Result<Vec<u8>, ShelfError> {
///         Ok(vec![0; 16])
///     }
///     fn close(&self) -> Result<(), ShelfError> {
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), ShelfError> {
/// let shelf = Shelf::over(Box::new(Empty), Settings::default())?;
/// assert_eq!(shelf.directory().members().count(), 0);
/// assert_eq!(shelf.visible(), 0);
/// # Ok(()) }
/// ```
pub trait Engine: Send + Sync {
    /// Returns which database it is.
    fn dialect(&self) -> Dialect;

    /// Runs a function in a transaction that reads one state.
    fn read(&self, read: Reading<'_>) -> Result<(), ShelfError>;

    /// Runs a function in a transaction that writes. It may run again if other servers were in its way.
    fn change(&self, change: Reading<'_>) -> Result<(), ShelfError>;

    /// Writes batches in one transaction.
    fn apply(&self, batches: &[Batch], context: &Context<'_>) -> Result<Written, ShelfError>;

    /// Forgets at most so many deletions before a time, and raises the floor. Returns how many there were.
    fn forget(&self, before: i64, most: usize) -> Result<usize, ShelfError>;

    /// Returns whether this shelf gave a version, or may have given it.
    fn is_own(&self, rev: i64) -> bool {
        let _ = rev;
        true
    }

    /// Goes on counting at a number, if it is greater than all before. Returns whether it did.
    fn jump(&self, to: i64) -> Result<bool, ShelfError>;

    /// Returns a random text that is the same as long as the shelf exists.
    fn salt(&self) -> Result<Vec<u8>, ShelfError>;

    /// Marks the shelf as complete, so that the next start continues with the same versions.
    fn close(&self) -> Result<(), ShelfError>;

    /// Returns whether other servers may use the same shelf.
    fn is_shared(&self) -> bool {
        false
    }

    /// Renews the right of a server to hold leases, takes leases or gives some back so that all servers have about the same number,
    /// and returns all leases. `notes` are what the server says about its members. A shelf that is not shared has none.
    fn lease(&self, hub: &str, notes: &[(i64, String)]) -> Result<Vec<Lease>, ShelfError> {
        let _ = (hub, notes);
        Ok(Vec::new())
    }

    /// Returns where the counter is.
    fn standing(&self) -> Result<Standing, ShelfError> {
        let mut standing = Standing::default();
        self.read(&mut |session| {
            standing = session.standing()?;
            Ok(())
        })?;
        Ok(standing)
    }

    /// Makes an index and notes it in the list of indexes, unless there is one. It may be put off: then the list lacks it. Databases
    /// that have one index over all keys make none.
    fn add_index(&self, index: &NewIndex<'_>) -> Result<(), ShelfError> {
        let _ = index;
        Ok(())
    }

    /// Drops an index by its number in the list, from which it disappears at once.
    fn drop_index(&self, no: i64, now: i64) -> Result<(), ShelfError> {
        let _ = (no, now);
        Ok(())
    }

    /// Removes what is left of indexes that were dropped while other servers used them, or were begun and not completed.
    fn clear_indexes(&self, now: i64) -> Result<(), ShelfError> {
        let _ = now;
        Ok(())
    }

    /// Gives all leases of a server back.
    fn release(&self, hub: &str) -> Result<(), ShelfError> {
        let _ = hub;
        Ok(())
    }
}
