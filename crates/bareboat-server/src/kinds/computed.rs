//! Kinds without a store: functions answer, and the served verbs are those that have a function.

use super::connector::{self, Program, Visit};
use crate::authn::{BadCredentials, FirstOf, TokenUser};
use crate::authz::{self, Authorizer, Decision, UserRules};
use crate::reply::Response;
use crate::request::ask::Ask;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, Kind, Names, Scope, User, Verb, Verbs, Version};
use bareboat_api::{Object, Status, Str, Value, value};
use bareboat_schema::{CustomShape, SchemaCache};
use std::sync::Arc;
use tokio::sync::mpsc;

/// A request to a computed kind.
#[derive(Clone, Debug)]
pub struct Question {
    /// The requesting user.
    pub user: Arc<User>,
    /// The API version of the request.
    pub version: Str,
    /// The resource, such as `pods`.
    pub resource: Str,
    /// The namespace; empty for none or all.
    pub namespace: Str,
    /// The name of the object; empty for a collection.
    pub name: Str,
    /// The subresource; empty for the object itself.
    pub subresource: Str,
    /// The query of the URL: `labelSelector`, `fieldSelector`, `limit`, `continue`, `resourceVersion` and so on.
    pub query: Query,
    /// Authentication and authorization on this server.
    pub access: Access,
    /// Takes warnings for the client.
    pub(crate) warnings: Warned,
}

/// The request that warnings are added to.
#[derive(Clone)]
pub(crate) struct Warned(pub(crate) Arc<authz::Authorized<Ask>>);

bareboat_api::opaque_debug!(Warned);

impl Question {
    /// Adds a warning to the answer.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.0.warnings.add(text);
    }
}

/// Authentication and authorization, for review kinds.
#[derive(Clone)]
pub struct Access {
    pub(crate) authn: FirstOf,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) objects: Arc<dyn Lookup>,
}

impl Access {
    /// Authenticates a bearer token. Returns its user and those of the audiences it is valid for; without audiences,
    /// the API server's own is meant. The error is the reason for refusing the token.
    pub async fn who(
        &self,
        token: &str,
        audiences: &[Str],
    ) -> Result<Option<TokenUser>, BadCredentials> {
        self.authn
            .review_token(token, audiences, self.objects.as_ref())
            .await
    }

    /// Returns read access to the objects of this server. It checks no permissions.
    pub fn objects(&self) -> &dyn Lookup {
        self.objects.as_ref()
    }

    /// Decides whether a user may perform a request, with a reason.
    pub async fn may(&self, user: &User, info: &RequestInfo) -> Decision {
        authz::explain(self.authorizer.as_ref(), user, info).await
    }

    /// Checks that a user may perform a request; the error is the answer for those who may not.
    pub async fn check(&self, user: &User, info: &RequestInfo) -> Answer<()> {
        authz::also(self.authorizer.as_ref(), user, info).await
    }

    /// Lists what a user may do in a namespace; `None` if the authorizer cannot list rules.
    pub fn rules(&self, user: &User, namespace: &str) -> Option<UserRules> {
        if authz::is_master(user) {
            let everything = |rule: Value| vec![rule];
            return Some(UserRules {
                resources: everything(
                    value!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
                ),
                urls: everything(value!({"verbs": ["*"], "nonResourceURLs": ["*"]})),
                ..UserRules::default()
            });
        }
        self.authorizer.rules(user, namespace)
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Access")
    }
}

/// An event that a computed kind sends to a watcher.
#[derive(Clone, Debug)]
pub enum ComputedEvent {
    /// A new object.
    Added(Object),
    /// A changed object.
    Modified(Object),
    /// A deleted object, in its last state.
    Deleted(Object),
    /// The resourceVersion up to which the client has seen everything.
    Bookmark(Str),
    /// An error, which ends the watch. [`Status::expired`] makes clients list again.
    Error(Status),
}

/// A list of objects, or one page of it.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The objects. The server applies the selectors of the request.
    pub items: Vec<Object>,
    /// The version of the list, from which a watch can go on; empty for none.
    pub resource_version: Str,
    /// The token for the next page; empty at the end.
    pub continue_token: String,
    /// How many objects follow this page, if that is known.
    pub remaining: Option<usize>,
}

impl From<Vec<Object>> for Listing {
    fn from(items: Vec<Object>) -> Listing {
        Listing {
            items,
            ..Listing::default()
        }
    }
}

/// A change of an object by PUT or PATCH.
pub struct Change(pub(crate) ChangeFunction);

pub(crate) type ChangeFunction =
    Box<dyn Fn(Object) -> BoxFuture<'static, Answer<Object>> + Send + Sync>;

bareboat_api::opaque_debug!(Change);

