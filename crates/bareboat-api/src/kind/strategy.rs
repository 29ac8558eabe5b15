//! The behaviour of a kind beyond its data: preparing and validating objects that are written.

use super::Reservations;
use crate::{FieldError, Object, Status, Str, Value};
use std::collections::BTreeMap;

/// The authenticated user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: Str,
    /// The uid, if the authenticator knows one.
    pub uid: Str,
    /// The groups of the user.
    pub groups: Vec<Str>,
    /// Other attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|name| name == group)
    }
}

/// The circumstances of a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext<'a> {
    /// The subresource written to, if any.
    pub subresource: Option<&'a str>,
    /// The user who sent the request.
    pub user: &'a User,
    /// The time, as the API prints it (RFC 3339, whole seconds).
    pub now: &'a str,
    /// The version of the request, such as `v1`.
    pub version: &'a str,
    /// Whether this is a dry run: nothing will be stored.
    pub dry_run: bool,
}

/// An object of another kind that is created and deleted with this one: in the same namespace, or
/// cluster-scoped.
#[derive(Clone, Debug, PartialEq)]
pub struct Companion {
    /// The API group of the companion's kind.
    pub group: &'static str,
    /// The resource of the companion's kind, such as `endpoints`.
    pub resource: &'static str,
    /// The name of the companion.
    pub name: Str,
    /// Its content, stored together with the object. `None` if other code writes it; then it is
    /// only deleted with the object.
    pub says: Option<Value>,
}

/// The behaviour of a kind beyond its data. By default every method does nothing.
///
/// The server handles the rules that all kinds share: metadata, generation, and writing `status`
/// only through its own URL.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::{Strategy, WriteContext};
/// use bareboat::api::{FieldError, FieldPath, Object, Value};
///
/// /// Boats have a captain, who is not changed later.
/// struct BoatRules;
///
/// impl Strategy for BoatRules {
///     fn prepare_create(&self, new: &mut Object, ctx: &WriteContext<'_>) {
///         let captain = Value::string(ctx.user.name.as_str());
///         new.map_mut().object_mut("spec").insert("captain", captain);
///     }
///
///     fn validate_update(&self, new: &Object, old: &Object, _: &WriteContext<'_>) -> Vec<FieldError> {
///         let captain = ["spec", "captain"];
///         if new.at(&captain) == old.at(&captain) {
///             return Vec::new();
///         }
///         let path = FieldPath::new("spec").child("captain");
///         vec![FieldError::forbidden(path, "the captain stays")]
///     }
/// }
/// ```
pub trait Strategy: Send + Sync {
    /// Returns the strategy that this one wraps; it handles all methods that this one does not
    /// implement.
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

    /// Reserves unique resources (IPs, ports) and sets them in the object, after it was prepared
    /// and before it is validated. The server keeps the reservations until the write ends.
    fn reserve(
        &self,
        new: &mut Object,
        old: Option<&Object>,
        ctx: &WriteContext<'_>,
    ) -> Result<Reservations, Status> {
        match self.inner() {
            Some(inner) => inner.reserve(new, old, ctx),
            None => Ok(Reservations::default()),
        }
    }

    /// Returns the errors of a new object.
    fn validate_create(&self, new: &Object, ctx: &WriteContext<'_>) -> Vec<FieldError> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.validate_create(new, ctx))
    }

    /// Returns the errors of a changed object.
    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.validate_update(new, old, ctx))
    }

    /// Returns the warnings of a write.
    fn warnings(&self, new: &Object, old: Option<&Object>, ctx: &WriteContext<'_>) -> Vec<String> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.warnings(new, old, ctx))
    }

    /// Returns the advice for a client that sends a version that is not served: the changes the
    /// object needs. Without an object, returns the complete advice.
    fn advise(&self, version: &str, object: Option<&Value>) -> Option<String> {
        self.inner()?.advise(version, object)
    }

    /// Returns a key: writes of objects with the same key are concluded and stored one after another, because their
    /// results depend on each other.
    fn turn<'a>(&self, object: &'a Object) -> Option<&'a str> {
        self.inner()?.turn(object)
    }

    /// Decides what depends on other objects with the same [`turn`](Strategy::turn). This is the last change of an
    /// object, after admission; no other write of the turn is stored before it is.
    fn conclude(&self, new: &mut Object, ctx: &WriteContext<'_>) {
        if let Some(inner) = self.inner() {
            inner.conclude(new, ctx);
        }
    }

    /// Returns the reason why this object may not be deleted at all.
    fn forbid_delete(&self, object: &Object) -> Option<String> {
        self.inner()?.forbid_delete(object)
    }

    /// Changes an object whose deletion begins (its `deletionTimestamp` is being set). The object
    /// stays until its finalizers are removed. Returns whether it must stay even without
    /// finalizers.
    fn begin_delete(&self, object: &mut Object, ctx: &WriteContext<'_>) -> bool {
        let inner = self.inner();
        inner.is_some_and(|inner| inner.begin_delete(object, ctx))
    }

    /// How many seconds the object may take to end, for kinds with graceful deletion. `requested` is what the client asks
    /// for.
    fn grace_seconds(&self, object: &Object, requested: Option<i64>) -> i64 {
        let inner = self.inner();
        inner.map_or(0, |inner| inner.grace_seconds(object, requested))
    }

    /// Whether the beginning of a deletion neither changes the generation nor reports a grace period.
    fn keeps_generation_on_delete(&self) -> bool {
        let inner = self.inner();
        inner.is_some_and(|inner| inner.keeps_generation_on_delete())
    }

    /// Returns whether the start of a deletion is stored and visible to watchers even if the object
    /// is removed at once.
    fn shows_its_end(&self) -> bool {
        self.inner().is_some_and(|inner| inner.shows_its_end())
    }

    /// Returns the objects of other kinds that are created and deleted with this one, in the same
    /// commit.
    fn companions(&self, object: &Object) -> Vec<Companion> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.companions(object))
    }

    /// Called with an object in its storage version right before it is committed. Large work that views of the store need
    /// belongs here rather than in the commit. The result is held until the write is done.
    fn storing(&self, object: &Object) -> Reservations {
        match self.inner() {
            Some(inner) => inner.storing(object),
            None => Reservations::default(),
        }
    }

    /// Returns whether an object under deletion must stay although it has no finalizers in its
    /// metadata.
    fn holds_back_deletion(&self, object: &Object) -> bool {
        let inner = self.inner();
        inner.is_some_and(|inner| inner.holds_back_deletion(object))
    }
}

/// The strategy without any behaviour.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStrategy;

impl Strategy for NoStrategy {}
