//! Which objects a user may see, and field selectors that a function answers.

use super::{BoxFuture, User};
use crate::admission::{Lookup, Right};
use crate::{Object, Status, Str};
use std::fmt;
use std::sync::{Arc, Mutex};

/// Decides which objects of a kind a user sees.
///
/// It is asked once per request. The [`Visibility`] it returns is asked for each object, in the version of the request. An
/// invisible object does not exist for the user: `get` and writes answer 404, lists and their pages leave it out, and a watch sends
/// ADDED when it becomes visible and DELETED when it becomes invisible.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::{BoxFuture, ReadFilter, Reader, Visibility};
/// use bareboat::api::{Object, Value};
///
/// /// Drafts are for users with the right `get posts/drafts`.
/// struct Published;
///
/// impl ReadFilter for Published {
///     fn visibility<'a>(&'a self, reader: &'a Reader<'a>) -> BoxFuture<'a, Visibility> {
///         Box::pin(async move {
///             if reader.may("get", "drafts").await {
///                 return Visibility::All;
///             }
///             let draft = |post: &Object| post.at(&["spec", "draft"]) == Some(&Value::Bool(true));
///             Visibility::only(move |post| !draft(post))
///         })
///     }
/// }
/// ```
pub trait ReadFilter: Send + Sync {
    /// Returns what the user of a request sees.
    fn visibility<'a>(&'a self, reader: &'a Reader<'a>) -> BoxFuture<'a, Visibility>;
}

impl fmt::Debug for dyn ReadFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadFilter")
    }
}

/// Decides whether an object is visible.
pub type Sees = Arc<dyn Fn(&Object) -> bool + Send + Sync>;

/// What a user sees of a kind.
#[derive(Clone)]
pub enum Visibility {
    /// Every object.
    All,
    /// The objects for which the function returns true.
    Only(Sees),
}

crate::opaque_debug!(Visibility);

impl Visibility {
    /// Shows the objects for which a function returns true.
    pub fn only(sees: impl Fn(&Object) -> bool + Send + Sync + 'static) -> Visibility {
        Visibility::Only(Arc::new(sees))
    }
}

/// A right that a read filter asked for, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRight {
    /// The verb.
    pub verb: Str,
    /// The subresource; empty for the object itself.
    pub subresource: Str,
    /// Whether the user has the right.
    pub allowed: bool,
}

/// The user of a request that reads objects, and what the request is about.
pub struct Reader<'a> {
    /// The user.
    pub user: &'a User,
    /// The API group of the kind.
    pub group: &'a str,
    /// The resource of the kind, such as `posts`.
    pub resource: &'a str,
    /// The namespace of the request; empty for all namespaces and for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The name of the object; empty for a collection.
    pub name: &'a str,
    objects: &'a dyn Lookup,
    warnings: Mutex<Vec<String>>,
    asked: Mutex<Vec<AskedRight>>,
}

crate::opaque_debug!(Reader<'_>);

impl<'a> Reader<'a> {
    /// A user who reads objects of a kind in a namespace.
    pub fn new(
        user: &'a User,
        (group, resource): (&'a str, &'a str),
        namespace: &'a str,
        name: &'a str,
        objects: &'a dyn Lookup,
    ) -> Reader<'a> {
        Reader {
            user,
            group,
            resource,
            namespace,
            name,
            objects,
            warnings: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Returns whether the user has a right on the kind or on one of its subresources, in the namespace of the request. The
    /// subresource need not be served. A watch ends when the answer changes, so that its client lists again.
    pub async fn may(&self, verb: &str, subresource: &str) -> bool {
        let right = Right {
            verb,
            group: self.group,
            resource: self.resource,
            subresource,
            namespace: self.namespace,
            name: self.name,
        };
        let allowed = self.objects.may(self.user, right).await;
        if let Ok(mut asked) = self.asked.lock() {
            asked.push(AskedRight {
                verb: Str::new(verb),
                subresource: Str::new(subresource),
                allowed,
            });
        }
        allowed
    }

    /// Read access to other objects of the server, which checks no rights.
    pub fn objects(&self) -> &'a dyn Lookup {
        self.objects
    }

    /// Adds a warning to the answer, for example that some objects are not up to date.
    pub fn warn(&self, text: impl Into<String>) {
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.push(text.into());
        }
    }

    /// Returns the rights that were asked for, and the warnings.
    pub fn finish(self) -> (Vec<AskedRight>, Vec<String>) {
        let asked = self.asked.into_inner().unwrap_or_default();
        (asked, self.warnings.into_inner().unwrap_or_default())
    }
}

/// Completes an object that is read by its name.
pub type OnGet = Arc<dyn Fn(Object) -> BoxFuture<'static, Result<Object, Status>> + Send + Sync>;

/// What a search looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// The value in the field selector.
    pub text: Str,
    /// The namespace of the request; empty for all.
    pub namespace: Str,
}

type Find = Arc<dyn Fn(Sought) -> BoxFuture<'static, Result<Vec<String>, Status>> + Send + Sync>;

/// A name in field selectors whose matches a function finds, such as the full-text index of a database:
/// `kubectl get posts --field-selector text=harbour`.
///
/// All other selectors, pages and read filters apply to what the function finds. A search answers lists; a watch with it gets 400.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::Search;
///
/// let search = Search::new("text", |sought| async move {
///     println!("looking for {} in {}", sought.text, sought.namespace);
///     Ok(vec!["default/hello".to_owned()])
/// });
/// assert_eq!(search.field, "text");
/// ```
#[derive(Clone)]
pub struct Search {
    /// The name in field selectors.
    pub field: Str,
    /// Returns the keys of the objects that match: `namespace/name`, or `name` if the kind is cluster-scoped.
    pub find: Find,
}

impl Search {
    /// A search for a name in field selectors.
    pub fn new<F, R>(field: &str, find: F) -> Search
    where
        F: Fn(Sought) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<String>, Status>> + Send + 'static,
    {
        Search {
            field: Str::new(field),
            find: Arc::new(move |sought| Box::pin(find(sought))),
        }
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)
    }
}