impl Change {
    /// Computes the new object from the live one, after validation and admission. It may be called again with a newer object.
    pub async fn apply(&self, live: Object) -> Answer<Object> {
        (self.0)(live).await
    }
}

type Answer<T> = Result<T, Status>;
type Handler<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, Answer<O>> + Send + Sync>;

/// A kind without a store.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
/// use bareboat::api::{Object, Status, kind::Kind, value};
/// use bareboat::server::Computed;
///
/// fn tides(kind: Kind) -> Computed {
///     Computed::new(kind).list(|question| async move {
///         let tide = value!({"metadata": {"name": "high", "namespace": (question.namespace)}});
///         let tide = Object::try_from(tide).map_err(|_| Status::internal("this is no object"))?;
///         Ok(vec![tide])
///     })
/// }
/// ```
pub struct Computed {
    kind: Arc<Kind>,
    get: Option<Handler<Question, Object>>,
    list: Option<Handler<Question, Listing>>,
    create: Option<Handler<(Question, Object), Object>>,
    update: Option<Handler<(Question, Change), Object>>,
    delete: Option<Handler<Question, Object>>,
    watch: Option<Handler<Question, mpsc::Receiver<ComputedEvent>>>,
    connect: Option<Program>,
    open: Option<Program>,
}

bareboat_api::opaque_debug!(Computed);

/// The plural of the kind that stands for all resources of a group that have no kind.
pub(crate) const ANY_RESOURCE: &str = "*";

fn handler<I, O, F, R>(function: F) -> Option<Handler<I, O>>
where
    F: Fn(I) -> R + Send + Sync + 'static,
    R: Future<Output = Answer<O>> + Send + 'static,
{
    Some(Arc::new(move |input| Box::pin(function(input))))
}

impl Computed {
    /// A kind without verbs.
    pub fn new(mut kind: Kind) -> Computed {
        kind.verbs = Verbs::NONE;
        Computed {
            kind: Arc::new(kind),
            get: None,
            list: None,
            create: None,
            update: None,
            delete: None,
            watch: None,
            connect: None,
            open: None,
        }
    }

    /// A group whose requests a function answers, whatever their resource is: for APIs with paths that no kind has, such as
    /// `custom.metrics.k8s.io`. The first version is preferred. Discovery lists the versions without resources. Kinds of the
    /// same group are served as usual. Requests are authorized by the names in their paths.
    ///
    /// ```
    /// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::api::value;
    /// use bareboat::server::{Computed, reply};
    ///
    /// let tides = Computed::group("tides.example.com", &["v1"], |visit| async move {
    ///     let answer = value!({"harbour": (visit.question.resource), "metres": 2});
    ///     Ok(reply::json(http::StatusCode::OK, &answer))
    /// });
    /// # drop(tides);
    /// ```
    pub fn group<F, R>(group: &str, versions: &[&str], function: F) -> Computed
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Response>> + Send + 'static,
    {
        let names = Names::new(ANY_RESOURCE, "Any");
        let mut kind = Kind::new(group, names, Scope::Namespaced).into_custom();
        for name in versions {
            kind = kind.with_version(Version {
                name: Str::new(name),
                served: true,
                deprecation: None,
                shape: Arc::new(any_shape()),
                columns: Arc::new([]),
                subresources: Vec::new(),
                selectable: Vec::new(),
            });
        }
        Computed {
            open: Some(connector::program(function)),
            ..Computed::new(kind)
        }
    }

    fn with_verb(mut self, verb: Verb) -> Computed {
        let verbs: Vec<Verb> = self.kind.verbs.iter().chain([verb]).collect();
        Arc::make_mut(&mut self.kind).verbs = Verbs::of(&verbs);
        self
    }

    /// Answers `get`.
    #[must_use]
    pub fn get<F, R>(mut self, function: F) -> Computed
    where
        F: Fn(Question) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Object>> + Send + 'static,
    {
        self.get = handler(function);
        self.with_verb(Verb::Get)
    }

    /// Answers `list` with a [`Listing`] or a `Vec` of objects; the server applies selectors and renders tables.
    #[must_use]
    pub fn list<F, R, L>(mut self, function: F) -> Computed
    where
        F: Fn(Question) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<L>> + Send + 'static,
        L: Into<Listing>,
    {
        self.list = Some(Arc::new(move |question| {
            let listing = function(question);
            Box::pin(async move { listing.await.map(Into::into) })
        }));
        self.with_verb(Verb::List)
    }

