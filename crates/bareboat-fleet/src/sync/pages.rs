//! Brings the present state to the shelf: in a watch if the member sends it so, else by a list in pages. What differs is written,
//! and what the member does not have is removed.

use super::initial::Initial;
use super::lines::Lines;
use super::parse::Page;
use super::{End, Report, TypeSync, escaped};
use crate::api::{MemberError, fetch_bytes};
use bareboat_shelf::{Progress, Seen};

/// The smallest page that is asked for, if larger ones exceed the limit of bytes.
const SMALLEST: usize = 5;
/// How many pages without objects a list may have.
const EMPTY_PAGES: usize = 100;

/// The present state is on the shelf.
pub(super) struct Filled {
    /// The version to watch from.
    pub(super) version: String,
    /// The watch that brought it and goes on, if it was one.
    pub(super) stream: Option<Lines>,
}

impl TypeSync {
    /// Reads everything that the member has.
    pub(super) async fn refill(&self) -> Result<Filled, End> {
        let permit = self.refills.acquire().await;
        let _permit = permit.map_err(|_| End::Failed(closed()))?;
        (self.report)(Report::Listing(0));
        if self.streaming.is_possible() {
            match self.initial().await? {
                Initial::Complete(filled) => return Ok(filled),
                Initial::Unknown(why) => {
                    tracing::debug!(member = %self.member_name, resource = %self.resource.resource, why,
                        "the member does not send the present state in watches; it is listed");
                    self.streaming.give_up();
                }
            }
        }
        let version = self.list().await?;
        Ok(Filled {
            version,
            stream: None,
        })
    }

    /// Lists everything, and returns the version of the list.
    async fn list(&self) -> Result<String, End> {
        let mut seen = Seen::default();
        let mut page_size = self.settings.page;
        let mut next = String::new();
        let mut version = String::new();
        let (mut read, mut skipped, mut empty) = (0, 0, 0);
        loop {
            let page = match self.page(&next, page_size).await {
                Ok(page) => page,
                Err(MemberError::TooLarge(_)) if page_size > SMALLEST => {
                    page_size = (page_size / 10).max(SMALLEST);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if version.is_empty() {
                version.clone_from(&page.version);
            }
            read += page.changes.len() + page.skipped;
            skipped += page.skipped;
            empty = match page.changes.is_empty() {
                true => empty + 1,
                false => 0,
            };
            let limit = self.settings.shelf.rows_per_member;
            let endless = read as u64 > limit || empty > EMPTY_PAGES || page.next == next;
            if !page.next.is_empty() && endless {
                let why = match page.next == next {
                    true => "the continue token of the list does not move".to_owned(),
                    false if empty > EMPTY_PAGES => "the list has no end".to_owned(),
                    false => format!("the list has more than {limit} objects"),
                };
                return Err(MemberError::Garbage(why).into());
            }
            let applied = self.fill(page.changes).await?;
            for row in applied.rows {
                seen.insert(row);
            }
            (self.report)(Report::Listing(read));
            if applied.changed > 0 {
                (self.report)(Report::Changed(applied.changed));
            }
            if page.next.is_empty() {
                break;
            }
            next = page.next;
        }
        if skipped > 0 {
            (self.report)(Report::Skipped(skipped));
        }
        self.complete(seen, &version).await?;
        Ok(version)
    }

    /// Removes what was not seen, and saves the version of what was.
    pub(super) async fn complete(&self, seen: Seen, version: &str) -> Result<(), End> {
        let progress = Progress {
            version: self.mark.clone(),
            resource_version: version.to_owned(),
        };
        let removed = self.writer.complete(self.member, self.kind, seen, progress);
        let removed = removed.await?;
        (self.report)(Report::Changed(removed));
        Ok(())
    }

    async fn page(&self, next: &str, size: usize) -> Result<Page, MemberError> {
        let path = self.resource.path(self.namespace());
        let mut target = format!("{path}?limit={size}{}", self.selector());
        if !next.is_empty() {
            target.push_str("&continue=");
            target.push_str(&escaped(next));
        }
        let (most, time) = (self.settings.page_bytes, self.settings.list_timeout);
        let bytes = fetch_bytes(&*self.api, &target, "application/json", most, time).await?;
        let reader = self.reader();
        let parsing = tokio::task::spawn_blocking(move || reader.page(&bytes));
        match parsing.await {
            Ok(page) => page,
            Err(_) => Err(MemberError::Garbage("a list cannot be read".to_owned())),
        }
    }
}

fn closed() -> super::Failure {
    super::Failure {
        reason: "Shutdown",
        message: "the fleet is shutting down".to_owned(),
    }
}
