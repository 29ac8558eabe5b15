//! What a kind does beyond its data: prepare and validate objects on the way in.

use crate::{FieldError, Object, Status, Str, Value};
use std::any::Any;
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

/// What a write holds until it is stored or has failed: addresses, ports, names. Dropping it gives them back, so what
/// is stored must count as taken by then.
#[derive(Default)]
#[must_use = "what is reserved is given back when this is dropped"]
pub struct Reservation(Option<Box<dyn Any + Send + Sync>>);

impl Reservation {
    /// Holds something whose drop gives it back.
    pub fn holding(held: impl Any + Send + Sync) -> Reservation {
        Reservation(Some(Box::new(held)))
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// What a kind does beyond its data. Every method does nothing unless a kind says otherwise.
///
/// The server itself looks after what all kinds share: metadata, generation, `status` being
/// written only through its own URL.
pub trait Strategy: Send + Sync {
    /// Completes an object that is about to be created.
    fn prepare_create(&self, _new: &mut Object, _ctx: &WriteContext<'_>) {}

    /// Completes an object that is about to replace another.
    fn prepare_update(&self, _new: &mut Object, _old: &Object, _ctx: &WriteContext<'_>) {}

    /// Takes what only one object can have and completes the object with it, after it was prepared and before it is
    /// validated. The server keeps what is held until the write is done, one way or the other.
    fn reserve(
        &self,
        _new: &mut Object,
        _old: Option<&Object>,
        _ctx: &WriteContext<'_>,
    ) -> Result<Reservation, Status> {
        Ok(Reservation::default())
    }

    /// Says what is wrong with a new object.
    fn validate_create(&self, _new: &Object, _ctx: &WriteContext<'_>) -> Vec<FieldError> {
        Vec::new()
    }

    /// Says what is wrong with a changed object.
    fn validate_update(
        &self,
        _new: &Object,
        _old: &Object,
        _ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        Vec::new()
    }

    /// What to warn about.
    fn warnings(
        &self,
        _new: &Object,
        _old: Option<&Object>,
        _ctx: &WriteContext<'_>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// What to tell whoever sends an object of a version that is not served: what to change in it. Without an object,
    /// everything there is to know.
    fn advise(&self, _version: &str, _object: Option<&Value>) -> Option<String> {
        None
    }

    /// Writes of objects with the same word here take turns, because what one is given depends on what others hold.
    fn turn<'a>(&self, _object: &'a Object) -> Option<&'a str> {
        None
    }

    /// Why this object may not be deleted at all.
    fn forbid_delete(&self, _object: &Object) -> Option<String> {
        None
    }

    /// Changes an object whose deletion begins (its `deletionTimestamp` is being set); the object
    /// stays until its finalizers are gone. Returns whether it must stay even without finalizers.
    fn begin_delete(&self, _object: &mut Object, _ctx: &WriteContext<'_>) -> bool {
        false
    }

    /// Whether the beginning of a deletion neither moves the generation nor tells a grace period.
    fn keeps_generation_on_delete(&self) -> bool {
        false
    }

    /// Whether the beginning of a deletion is stored and seen even if nothing holds it up.
    fn shows_its_end(&self) -> bool {
        false
    }

    /// Kinds (group and plural) whose objects of the same name and namespace go when an object of this kind is gone.
    fn companions(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether an object under deletion without metadata finalizers must stay nevertheless.
    fn holds_back_deletion(&self, _object: &Object) -> bool {
        false
    }
}

/// The strategy of kinds that need none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStrategy;

impl Strategy for NoStrategy {}
