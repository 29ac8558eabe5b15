//! What clients of several servers did and saw, and the checker of it.
//!
//! The log of the store is the witness: it has the order of all writes, so no order has to be searched. [`check`]
//! compares every answer and every event with the log, in about n log n steps. `docs/storage-checks.md` explains the
//! method.

mod epochs;
mod index;
mod reads;
mod streams;
mod writes;

use index::Index;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The revision of the record.
    pub revision: u64,
    /// The revision that it replaces; 0 for a creation.
    pub prev: u64,
    /// The resource and the key, such as `core/configmaps/default/a`; empty for the record of an epoch.
    pub key: String,
    /// What a client wrote, unique among all writes; `None` for a deletion.
    pub content: Option<String>,
}

/// The record that begins another epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The revision of the record.
    pub at: u64,
    /// The last revision that the log had when the epoch began. Later revisions below `at` are lost.
    pub from: u64,
}

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Create an object.
    Create {
        /// The key of the object.
        key: String,
        /// Its content.
        content: String,
    },
    /// Replace an object, if it is still at revision `found`.
    Replace {
        /// The key of the object.
        key: String,
        /// The new content.
        content: String,
        /// The revision that the client knows.
        found: u64,
    },
    /// Change an object, whatever its revision is.
    Patch {
        /// The key of the object.
        key: String,
        /// The new content.
        content: String,
    },
    /// Delete an object, if it is still at revision `found`.
    Delete {
        /// The key of the object.
        key: String,
        /// The revision that the client knows.
        found: u64,
    },
    /// Read one object.
    Get {
        /// The key of the object.
        key: String,
        /// Whether the answer must contain all writes that were answered before.
        consistent: bool,
    },
    /// Read all objects whose key begins with `prefix`.
    List {
        /// How the keys begin.
        prefix: String,
        /// Whether the answer must contain all writes that were answered before.
        consistent: bool,
    },
}

/// An object as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The key of the object.
    pub key: String,
    /// Its revision.
    pub revision: u64,
    /// Its content.
    pub content: String,
}

/// What a client was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The write was done; with its revision if the answer contains it.
    Written(Option<u64>),
    /// The answer to a `Get`: the object, or that there is none.
    Found(Option<Seen>),
    /// The answer to a `List`, and the revision of the list.
    Listed {
        /// The revision of the list.
        revision: u64,
        /// The objects in the order of their keys.
        objects: Vec<Seen>,
    },
    /// The object exists already, or is at another revision, or does not exist.
    Conflict,
    /// Nothing was written or read.
    Refused,
    /// The connection was lost, or the server said that it does not know.
    Unknown,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The number of the client. Its reads never go back.
    pub client: usize,
    /// The number of the server that was asked.
    pub server: usize,
    /// When the request was sent, in nanoseconds after the start of the run.
    pub begun: u64,
    /// When the answer was complete.
    pub ended: u64,
    /// What was asked for.
    pub request: Request,
    /// What was answered.
    pub outcome: Outcome,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted. The event contains its last content.
    Deleted,
    /// Nothing happened up to the revision of the event that was not sent before.
    Bookmark,
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its type.
    pub kind: Type,
    /// The object; of a bookmark only its revision is meant.
    pub object: Seen,
}

/// What one watcher received after one revision, over any number of connections to any servers. A watcher that is asked
/// to list again begins another stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// How the watched keys begin.
    pub prefix: String,
    /// The revision after which the watch began.
    pub after: u64,
    /// The events in the order in which they arrived.
    pub events: Vec<Event>,
    /// Whether a server said that the history is gone (410), so that the watcher had to list again.
    pub expired: bool,
    /// The revision that the stream must have reached, if its watcher was still there at the end.
    pub until: Option<u64>,
}

/// Everything that is known about a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The revision after which the run began.
    pub after: u64,
    /// The records of the log after that revision, in order. None may be compacted.
    pub rows: Vec<Row>,
    /// The epochs that began during the run, from the log.
    pub epochs: Vec<Epoch>,
    /// How many epochs the run has caused, such as by a promotion.
    pub declared_epochs: usize,
    /// What clients did.
    pub operations: Vec<Operation>,
    /// What watchers received.
    pub streams: Vec<Stream>,
}

/// A rule that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The operation, record or event that breaks it.
    pub detail: String,
}

/// The rules that every history must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Revisions are consecutive but for the jumps of epochs.
    Consecutive,
    /// A record replaces the newest record of its key.
    Chain,
    /// A content is written once.
    Once,
    /// An answered write is in the log, with its revision, key and content.
    Kept,
    /// A refused write is not in the log.
    RefusedIsAbsent,
    /// A write with a version replaces that version.
    CompareAndSwap,
    /// A write that was answered before another one began has a lower revision.
    RealTime,
    /// A conflict is explained by the log.
    Conflict,
    /// A read is the state at one revision that is new enough.
    Read,
    /// The reads of a client do not go back.
    Monotonic,
    /// The events of a stream are ordered, without repetition.
    Ordered,
    /// No event is missing in a stream.
    Complete,
    /// An event has the type and the content that the log has.
    Event,
    /// A bookmark does not pass an event that was not sent yet.
    Bookmark,
    /// A watch is only asked to list again when an epoch began.
    Expired,
    /// No stream continues over the beginning of an epoch.
    EpochEndsStreams,
    /// An epoch begins only when the run caused one.
    Undeclared,
}

/// Checks a history. Returns everything that breaks a rule.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let index = Index::new(history);
    writes::check(history, &index, &mut found);
    reads::check(history, &index, &mut found);
    streams::check(history, &index, &mut found);
    epochs::check(history, &mut found);
    found
}

/// Panics with the first violations, if there are any. `name` says which run it was.
pub fn assert_explained(name: &str, history: &History) {
    let found = check(history);
    let few: Vec<String> = found
        .iter()
        .take(10)
        .map(|one| format!("{one:?}"))
        .collect();
    assert!(
        found.is_empty(),
        "{name}: {} violations, such as\n{}",
        found.len(),
        few.join("\n")
    );
}

impl Request {
    /// Returns the key of the object that the request is about.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Create { key, .. }
            | Self::Replace { key, .. }
            | Self::Patch { key, .. }
            | Self::Delete { key, .. }
            | Self::Get { key, .. } => Some(key),
            Self::List { .. } => None,
        }
    }

    /// Returns the content that the request writes.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::Create { content, .. }
            | Self::Replace { content, .. }
            | Self::Patch { content, .. } => Some(content),
            _ => None,
        }
    }
}

fn violation(rule: Rule, detail: String) -> Violation {
    Violation { rule, detail }
}
