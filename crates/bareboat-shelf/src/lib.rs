//! The shelf: an index of the objects of many API servers, called members, with bodies on disk.
//!
//! Rows are narrow (keys, owner, times, labels, declared fields); bodies are in a table of their own and are read only for rows
//! that an answer contains or that a predicate cannot judge without them. Every change of a row takes the next `rev`, the
//! counter that merged views show as resourceVersion. The shelf knows neither HTTP nor members' connections: it takes batches
//! of changes and answers queries. All calls block; callers run them on threads for blocking work.
//!
//! The shelf can be rebuilt from the members at any time. A lost tail of changes is therefore acceptable, but a `rev` is never
//! given twice.

mod compare;
mod cursor;
mod draft;
mod fields;
mod order;
mod path;
mod plan;
mod predicate;
mod query;
mod ring;
mod row;
mod scan;
mod seen;
mod shelf;
mod where_sql;

pub use compare::Literal;
pub use cursor::Cursor;
pub use draft::{CLUSTER_ANNOTATION, Draft, DraftError, VERSION_ANNOTATION};
pub use fields::{FieldOperator, FieldRequirement, parse_field_selector};
pub use order::{Order, OrderKey, SortColumn};
pub use path::{Path, PathError, Step};
pub use predicate::{Column, Comparison, Predicate, Term, Test, Truth};
pub use query::{Bounds, Group, Item, Page, Query, Summary};
pub use ring::{Event, EventType};
pub use row::{Directory, KindId, KindInfo, MemberId, Narrow, Row};
pub use seen::Seen;
pub use shelf::{
    Applied, Batch, Change, Expired, Following, Owner, OwnerSearch, Progress, Replayed, Settings,
    Shelf, ShelfError,
};
pub use where_sql::{WhereError, parse_where};
