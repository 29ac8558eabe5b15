//! What a watch has shown while it catches up.
//!
//! Rows have only their last state, and a long replay is read in parts. An object that changes again while earlier parts are read
//! moves to a later part, where it looks like an old one. So the objects that are newer than the client's version are remembered
//! once they are shown: each comes first as an addition, and the deletion of one that was never shown is left out.

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

    /// Returns as what the client sees a change, or nothing if it never had the object.
    pub(super) fn judge(&mut self, event: EventType, row: &Narrow) -> Option<EventType> {
        if row.born <= self.since {
            return Some(event);
        }
        let shown = self.shown.contains(row.id);
        match (event, shown) {
            (EventType::Deleted, false) => None,
            (EventType::Deleted, true) => {
                self.shown.remove(row.id);
                Some(EventType::Deleted)
            }
            (_, true) => Some(EventType::Modified),
            (_, false) => {
                self.shown.insert(row.id);
                Some(EventType::Added)
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
        assert_eq!(replay.judge(Modified, &row(1, 5)), Some(Modified));
        assert_eq!(replay.judge(Deleted, &row(1, 5)), Some(Deleted));
        // It changed while an earlier part was read, and again after it was shown.
        assert_eq!(replay.judge(Modified, &row(2, 11)), Some(Added));
        assert_eq!(replay.judge(Added, &row(2, 11)), Some(Modified));
        assert_eq!(replay.judge(Deleted, &row(2, 11)), Some(Deleted));
        // It came and went.
        assert_eq!(replay.judge(Deleted, &row(3, 12)), None);
        // It matches again.
        assert_eq!(replay.judge(Added, &row(2, 11)), Some(Added));
    }
}
