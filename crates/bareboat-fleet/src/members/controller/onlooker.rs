//! On a shelf that several servers share: which members this server syncs, and how it shows those of others.

use super::{Controller, judges, labels, live};
use crate::members::note::{self, Note};
use crate::members::state::MemberState;
use crate::members::{restore, shards};
use crate::types::DEFINITIONS;
use bareboat_api::{Object, Status};

impl Controller {
    /// Renews the leases of this server, if it shares the shelf with others.
    pub(super) async fn renew(&mut self) {
        let Some(share) = &mut self.share else {
            return;
        };
        let mut notes = Vec::new();
        for name in self.followers.keys() {
            if let (Some(state), Some(lease)) = (self.table.get(name), share.lease(name)) {
                notes.push((lease.member, note::of(&state)));
            }
        }
        let due = share.renew(&self.common.shelf, notes).await;
        self.due.extend(due);
    }

    /// Returns whether this server syncs a member.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.share.as_ref().is_none_or(|share| share.holds(name))
    }

    /// Returns the term of the lease of a member.
    pub(super) fn term_of(&self, name: &str) -> i64 {
        let lease = self.share.as_ref().and_then(|share| share.lease(name));
        lease.map_or(0, |lease| lease.term)
    }

    /// Returns whether a deleted PediaCluster has only its finalizer left: its rows are removed, and no server syncs it.
    fn is_left(&self, object: &Object) -> bool {
        let leased = self.share.as_ref().and_then(|it| it.lease(object.name()));
        object.deletion_timestamp().is_some()
            && shards::is_own(object, &self.common.settings.sharding_name)
            && leased.is_none()
            && (self.common.shelf.directory().member(object.name())).is_none()
    }

    /// Shows a member that another server syncs.
    pub(super) async fn look_on(
        &mut self,
        name: &str,
        object: Option<Object>,
    ) -> Result<(), Status> {
        if let Some(follower) = self.followers.remove(name) {
            drop(follower.desired);
            let _ = follower.task.await;
        }
        if let Some(object) = object.as_ref().filter(|object| self.is_left(object)) {
            // The server that removed the rows did not come to remove the finalizer.
            self.release(object).await?;
        }
        let own = &self.common.settings.sharding_name;
        let stays =
            |object: &Object| object.deletion_timestamp().is_none() && shards::is_own(object, own);
        let Some(object) = object.filter(stays) else {
            self.table.remove(name);
            self.told.remove(name);
            return Ok(());
        };
        if self.common.shelf.directory().member(name).is_none() {
            // It is new: from now on servers can take it.
            self.add_member(name).await?;
            self.renew().await;
            if self.holds(name) {
                self.due.insert(name.to_owned());
            }
        }
        let lease = self.share.as_ref().and_then(|share| share.lease(name));
        let text = lease.map_or("", |lease| lease.note.as_str());
        let (time, told) = text.split_once(' ').unwrap_or(("", text));
        let desired = self.desired(&object);
        let known_state = self.table.get(name).filter(|state| state.is_remote());
        if let Some(state) = &known_state
            && self.told.get(name).is_some_and(|before| before == told)
        {
            // Nothing but the time is new, which is so every few seconds.
            state.set_labels(labels(&object));
            state.set_judges(judges(&object));
            state.set_live(live(&object, &desired, state.live()));
            state.heard_at(time.parse().unwrap_or(0));
            return Ok(());
        }
        self.told.insert(name.to_owned(), told.to_owned());
        let told = Note::parse(text);
        let (common, known) = (self.common.clone(), object.clone());
        let completed = tokio::task::spawn_blocking(move || {
            let directory = common.shelf.directory();
            let (mut note, heard) = told.unwrap_or_default();
            if let Some(member) = directory
                .member(known.name())
                .filter(|_| note.types.is_empty())
            {
                note.types = restore::types(&common, member, &known);
            } else if let Some(kind) = directory.kind(DEFINITIONS.0, DEFINITIONS.1) {
                let definitions = common.definitions.read(&common.shelf, known.name(), kind);
                note.complete(&definitions.unwrap_or_default());
            }
            (note, heard)
        });
        let (note, heard) = completed.await.map_err(Status::internal)?;
        let state = known_state.unwrap_or_else(|| MemberState::new(name, &self.table));
        state.set_labels(labels(&object));
        state.set_judges(judges(&object));
        state.set_live(live(&object, &desired, state.live()));
        state.tell(note, heard);
        self.table.add(&state);
        Ok(())
    }
}
