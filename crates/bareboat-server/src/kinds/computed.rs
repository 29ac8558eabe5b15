//! Kinds without a store: functions answer, and the served verbs are those that have a function.

use super::connector::{self, Program, Visit};
use crate::authn::{BadCredentials, FirstOf, TokenUser};
use crate::authz::{self, Authorizer, Decision, UserRules};
use crate::reply::Response;
use crate::request::info::RequestInfo;
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, Kind, User, Verb, Verbs};
use bareboat_api::{Object, Status, Str, Value, value};
use std::sync::Arc;
use tokio::sync::mpsc;

/// A request to a computed kind.
#[derive(Clone, Debug)]
pub struct Question {
    /// The requesting user.
    pub user: Arc<User>,
    /// The API version of the request.
    pub version: Str,
    /// The namespace; empty for none or all.
    pub namespace: Str,
    /// The name of the object; empty for a collection.
    pub name: Str,
    /// The subresource; empty for the object itself.
    pub subresource: Str,
    /// Authentication and authorization on this server.
    pub access: Access,
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
    list: Option<Handler<Question, Vec<Object>>>,
    create: Option<Handler<(Question, Object), Object>>,
    watch: Option<Handler<Question, mpsc::Receiver<ComputedEvent>>>,
    connect: Option<Program>,
}

bareboat_api::opaque_debug!(Computed);

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
            watch: None,
            connect: None,
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

    /// Answers `list`; the server applies selectors and renders tables.
    #[must_use]
    pub fn list<F, R>(mut self, function: F) -> Computed
    where
        F: Fn(Question) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Vec<Object>>> + Send + 'static,
    {
        self.list = handler(function);
        self.with_verb(Verb::List)
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

    pub(crate) async fn do_list(&self, question: Question) -> Answer<Vec<Object>> {
        let list = self.list.as_ref().ok_or_else(|| self.lacks("list"))?;
        let mut objects = list(question.clone()).await?;
        for object in &mut objects {
            self.complete(object, &question);
        }
        Ok(objects)
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

    /// Fills in what the URL determines, so that functions need not repeat it.
    pub(crate) fn complete(&self, object: &mut Object, question: &Question) {
        object.set_type(
            &self.kind.api_version(&question.version),
            &self.kind.names.kind,
        );
    }
}
