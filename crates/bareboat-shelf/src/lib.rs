//! The shelf: an index of the objects of many API servers, called members, with bodies on disk.
//!
//! Rows are narrow (keys, owner, times, labels, declared fields); bodies are in a table of their own and are read only for rows
//! that an answer contains or that a predicate cannot judge without them. Every change of a row takes the next `rev`, the
//! counter that merged views show as resourceVersion. The shelf knows neither HTTP nor members' connections: it takes batches
//! of changes and answers queries. All calls block; callers run them on threads for blocking work.
//!
//! The shelf can be rebuilt from the members at any time. A lost tail of changes is therefore acceptable, but a `rev` is never
//! given twice.
//!
//! ```
//! use bareboat_api::value;
//! use bareboat_shelf::{Batch, Change, Draft, KindInfo, Query, Settings, Shelf};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let shelf = Shelf::open(folder.path().join("shelf.db"), Settings::default())?;
//! let (member, _) = shelf.add_member("berlin", "")?;
//! let kind = shelf.add_kind(&KindInfo {
//!     group: String::new(),
//!     resource: "pods".to_owned(),
//!     kind: "Pod".to_owned(),
//!     namespaced: true,
//! })?;
//! let pod = Draft::new("berlin", value!({
//!     "apiVersion": "v1", "kind": "Pod",
//!     "metadata": {"namespace": "default", "name": "a", "uid": "1", "resourceVersion": "7"},
//! }))?;
//! let now = 1_648_166_400_000;
//! shelf.apply(&[Batch { member, kind, changes: vec![Change::Put(Box::new(pod))], progress: None }], now)?;
//!
//! let page = shelf.page(&Query { kinds: vec![kind], ..Query::default() }, 10)?;
//! assert_eq!(page.items[0].narrow.name, "a");
//! assert_eq!(page.rev, shelf.visible());
//! # Ok(()) }
//! ```

mod compare;
mod cursor;
pub mod decide;
mod dialect;
mod draft;
mod engine;
mod fields;
mod order;
mod param;
mod path;
mod plan;
mod predicate;
mod prefilter;
mod query;
mod ring;
mod row;
mod scan;
mod seen;
mod shelf;
mod sqlite;
mod where_sql;

pub use compare::Literal;
pub use cursor::Cursor;
pub use dialect::Dialect;
pub use draft::{CLUSTER_ANNOTATION, Draft, DraftError, VERSION_ANNOTATION};
pub use engine::{
    Applied, Batch, Change, Context, Engine, Fence, Lease, NewIndex, Progress, Reading, Session,
    Standing, VisitBody, Written,
};
pub use fields::{FieldOperator, FieldRequirement, parse_field_selector};
pub use order::{Order, OrderKey, SortColumn};
pub use param::{Cells, Param};
pub use path::{Path, PathError, Step};
pub use predicate::{Column, Comparison, Predicate, Term, Test, Truth};
pub use query::{Bounds, Group, Item, Page, Query, Summary};
pub use ring::{Event, EventType};
pub use row::{Directory, KindId, KindInfo, MemberId, Narrow, Row};
pub use seen::Seen;
pub use shelf::{
    Expired, Following, Owner, OwnerSearch, Position, Replayed, Settings, Shelf, ShelfError,
    file_engine,
};
pub use where_sql::{WhereError, parse_where};
