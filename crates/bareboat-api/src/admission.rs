//! Admission: the interfaces of plugins that change or reject a write after it was authorized.

use crate::kind::{BoxFuture, Kind, Reservations, User};
use crate::{Object, Status, Str, Value};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The operation under review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// A connection to a subresource, such as `pods/exec`. The object is the options of the connection.
    Connect,
}

impl Operation {
    /// Returns the name used in the API.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// Returns whether the operation stores an object: it is a creation or an update.
    pub fn writes(self) -> bool {
        matches!(self, Operation::Create | Operation::Update)
    }
}

/// The options of a request, as the object that clients and webhooks know: CreateOptions, UpdateOptions, PatchOptions or
/// DeleteOptions.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::admission::{RequestOptions, Review};
/// use bareboat::api::{Value, value};
///
/// /// The options of a request that the program makes itself.
/// struct Forced;
///
/// impl RequestOptions for Forced {
///     fn object(&self) -> Option<Value> {
///         Some(value!({"apiVersion": "meta.k8s.io/v1", "kind": "PatchOptions", "force": true}))
///     }
/// }
///
/// /// What a plug-in may ask.
/// fn is_forced(review: &Review<'_>) -> bool {
///     review.options.object().is_some_and(|options| options.at(&["force"]) == Some(&Value::Bool(true)))
/// }
/// # assert!(Forced.object().is_some());
/// # let _: fn(&Review<'_>) -> bool = is_forced;
/// ```
pub trait RequestOptions: Send + Sync {
    /// Builds the object; none if the request has no options.
    fn object(&self) -> Option<Value>;
}

/// No options.
impl RequestOptions for () {
    fn object(&self) -> Option<Value> {
        None
    }
}

/// A write under review.
pub struct Review<'a> {
    /// Whether the object is created, updated, deleted or connected to.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: &'a Kind,
    /// The API version of the request.
    pub version: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The object's name; empty for mutators while a name is still to be generated.
    pub name: &'a str,
    /// The new object; none for deletions. For a subresource with its own type, the object of that type, except that
    /// in-process plug-ins see the whole object of a Scale. For a connection, its options.
    pub object: Option<&'a mut Object>,
    /// The stored object before the write; none for creations and connections.
    pub old: Option<&'a Object>,
    /// The options of the request.
    pub options: &'a dyn RequestOptions,
    /// The user who sent the request.
    pub user: &'a User,
    /// Whether this is a dry run: nothing will be stored.
    pub dry_run: bool,
    /// Warnings to send with the answer.
    pub warnings: Vec<String>,
    /// Remarks for the audit event of the request, by name.
    pub audit_annotations: Vec<(String, String)>,
    /// Reservations made for this write, such as of quota; dropped if the write fails.
    pub reservations: Reservations,
}

crate::opaque_debug!(Review<'_>);

impl Review<'_> {
    /// Returns apiVersion and kind of the object, or of the old one if there is no new one.
    pub fn object_type(&self) -> (&str, &str) {
        let object = self.object.as_deref().or(self.old);
        object.map_or(("", ""), |object| (object.api_version(), object.kind()))
    }

    /// Returns the namespace as hooks see it: a Namespace is in the namespace of its own name.
    pub fn attributed_namespace(&self) -> &str {
        match self.kind.policy.is_namespace {
            true => self.name,
            false => self.namespace,
        }
    }
}

/// The few facts about an object that can be read without decoding all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// The uid of the object.
    pub uid: Str,
    /// Whether the deletion of the object has begun.
    pub terminating: bool,
}

/// Returns the answer of a plugin that decides without waiting. Accepting a write allocates nothing.
pub fn decided<'a>(outcome: Result<(), Status>) -> BoxFuture<'a, Result<(), Status>> {
    match outcome {
        // A box of a type without a size is not on the heap.
        Ok(()) => Box::pin(Accepted),
        refused => Box::pin(std::future::ready(refused)),
    }
}

struct Accepted;

impl Future for Accepted {
    type Output = Result<(), Status>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }
}

