//! Admission: who may still change or refuse a write after it was authorized.

use crate::kind::{BoxFuture, Holds, Kind, User};
use crate::{Object, Status, Str};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object removed.
    Delete,
    /// A connection to a subresource.
    Connect,
}

impl Operation {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// A write under review.
pub struct Review<'a> {
    /// What is being done.
    pub operation: Operation,
    /// To what kind.
    pub kind: &'a Kind,
    /// In which version.
    pub version: &'a str,
    /// To which part of it; empty for the object itself.
    pub subresource: &'a str,
    /// In which namespace; empty for none.
    pub namespace: &'a str,
    /// To which object; empty while a name is still to be generated.
    pub name: &'a str,
    /// The new object; none for deletions.
    pub object: Option<&'a mut Object>,
    /// The object before; none for creations.
    pub old: Option<&'a Object>,
    /// By whom.
    pub user: &'a User,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// What to tell the client beside the answer.
    pub warnings: Vec<String>,
    /// What is taken up front for this write.
    pub holds: Holds,
}

/// What is known of an object without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// Its uid.
    pub uid: Str,
    /// Whether its deletion has begun.
    pub terminating: bool,
}

/// A right on a resource that admission asks about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Right<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group; empty for core.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The name of the object; empty for all.
    pub name: &'a str,
}

/// The other objects, as far as admission may look at them.
pub trait World: Send + Sync {
    /// The short of an object; `store` is the resource in storage, such as `core/namespaces`.
    fn brief(&self, store: &str, namespace: &str, name: &str) -> Option<Brief>;

    /// An object as it is stored.
    fn get(&self, store: &str, namespace: &str, name: &str) -> Option<Object>;

    /// The objects of a namespace as they are stored, by name.
    fn list(&self, store: &str, namespace: &str) -> Vec<Object>;

    /// Whether a user has a right. Members of `system:masters` have all of them.
    fn may<'a>(&'a self, user: &'a User, _right: Right<'a>) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(user.is_in("system:masters")))
    }
}

/// May change a write, or refuse it; runs before validation.
pub trait Mutator: Send + Sync {
    /// What it is called, in logs and errors.
    fn name(&self) -> &'static str;

    /// Changes or refuses.
    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// May refuse a write; runs on what would be stored.
pub trait Validator: Send + Sync {
    /// What it is called, in logs and errors.
    fn name(&self) -> &'static str;

    /// Refuses, or not.
    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>>;
}
