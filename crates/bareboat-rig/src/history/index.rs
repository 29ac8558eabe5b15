//! Lookups in a history: the versions of a key, the record of an operation, and which revisions a read may show.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{History, Operation, Outcome, Request, Row};

/// A version of a key: its revision, and its content unless it was deleted.
pub(super) type Version<'a> = (u64, Option<&'a str>);

/// Sorted copies of a history.
pub(super) struct Index<'a> {
    /// The versions of every key, by revision.
    versions: BTreeMap<&'a str, Vec<Version<'a>>>,
    /// The records by content.
    contents: BTreeMap<&'a str, &'a Row>,
    /// The deletions by key and replaced revision.
    deletions: BTreeMap<(&'a str, u64), &'a Row>,
    /// Times at which an answer contained a revision, and the highest revision up to then.
    known: Vec<(u64, u64)>,
    /// Times at which a write began, and the lowest revision of this and all later ones.
    begun: Vec<(u64, u64)>,
    /// The keys whose writes were lost in an epoch, or may have been, and when the first of these writes began.
    lost: BTreeMap<&'a str, u64>,
    /// The revision of the first epoch, and when a client first saw it.
    epoch: Option<(u64, u64)>,
    last: u64,
}

impl<'a> Index<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let mut index = Self {
            versions: BTreeMap::new(),
            contents: BTreeMap::new(),
            deletions: BTreeMap::new(),
            known: Vec::new(),
            begun: Vec::new(),
            lost: BTreeMap::new(),
            epoch: history
                .epochs
                .first()
                .map(|epoch| (epoch.at, history.first_seen(epoch.at, None))),
            last: history
                .rows
                .last()
                .map_or(history.after, |row| row.revision),
        };
        for row in &history.rows {
            let versions = index.versions.entry(&row.key).or_default();
            versions.push((row.revision, row.content.as_deref()));
            match &row.content {
                Some(content) => index.contents.entry(content).or_insert(row),
                None => index.deletions.entry((&row.key, row.prev)).or_insert(row),
            };
        }
        let lost = |revision: u64| history.is_lost(revision);
        for operation in &history.operations {
            let revision = match &operation.outcome {
                Outcome::Written(Some(revision)) => Some(*revision),
                Outcome::Written(None) => index.row(operation).map(|row| row.revision),
                Outcome::Found(Some(seen)) => Some(seen.revision),
                Outcome::Listed { revision, .. } => Some(*revision),
                _ => None,
            };
            if let Some(revision) = revision.filter(|revision| !lost(*revision)) {
                index.known.push((operation.ended, revision));
            }
            let unseen = matches!(operation.outcome, Outcome::Written(_) | Outcome::Unknown);
            if let Some(key) = operation.request.key()
                && unseen
                && !history.epochs.is_empty()
                && index.row(operation).is_none()
            {
                let first = index.lost.entry(key).or_insert(operation.begun);
                *first = operation.begun.min(*first);
            }
            // Another client may have made a deletion whose answer is missing.
            let sure = operation.request.content().is_some()
                || matches!(operation.outcome, Outcome::Written(_));
            if let Some(row) = index.row(operation).filter(|_| sure) {
                index.begun.push((operation.begun, row.revision));
            }
        }
        index.known.sort_unstable();
        let mut highest = history.after;
        for (_, revision) in &mut index.known {
            highest = highest.max(*revision);
            *revision = highest;
        }
        index.begun.sort_unstable();
        let mut lowest = u64::MAX;
        for (_, revision) in index.begun.iter_mut().rev() {
            lowest = lowest.min(*revision);
            *revision = lowest;
        }
        index
    }

    /// Returns the record that an operation wrote, if it is in the log.
    pub(super) fn row(&self, operation: &Operation) -> Option<&'a Row> {
        match &operation.request {
            Request::Delete { key, found } => {
                let row = self.deletions.get(&(key.as_str(), *found)).copied()?;
                // A deletion that was answered before an epoch may be lost, and another client may have repeated it.
                let repeated = self.epoch.is_some_and(|(at, seen)| {
                    *found < at && row.revision >= at && operation.ended < seen
                });
                (!repeated).then_some(row)
            }
            other => self.contents.get(other.content()?).copied(),
        }
    }

    /// Returns the lowest revision that a consistent read may show that began at `begun`.
    pub(super) fn lowest(&self, begun: u64) -> u64 {
        let upto = self.known.partition_point(|(ended, _)| *ended < begun);
        upto.checked_sub(1).map_or(0, |at| self.known[at].1)
    }

    /// Returns the highest revision that an answer may show that was complete at `ended`: everything later was not
    /// requested yet.
    pub(super) fn highest(&self, ended: u64) -> u64 {
        let from = self.begun.partition_point(|(begun, _)| *begun <= ended);
        let first = self.begun.get(from).map_or(u64::MAX, |(_, first)| *first);
        self.last.min(first - 1)
    }

    /// Returns whether the answer to an operation may have been about a lost version of a key.
    pub(super) fn is_about_lost(
        &self,
        history: &History,
        operation: &Operation,
        key: &str,
    ) -> bool {
        let first = self.lost.get(key);
        first.is_some_and(|first| *first <= operation.ended) && history.is_before_epoch(operation)
    }

    /// Returns all versions of a key.
    pub(super) fn versions(&self, key: &str) -> &[Version<'a>] {
        self.versions.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the version of a key at a revision.
    pub(super) fn at(&self, key: &str, revision: u64) -> Option<Version<'a>> {
        let versions = self.versions(key);
        let upto = versions.partition_point(|(at, _)| *at <= revision);
        upto.checked_sub(1).map(|at| versions[at])
    }

    /// Returns the objects below `prefix` at a revision.
    pub(super) fn state(&self, prefix: &str, revision: u64) -> Vec<(&'a str, u64, &'a str)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let keys = self.versions.range::<str, _>(from).map(|(key, _)| *key);
        keys.take_while(|key| key.starts_with(prefix))
            .filter_map(|key| {
                let (at, content) = self.at(key, revision)?;
                Some((key, at, content?))
            })
            .collect()
    }
}

impl History {
    /// Returns whether a revision was lost when an epoch began.
    pub(super) fn is_lost(&self, revision: u64) -> bool {
        self.epochs
            .iter()
            .any(|epoch| revision > epoch.from && revision < epoch.at)
    }

    /// Returns whether an operation began before any client had seen the first epoch. A read that may be old is answered by
    /// its server alone, which may learn of an epoch later than others.
    pub(super) fn is_before_epoch(&self, operation: &Operation) -> bool {
        let first = self.epochs.first().map_or(u64::MAX, |epoch| epoch.at);
        let old = matches!(
            operation.request,
            Request::Get {
                consistent: false,
                ..
            } | Request::List {
                consistent: false,
                ..
            }
        );
        let from = old.then_some(operation.server);
        operation.begun < self.first_seen(first, from)
    }

    /// Returns when a client first got an answer with at least a revision, from one server or from any.
    fn first_seen(&self, revision: u64, from: Option<usize>) -> u64 {
        let asked = |one: &&Operation| from.is_none_or(|server| one.server == server);
        let answers = self.operations.iter().filter(asked);
        let answers = answers.filter(|one| match &one.outcome {
            Outcome::Written(Some(found))
            | Outcome::Listed {
                revision: found, ..
            } => *found >= revision,
            _ => false,
        });
        answers.map(|one| one.ended).min().unwrap_or(u64::MAX)
    }
}
