//! The present state in a watch: the member sends all objects, then a bookmark that says so, then what happens after it. It costs
//! the member less memory than a list, and the watch need not be opened again.
//!
//! Not every member can do this. Old ones do not know the parameters and never send the bookmark; others refuse them. Then
//! the member's types are listed, until its next session.

use super::pages::Filled;
use super::parse::{Ended, State, StateEnd};
use super::{End, LONGEST_LINE, Report, TypeSync, timeout_seconds};
use crate::api::{MemberError, refused};
use crate::sync::lines::Lines;
use bareboat_api::Value;
use bareboat_shelf::Seen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a member may be silent before the bookmark. One that knows the parameters goes on at once.
const SILENCE: Duration = Duration::from_secs(10);
/// The first version of Kubernetes that knows the parameters. Older ones ignore them.
const FIRST: (u64, u64) = (1, 27);

/// Whether a member sends the present state in watches, as far as is known.
#[derive(Debug)]
pub(crate) struct Streaming(AtomicBool);

impl Streaming {
    pub(crate) fn new(possible: bool) -> Streaming {
        Streaming(AtomicBool::new(possible))
    }

    /// Judges a member by its answer to `/version`. It is tried with members that do not tell.
    pub(crate) fn of_version(version: &Value) -> Streaming {
        let number = |key: &str| {
            let text = version.get(key)?.as_str()?;
            // Some distributions write `27+`.
            let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
            digits.parse::<u64>().ok()
        };
        let known = number("major").zip(number("minor"));
        Streaming::new(known.is_none_or(|known| known >= FIRST))
    }

    pub(super) fn is_possible(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The member does not do it: its types are listed from now on.
    pub(super) fn give_up(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// How an attempt ended.
pub(super) enum Initial {
    /// The state is on the shelf.
    Complete(Filled),
    /// The member does not do this; the text says why that is assumed.
    Unknown(&'static str),
}

impl TypeSync {
    /// Reads the present state from a watch.
    pub(super) async fn initial(&self) -> Result<Initial, End> {
        let mut lines = match self.open_initial().await {
            Ok(lines) => lines,
            Err(error) if is_unknown(&error) => {
                return Ok(Initial::Unknown("the member refuses the parameters"));
            }
            Err(error) => return Err(error.into()),
        };
        let mut seen = Seen::default();
        let (mut read, mut skipped) = (0, 0);
        let mut pace = Pace::default();
        loop {
            let began = Instant::now();
            let (raw, last) = match self.collect(&mut lines, SILENCE).await {
                Ok(collected) => collected,
                Err(End::Done) => return Ok(Initial::Unknown("the end is not marked")),
                Err(end) => return Err(end),
            };
            pace.waited += began.elapsed();
            let (state, raw) = self.read_state(raw).await?;
            read += state.changes.len() + state.skipped;
            skipped += state.skipped;
            let limit = self.settings.shelf.rows_per_member;
            if read as u64 > limit {
                let why = format!("the list has more than {limit} objects");
                return Err(MemberError::Garbage(why).into());
            }
            let applied = self.fill(state.changes).await?;
            for row in applied.rows {
                seen.insert(row);
            }
            (self.report)(Report::Listing(read));
            if applied.changed > 0 {
                (self.report)(Report::Changed(applied.changed));
            }
            match state.end {
                None => {}
                Some(StateEnd::Complete(version)) => {
                    lines.give_back(&raw[state.read..]);
                    if skipped > 0 {
                        (self.report)(Report::Skipped(skipped));
                    }
                    self.complete(seen, &version).await?;
                    let stream = Some(lines).filter(|_| last.is_none());
                    return Ok(Initial::Complete(Filled { version, stream }));
                }
                Some(StateEnd::Unmarked(why)) => return Ok(Initial::Unknown(why)),
                Some(StateEnd::Ended(Ended::Expired)) => return Err(End::Expired),
                Some(StateEnd::Ended(Ended::Failed(error))) => return Err(error.into()),
            }
            match last {
                None => {}
                Some(End::Done) => return Ok(Initial::Unknown("the end is not marked")),
                Some(end) => return Err(end),
            }
            if !pace.goes_on(read, self.settings.page, self.settings.list_timeout) {
                let why = "the member sends its objects too slowly".to_owned();
                return Err(MemberError::Unreachable(why).into());
            }
        }
    }

    /// Opens the watch.
    async fn open_initial(&self) -> Result<Lines, MemberError> {
        let path = self.resource.path(self.namespace());
        let target = format!(
            "{path}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds={}{}",
            timeout_seconds(&self.resource.resource, &self.member_name),
            self.selector()
        );
        let patience = self.settings.request_timeout;
        let answer = self.api.get(&target, "application/json", patience).await?;
        match answer.code {
            200 => Ok(Lines::new(answer.body, LONGEST_LINE)),
            _ => Err(refused(answer).await),
        }
    }

    /// Parses lines, and returns them as well.
    async fn read_state(
        &self,
        raw: Vec<bytes::Bytes>,
    ) -> Result<(State, Vec<bytes::Bytes>), MemberError> {
        let reader = self.reader();
        let parsing = tokio::task::spawn_blocking(move || (reader.state(&raw), raw));
        let parsed = parsing.await;
        parsed.map_err(|_| MemberError::Garbage("an event cannot be read".to_owned()))
    }
}

/// Returns whether a refusal is about the parameters. Others would be the same for a list.
fn is_unknown(error: &MemberError) -> bool {
    match error.code() {
        Some(401 | 403 | 404 | 405 | 410 | 429 | 503 | 504) | None => false,
        Some(_) => true,
    }
}

/// How long was waited for as many objects as a page of a list has. A page may take only so long.
#[derive(Default)]
struct Pace {
    waited: Duration,
    from: usize,
}

impl Pace {
    /// Returns whether objects come quickly enough.
    fn goes_on(&mut self, read: usize, page: usize, time: Duration) -> bool {
        if read - self.from >= page {
            (self.waited, self.from) = (Duration::ZERO, read);
        }
        self.waited <= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn the_version_tells_which_members_are_too_old() {
        let possible = |major: &str, minor: &str| {
            Streaming::of_version(&value!({"major": major, "minor": minor})).is_possible()
        };
        assert!(possible("1", "27"));
        assert!(possible("1", "36+"));
        assert!(possible("2", "0"));
        assert!(!possible("1", "26"));
        assert!(!possible("1", "26+"));
        assert!(possible("", ""), "it is tried");
        assert!(Streaming::of_version(&Value::Null).is_possible());
    }

    #[test]
    fn objects_must_come_as_quickly_as_pages_of_a_list() {
        let (page, time) = (500, Duration::from_secs(60));
        let mut pace = Pace {
            waited: Duration::from_secs(59),
            from: 0,
        };
        assert!(pace.goes_on(499, page, time));
        pace.waited += Duration::from_secs(2);
        assert!(!pace.goes_on(499, page, time));
        assert!(pace.goes_on(501, page, time));
        assert_eq!(pace.waited, Duration::ZERO);
    }
}