/// A right on a resource that an admission plugin checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Right<'a> {
    /// The verb, such as `get`.
    pub verb: &'a str,
    /// The API group; empty for core.
    pub group: &'a str,
    /// The resource, such as `pods`.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The name of the object; empty for all.
    pub name: &'a str,
}

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResource {
    /// The plural, as in URLs.
    pub plural: Str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// Read access to other objects, for admission, authentication and computed kinds.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::admission::Lookup;
///
/// /// Returns whether a namespace has a label.
/// fn is_large(objects: &dyn Lookup, namespace: &str) -> bool {
///     let found = objects.get("core/namespaces", "", namespace);
///     found.is_some_and(|namespace| namespace.label("large").is_some())
/// }
/// # drop(is_large);
/// ```
pub trait Lookup: Send + Sync {
    /// A few facts about an object; `store` is the resource in storage, such as `core/namespaces`.
    fn brief(&self, store: &str, namespace: &str, name: &str) -> Option<Brief>;

    /// An object in the version it is stored in.
    fn get(&self, store: &str, namespace: &str, name: &str) -> Option<Object>;

    /// The objects of a namespace in the versions they are stored in, sorted by name.
    fn list(&self, store: &str, namespace: &str) -> Vec<Object>;

    /// The objects of a namespace that have a label with this value.
    fn list_labelled(
        &self,
        store: &str,
        namespace: &str,
        (label, value): (&str, &str),
    ) -> Vec<Object> {
        let mut objects = self.list(store, namespace);
        objects.retain(|object| object.label(label) == Some(value));
        objects
    }

    /// At most so many objects of a namespace, sorted by name, and how many there are. Reading many of them may move the
    /// request off the runtime's workers.
    fn list_first<'a>(
        &'a self,
        store: &'a str,
        namespace: &'a str,
        most: usize,
    ) -> BoxFuture<'a, (Vec<Object>, usize)> {
        let mut objects = self.list(store, namespace);
        let total = objects.len();
        objects.truncate(most);
        Box::pin(std::future::ready((objects, total)))
    }

    /// The resource of a kind; none if the group does not have it in any version.
    fn resource(&self, _group: &str, _kind: &str) -> Option<ServedResource> {
        None
    }

    /// Whether a user has a right. Members of `system:masters` have all of them.
    fn may<'a>(&'a self, user: &'a User, _right: Right<'a>) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(user.is_in("system:masters")))
    }
}

/// A plugin that may change or reject a write; runs before validation.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::admission::{Lookup, Mutator, Operation, Review};
/// use bareboat::api::kind::BoxFuture;
/// use bareboat::api::{Status, Value};
///
/// /// Labels new objects with the name of their creator.
/// struct CreatedBy;
///
/// impl Mutator for CreatedBy {
///     fn name(&self) -> &'static str {
///         "CreatedBy"
///     }
///
///     fn admit<'a>(
///         &'a self,
///         review: &'a mut Review<'_>,
///         _: &'a dyn Lookup,
///     ) -> BoxFuture<'a, Result<(), Status>> {
///         if let (Operation::Create, Some(object)) = (review.operation, &mut review.object) {
///             let labels = object.metadata_mut().object_mut("labels");
///             labels.insert("created-by", Value::string(review.user.name.as_str()));
///         }
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
/// ```
pub trait Mutator: Send + Sync {
    /// Returns the plugin's name, for logs and errors.
    fn name(&self) -> &'static str;

    /// Changes the object, or rejects the write.
    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// A plugin that may reject a write; runs on the object that would be stored.
///
/// It has what the expressions of an admission policy have: the [`Review`] is `object`, `oldObject` and `request`, and
/// [`Lookup`] gives it `namespaceObject`, `params` and `authorizer`.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::Status;
/// use bareboat::api::admission::{Lookup, Review, Right, Validator};
/// use bareboat::api::kind::BoxFuture;
///
/// /// Only those who may update a namespace write into one that is labelled `frozen`.
/// struct Frozen;
///
/// impl Validator for Frozen {
///     fn name(&self) -> &'static str {
///         "Frozen"
///     }
///
///     fn validate<'a>(
///         &'a self,
///         review: &'a mut Review<'_>,
///         lookup: &'a dyn Lookup,
///     ) -> BoxFuture<'a, Result<(), Status>> {
///         Box::pin(async move {
///             let namespace = lookup.get("core/namespaces", "", review.namespace);
///             if namespace.is_none_or(|namespace| namespace.label("frozen").is_none()) {
///                 return Ok(());
///             }
///             let right = Right {
///                 verb: "update",
///                 resource: "namespaces",
///                 name: review.namespace,
///                 ..Right::default()
///             };
///             if lookup.may(review.user, right).await {
///                 return Ok(());
///             }
///             let what = review.kind.group_resource();
///             Err(Status::forbidden(what, review.name, "the namespace is frozen"))
///         })
///     }
/// }
/// ```
pub trait Validator: Send + Sync {
    /// Returns the plugin's name, for logs and errors.
    fn name(&self) -> &'static str;

    /// Accepts or rejects the write.
    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>>;
}
