//! Which version of the fleet belongs to a version of a member.
//!
//! One-member views show the member's own versions. A watch there begins at such a version, but the shelf replays by its own
//! counter. Lists and watches note pairs of both here. A version that was not noted, such as one from before a restart, is answered
//! by 410, and the client lists again.

use crate::search::{Search, Start};
use crate::views::Call;
use bareboat_api::Status;
use bareboat_shelf::{KindId, MemberId};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

impl Call {
    /// Checks that the token of a list comes from this shelf. With one of another server, pages of two shelves would be mixed.
    pub(crate) async fn check_token(&self, search: &Search) -> Result<(), Status> {
        let Start::After(cursor) = &search.start else {
            return Ok(());
        };
        let (shelf, rev) = (self.views.shelf.clone(), cursor.rev);
        // Other servers may have to be asked through the shelf.
        let given = self.views.workers.run(move || Ok(shelf.gave(rev)));
        match given.await? {
            true => Ok(()),
            false => Err(Status::expired(
                "The provided continue parameter is too old: another server has begun to sync the fleet since. \
                 Start a new list without the continue parameter.",
            )),
        }
    }

    /// Returns the version of the last change, after a look at what other servers wrote if it is less than a client knows.
    pub(crate) async fn visible_to(&self, known: u64) -> Result<u64, Status> {
        let shelf = self.views.shelf.clone();
        let visible = shelf.visible().unsigned_abs();
        if known <= visible || !shelf.is_shared() {
            return Ok(visible);
        }
        let look = move || shelf.refresh().map(|()| shelf.visible().unsigned_abs());
        self.views.workers.run(look).await
    }
}

/// How many pairs are kept of each member and kind.
const MOST: usize = 64;

/// Versions of a member, and the versions of the fleet that belong to them.
type Pairs = VecDeque<(u64, i64)>;

/// Pairs of versions, by member and kind.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<HashMap<(MemberId, KindId), Pairs>>);

impl Marks {
    /// Notes that all changes up to a version of the member are at most at a version of the fleet.
    pub(crate) fn note(&self, member: MemberId, kind: KindId, version: u64, rev: i64) {
        let mut marks = self.0.lock();
        let pairs = marks.entry((member, kind)).or_default();
        if let Some(last) = pairs.back_mut() {
            if last.0 == version {
                last.1 = last.1.max(rev);
                return;
            }
            if last.0 > version {
                // The member was restored from a backup: older pairs mean nothing any more.
                pairs.clear();
            }
        }
        pairs.push_back((version, rev));
        if pairs.len() > MOST {
            pairs.pop_front();
        }
    }

    /// Returns the version of the fleet from which a watch finds everything after a version of the member.
    pub(crate) fn before(&self, member: MemberId, kind: KindId, version: u64) -> Option<i64> {
        let marks = self.0.lock();
        let pairs = marks.get(&(member, kind))?;
        let known = pairs.iter().rev().find(|(noted, _)| *noted <= version);
        known.map(|(_, rev)| *rev)
    }

    /// Returns the version of the member that was noted with a version of the fleet.
    pub(crate) fn at(&self, member: MemberId, kind: KindId, rev: i64) -> Option<u64> {
        let marks = self.0.lock();
        let pairs = marks.get(&(member, kind))?;
        let known = pairs.iter().rev().find(|(_, noted)| *noted <= rev);
        known.map(|(version, _)| *version)
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Marks};
    use bareboat_shelf::{KindId, MemberId};

    #[test]
    fn a_watch_begins_at_the_noted_version_or_before() {
        let (marks, member, kind) = (Marks::default(), MemberId(1), KindId(1));
        assert_eq!(marks.before(member, kind, 5), None);
        marks.note(member, kind, 10, 100);
        marks.note(member, kind, 20, 200);
        assert_eq!(marks.before(member, kind, 9), None);
        assert_eq!(marks.before(member, kind, 15), Some(100));
        assert_eq!(marks.before(member, kind, 25), Some(200));
        assert_eq!(marks.at(member, kind, 150), Some(10));
        marks.note(member, kind, 5, 300);
        assert_eq!(marks.before(member, kind, 25), Some(300));
        for version in 6..200 {
            marks.note(member, kind, version, 300);
        }
        assert!(marks.0.lock()[&(member, kind)].len() <= MOST);
    }
}
