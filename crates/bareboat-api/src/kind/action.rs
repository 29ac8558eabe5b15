//! Actions: what is posted to a part of an object, or to a kind nothing is stored of, and then acted upon.
//!
//! The server reads what was posted, lets admission see it and answers; what it means is for the action to know.

use super::{BoxFuture, Shape, User};
use crate::{Object, Status, Str, Value};
use std::fmt;
use std::sync::Arc;

/// A form in which something may be posted.
#[derive(Clone)]
pub struct Form {
    /// Such as `policy/v1`.
    pub api_version: Str,
    /// Such as `Eviction`.
    pub kind: Str,
    /// How it is read.
    pub shape: Arc<dyn Shape>,
}

/// What was posted, where and by whom.
pub struct Posted<'a> {
    /// What was posted, in form and defaulted.
    pub object: Object,
    /// The namespace of the URL.
    pub namespace: &'a str,
    /// The name in the URL; empty for what is posted to a whole kind.
    pub name: &'a str,
    /// Who posted it.
    pub user: &'a User,
    /// The time, as the API prints it (RFC 3339, whole seconds).
    pub now: &'a str,
    /// Whether nothing may be stored.
    pub dry_run: bool,
}

/// What came of it; either is answered with 201.
#[derive(Debug)]
pub enum Acted {
    /// It is done: a Status of success.
    Done,
    /// This is the answer.
    Object(Object),
}

/// Acts upon what is posted.
///
/// Whoever posts needs the right to `create` the subresource, such as `pods/eviction`.
pub trait Action: Send + Sync {
    /// The forms in which something may be posted; the first is meant when the body does not say.
    fn forms(&self) -> &[Form];

    /// Acts.
    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        hands: &'a dyn Hands,
    ) -> BoxFuture<'a, Result<Acted, Status>>;
}

impl fmt::Debug for dyn Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Action")
    }
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The API group of its kind.
    pub group: &'a str,
    /// The plural of its kind.
    pub resource: &'a str,
    /// Its namespace; empty for none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A change an action makes to an object.
pub struct Change<'a> {
    /// To which object.
    pub place: Place<'a>,
    /// Who is recorded as manager of what changes, and for which subresource; nobody if nothing is said.
    pub manager: Option<(&'a str, &'a str)>,
    /// Computes the new object from the live one; called again when somebody else was faster.
    pub edit: &'a (dyn Fn(Object) -> Result<Object, Status> + Send + Sync),
    /// Whether nothing may be stored.
    pub dry_run: bool,
}

/// What an action can do with stored objects, beyond the rules that bind clients.
///
/// Objects are shown in the version they are stored in. Admission was asked about what was posted and is not asked
/// again.
pub trait Hands: Send + Sync {
    /// An object.
    fn get(&self, place: Place<'_>) -> Option<Object>;

    /// Sends a warning with the answer.
    fn warn(&self, _text: String) {}

    /// All objects of a kind in a namespace.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Object>;

    /// Changes an object and gives it as it is then.
    fn change<'a>(&'a self, change: Change<'a>) -> BoxFuture<'a, Result<Object, Status>>;

    /// Deletes an object as DeleteOptions say: by way of its finalizers and its grace period.
    fn delete<'a>(
        &'a self,
        place: Place<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>>;
}