    /// Answers `update` and `patch`. The function reads the live object, applies the [`Change`] and stores the result.
    ///
    /// ```
    /// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::api::{Object, kind::Kind};
    /// use bareboat::server::Computed;
    /// use std::sync::Arc;
    /// use tokio::sync::Mutex;
    ///
    /// fn one_tide(kind: Kind, tide: Arc<Mutex<Object>>) -> Computed {
    ///     Computed::new(kind).update(move |(_question, change)| {
    ///         let tide = tide.clone();
    ///         async move {
    ///             let mut tide = tide.lock().await;
    ///             *tide = change.apply(tide.clone()).await?;
    ///             Ok(tide.clone())
    ///         }
    ///     })
    /// }
    /// # drop(one_tide);
    /// ```
    #[must_use]
    pub fn update<F, R>(mut self, function: F) -> Computed
    where
        F: Fn((Question, Change)) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Object>> + Send + 'static,
    {
        self.update = handler(function);
        self.with_verb(Verb::Update).with_verb(Verb::Patch)
    }

    /// Answers `delete` with the last state of the object. Admission is not called: there is no stored object to show it.
    #[must_use]
    pub fn delete<F, R>(mut self, function: F) -> Computed
    where
        F: Fn(Question) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Object>> + Send + 'static,
    {
        self.delete = handler(function);
        self.with_verb(Verb::Delete)
    }

    /// Answers `create`: reviews, actions, anything that is posted.
    #[must_use]
    pub fn create<F, R>(mut self, function: F) -> Computed
    where
        F: Fn((Question, Object)) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Object>> + Send + 'static,
    {
        self.create = handler(function);
        self.with_verb(Verb::Create)
    }

    /// Answers `watch` with a channel of changes; the stream ends when the channel closes.
    #[must_use]
    pub fn watch<F, R>(mut self, function: F) -> Computed
    where
        F: Fn(Question) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<mpsc::Receiver<ComputedEvent>>> + Send + 'static,
    {
        self.watch = handler(function);
        self.with_verb(Verb::Watch)
    }

    /// Answers requests to connect subresources with the raw HTTP request, for upgrades and streams.
    #[must_use]
    pub fn connect<F, R>(mut self, function: F) -> Computed
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Response>> + Send + 'static,
    {
        self.connect = Some(connector::program(function));
        self
    }

    /// Returns the data of the kind.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    fn lacks(&self, verb: &str) -> Status {
        Status::verb_not_supported(self.kind.group_resource(), verb)
    }

    pub(crate) async fn do_get(&self, question: Question) -> Answer<Object> {
        let get = self.get.as_ref().ok_or_else(|| self.lacks("get"))?;
        let mut object = get(question.clone()).await?;
        self.complete(&mut object, &question);
        Ok(object)
    }

    pub(crate) async fn do_list(&self, question: Question) -> Answer<Listing> {
        let list = self.list.as_ref().ok_or_else(|| self.lacks("list"))?;
        let mut listing = list(question.clone()).await?;
        for object in &mut listing.items {
            self.complete(object, &question);
        }
        Ok(listing)
    }

    pub(crate) async fn do_update(&self, question: Question, change: Change) -> Answer<Object> {
        let update = self.update.as_ref().ok_or_else(|| self.lacks("update"))?;
        let mut object = update((question.clone(), change)).await?;
        self.complete(&mut object, &question);
        Ok(object)
    }

    pub(crate) async fn do_delete(&self, question: Question) -> Answer<Object> {
        let delete = self.delete.as_ref().ok_or_else(|| self.lacks("delete"))?;
        delete(question).await
    }

    pub(crate) async fn do_create(&self, question: Question, object: Object) -> Answer<Object> {
        let create = self.create.as_ref().ok_or_else(|| self.lacks("create"))?;
        let mut object = create((question.clone(), object)).await?;
        self.complete(&mut object, &question);
        Ok(object)
    }

    pub(crate) async fn do_watch(
        &self,
        question: Question,
    ) -> Answer<mpsc::Receiver<ComputedEvent>> {
        let watch = self.watch.as_ref().ok_or_else(|| self.lacks("watch"))?;
        watch(question).await
    }

    pub(crate) async fn do_connect(&self, visit: Visit) -> Answer<Response> {
        let connect = self.connect.as_ref().ok_or_else(Status::no_such_route)?;
        connect(visit).await
    }

    pub(crate) async fn do_open(&self, visit: Visit) -> Answer<Response> {
        let open = self.open.as_ref().ok_or_else(Status::no_such_route)?;
        open(visit).await
    }

    /// Fills in what the URL determines, so that functions need not repeat it.
    pub(crate) fn complete(&self, object: &mut Object, question: &Question) {
        object.set_type(
            &self.kind.api_version(&question.version),
            &self.kind.names.kind,
        );
    }
}

/// The shape of anything.
fn any_shape() -> CustomShape {
    let schema = value!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let compiled = SchemaCache::new().parse(&schema);
    let compiled = compiled.expect("a schema of two keywords is valid");
    CustomShape::new(compiled, None, Arc::new(move || Some(schema.clone())))
}
