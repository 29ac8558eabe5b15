//! Actions: subresources and kinds that clients post something to, such as `pods/eviction`. Nothing of the body is stored.
//!
//! The server decodes the body, calls admission and answers; the action itself does the rest.

use super::{BoxFuture, Shape, User};
use crate::{Object, Status, Str, Value};
use std::fmt;
use std::sync::Arc;

/// A type of body that an action accepts.
#[derive(Clone)]
pub struct PostedType {
    /// Such as `policy/v1`.
    pub api_version: Str,
    /// The kind, such as `Eviction`.
    pub kind: Str,
    /// How such a body is decoded and validated.
    pub shape: Arc<dyn Shape>,
}

crate::opaque_debug!(PostedType);

/// The body of a request to an action, and the facts about that request.
pub struct Posted<'a> {
    /// The body, decoded and with defaults.
    pub object: Object,
    /// The namespace of the URL.
    pub namespace: &'a str,
    /// The name in the URL; empty for an action of a whole kind.
    pub name: &'a str,
    /// The user who sends the request.
    pub user: &'a User,
    /// The time, as the API prints it (RFC 3339, whole seconds).
    pub now: &'a str,
    /// Whether the request is a dry run, which stores nothing.
    pub dry_run: bool,
}

crate::opaque_debug!(Posted<'_>);

/// The result of an action. Either is answered with 201.
#[derive(Debug)]
pub enum Acted {
    /// The answer is a Status of success.
    Done,
    /// The answer is this object.
    Object(Object),
}

/// Carries out requests to a subresource or a kind of which nothing is stored.
///
/// Users need the right to `create` the subresource, such as `pods/eviction`. `TypedKind::action` makes one of a function with a
/// typed body.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::{Acted, Action, BoxFuture, ObjectAccess, ObjectRef, Posted, PostedType};
/// use bareboat::api::{Status, value};
///
/// /// Deletes a boat.
/// struct Sink {
///     types: Vec<PostedType>,
/// }
///
/// impl Action for Sink {
///     fn types(&self) -> &[PostedType] {
///         &self.types
///     }
///
///     fn act<'a>(&'a self, posted: Posted<'a>, objects: &'a dyn ObjectAccess) -> BoxFuture<'a, Result<Acted, Status>> {
///         Box::pin(async move {
///             let (namespace, name) = (posted.namespace, posted.name);
///             let boat = ObjectRef { group: "sea.example.com", resource: "boats", namespace, name };
///             objects.delete(boat, &value!({})).await?;
///             Ok(Acted::Done)
///         })
///     }
/// }
/// ```
pub trait Action: Send + Sync {
    /// The types of body it accepts. A body without type meta is read as the first one.
    fn types(&self) -> &[PostedType];

    /// Carries out one request.
    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        objects: &'a dyn ObjectAccess,
    ) -> BoxFuture<'a, Result<Acted, Status>>;
}

impl fmt::Debug for dyn Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Action")
    }
}

/// A reference to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef<'a> {
    /// The API group of the object.
    pub group: &'a str,
    /// The resource of the object, such as `pods`.
    pub resource: &'a str,
    /// The namespace of the object; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The name of the object.
    pub name: &'a str,
}

/// A change that an action makes to an object.
pub struct ObjectEdit<'a> {
    /// The object to change.
    pub target: ObjectRef<'a>,
    /// The field manager to record for the change, and its subresource. `None` records no manager.
    pub manager: Option<(&'a str, &'a str)>,
    /// Computes the new object from the live one. Called again after a conflict with another write.
    pub edit: &'a (dyn Fn(Object) -> Result<Object, Status> + Send + Sync),
    /// Whether the change is only tried, not stored.
    pub dry_run: bool,
}

crate::opaque_debug!(ObjectEdit<'_>);

/// Access to stored objects for an action. The rights of the client do not limit it.
///
/// Objects are given in the storage version. Admission is called for the body of the request only, not for the changes made here.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::{ObjectAccess, ObjectEdit, ObjectRef};
/// use bareboat::api::{Object, Status, value};
///
/// /// Moves every boat of a harbour out of it, and returns how many there were.
/// async fn evacuate(objects: &dyn ObjectAccess, harbour: &str) -> Result<usize, Status> {
///     let boats = objects.list("sea.example.com", "boats", harbour);
///     for boat in &boats {
///         let (group, resource) = ("sea.example.com", "boats");
///         let edit = |mut boat: Object| {
///             boat.map_mut().insert("spec", value!({"moored": false}));
///             Ok(boat)
///         };
///         objects
///             .edit(ObjectEdit {
///                 target: ObjectRef { group, resource, namespace: harbour, name: boat.name() },
///                 manager: Some(("evacuation", "")),
///                 edit: &edit,
///                 dry_run: false,
///             })
///             .await?;
///     }
///     Ok(boats.len())
/// }
/// # let _ = evacuate;
/// ```
pub trait ObjectAccess: Send + Sync {
    /// Reads one object.
    fn get(&self, target: ObjectRef<'_>) -> Option<Object>;

    /// Adds a warning to the answer.
    fn warn(&self, _text: String) {}

    /// Reads all objects of a kind in a namespace.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Object>;

    /// Changes an object and returns the new state.
    fn edit<'a>(&'a self, edit: ObjectEdit<'a>) -> BoxFuture<'a, Result<Object, Status>>;

    /// Deletes an object according to DeleteOptions, honouring finalizers and the grace period.
    fn delete<'a>(
        &'a self,
        target: ObjectRef<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>>;
}
