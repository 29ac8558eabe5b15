//! What a watch has shown while it catches up.
//!
//! Rows have only their last state, and a long replay is read in parts. An object that changes again while earlier parts are read
//! moves to a later part, where it looks like an old one. So the objects that are newer than the client's version are remembered
//! once they are shown: each comes first as an addition. Deletions are always shown: the client's version is that of the first page
//! of its list, and later pages may have had the object. Clients ignore deletions of objects that they do not have.

use bareboat_shelf::{EventType, Narrow, Seen};

/// The objects of a replay.
pub(super) struct CatchUp {
    /// The version that the client had.
    since: i64,
    shown: Seen,
}

impl CatchUp {
    pub(super) fn new(since: i64) -> CatchUp {
        CatchUp {
            since,
            shown: Seen::default(),
        }
    }

    /// Returns as what the client sees a change.
    pub(super) fn judge(&mut self, event: EventType, row: &Narrow) -> EventType {
        if row.born <= self.since {
            return event;
        }
        match (event, self.shown.contains(row.id)) {
            (EventType::Deleted, _) => {
                self.shown.remove(row.id);
                EventType::Deleted
            }
            (_, true) => EventType::Modified,
            (_, false) => {
                self.shown.insert(row.id);
                EventType::Added
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CatchUp;
    use bareboat_shelf::EventType::{Added, Deleted, Modified};
    use bareboat_shelf::Narrow;

    #[test]
    fn an_object_that_is_new_to_the_client_is_added_once() {
        let row = |id: i64, born: i64| Narrow {
            id,
            born,
            ..Narrow::default()
        };
        let mut replay = CatchUp::new(10);
        // The client had it.
        assert_eq!(replay.judge(Modified, &row(1, 5)), Modified);
        assert_eq!(replay.judge(Deleted, &row(1, 5)), Deleted);
        // It changed while an earlier part was read, and again after it was shown.
        assert_eq!(replay.judge(Modified, &row(2, 11)), Added);
        assert_eq!(replay.judge(Added, &row(2, 11)), Modified);
        assert_eq!(replay.judge(Deleted, &row(2, 11)), Deleted);
        // It came and went; a later page of the client's list may have had it.
        assert_eq!(replay.judge(Deleted, &row(3, 12)), Deleted);
        // It matches again.
        assert_eq!(replay.judge(Added, &row(2, 11)), Added);
    }
}
