//! What a kind does beyond its data: prepare and validate objects on the way in.

use super::Holds;
use crate::{FieldError, Object, Status, Str, Value};
use std::collections::BTreeMap;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: Str,
    /// The uid, if the authenticator knows one.
    pub uid: Str,
    /// The groups.
    pub groups: Vec<Str>,
    /// Whatever else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|name| name == group)
    }
}

/// The circumstances of a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext<'a> {
    /// The subresource written to, if any.
    pub subresource: Option<&'a str>,
    /// Who writes.
    pub user: &'a User,
    /// The time, as the API prints it (RFC 3339, whole seconds).
    pub now: &'a str,
    /// The version of the request, such as `v1`.
    pub version: &'a str,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// An object of another kind that stands or falls with one: in the same namespace, or in none.
#[derive(Clone, Debug, PartialEq)]
pub struct Companion {
    /// The group of its kind.
    pub group: &'static str,
    /// The plural of its kind.
    pub resource: &'static str,
    /// Its name.
    pub name: Str,
    /// What it says; it is stored with the object. Without that others write it, and it only goes with the object.
    pub says: Option<Value>,
}

/// What a kind does beyond its data. Every method does nothing unless a kind says otherwise.
///
/// The server itself looks after what all kinds share: metadata, generation, `status` being
/// written only through its own URL.
pub trait Strategy: Send + Sync {
    /// The strategy this one adds to, which does whatever this one does not do itself.
    fn inner(&self) -> Option<&dyn Strategy> {
        None
    }

    /// Completes an object that is about to be created.
    fn prepare_create(&self, new: &mut Object, ctx: &WriteContext<'_>) {
        if let Some(inner) = self.inner() {
            inner.prepare_create(new, ctx);
        }
    }

    /// Completes an object that is about to replace another.
    fn prepare_update(&self, new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
        if let Some(inner) = self.inner() {
            inner.prepare_update(new, old, ctx);
        }
    }

    /// Takes what only one object can have and completes the object with it, after it was prepared and before it is
    /// validated. The server keeps what is held until the write is done, one way or the other.
    fn reserve(
        &self,
        new: &mut Object,
        old: Option<&Object>,
        ctx: &WriteContext<'_>,
    ) -> Result<Holds, Status> {
        match self.inner() {
            Some(inner) => inner.reserve(new, old, ctx),
            None => Ok(Holds::default()),
        }
    }

    /// Says what is wrong with a new object.
    fn validate_create(&self, new: &Object, ctx: &WriteContext<'_>) -> Vec<FieldError> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.validate_create(new, ctx))
    }

    /// Says what is wrong with a changed object.
    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.validate_update(new, old, ctx))
    }

    /// What to warn about.
    fn warnings(&self, new: &Object, old: Option<&Object>, ctx: &WriteContext<'_>) -> Vec<String> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.warnings(new, old, ctx))
    }

    /// What to tell whoever sends an object of a version that is not served: what to change in it. Without an object,
    /// everything there is to know.
    fn advise(&self, version: &str, object: Option<&Value>) -> Option<String> {
        self.inner()?.advise(version, object)
    }

    /// Writes of objects with the same word here take turns, because what one is given depends on what others hold.
    fn turn<'a>(&self, object: &'a Object) -> Option<&'a str> {
        self.inner()?.turn(object)
    }

    /// Why this object may not be deleted at all.
    fn forbid_delete(&self, object: &Object) -> Option<String> {
        self.inner()?.forbid_delete(object)
    }

    /// Changes an object whose deletion begins (its `deletionTimestamp` is being set); the object
    /// stays until its finalizers are gone. Returns whether it must stay even without finalizers.
    fn begin_delete(&self, object: &mut Object, ctx: &WriteContext<'_>) -> bool {
        let inner = self.inner();
        inner.is_some_and(|inner| inner.begin_delete(object, ctx))
    }

    /// Whether the beginning of a deletion neither moves the generation nor tells a grace period.
    fn keeps_generation_on_delete(&self) -> bool {
        let inner = self.inner();
        inner.is_some_and(|inner| inner.keeps_generation_on_delete())
    }

    /// Whether the beginning of a deletion is stored and seen even if nothing holds it up.
    fn shows_its_end(&self) -> bool {
        self.inner().is_some_and(|inner| inner.shows_its_end())
    }

    /// Objects of other kinds that stand or fall with this one, in the same commit.
    fn companions(&self, object: &Object) -> Vec<Companion> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.companions(object))
    }

    /// Whether an object under deletion without metadata finalizers must stay nevertheless.
    fn holds_back_deletion(&self, object: &Object) -> bool {
        let inner = self.inner();
        inner.is_some_and(|inner| inner.holds_back_deletion(object))
    }
}

/// The strategy of kinds that need none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStrategy;

impl Strategy for NoStrategy {}
