//! Kinds without a store: a program answers, and the verbs it has are the verbs served.

use super::connector::{self, Program, Visit};
use crate::authn::{BadCredentials, FirstOf, TokenUser};
use crate::authz::{self, Authorizer, Decision, UserRules};
use crate::reply::Response;
use crate::request::info::RequestInfo;
use bareboat_api::admission::World;
use bareboat_api::kind::{BoxFuture, Kind, User, Verb, Verbs};
use bareboat_api::{Object, Status, Str, Value, value};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What a computed kind is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who asks.
    pub user: Arc<User>,
    /// In which version.
    pub version: Str,
    /// In which namespace; empty for none or all.
    pub namespace: Str,
    /// For which object; empty for all.
    pub name: Str,
    /// For which part; empty for the object itself.
    pub subresource: Str,
    /// Who is who and who may do what on this server.
    pub access: Access,
}

/// Who is who and who may do what, for kinds that answer such questions.
#[derive(Clone)]
pub struct Access {
    pub(crate) authn: FirstOf,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) objects: Arc<dyn World>,
}

impl Access {
    /// Whose bearer token this is, and for which of the audiences it is good; the API server is meant when none is
    /// named. An error says why a token is refused.
    pub async fn who(
        &self,
        token: &str,
        audiences: &[Str],
    ) -> Result<Option<TokenUser>, BadCredentials> {
        self.authn
            .review_token(token, audiences, self.objects.as_ref())
            .await
    }

    /// Whether a user may do something, and why.
    pub async fn may(&self, user: &User, info: &RequestInfo) -> Decision {
        authz::explain(self.authorizer.as_ref(), user, info).await
    }

    /// What a user may do in a namespace; nothing if the authorizer cannot list it.
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

/// One change that a computed kind reports to a watcher.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new object.
    Added(Object),
    /// A changed one.
    Modified(Object),
    /// One that is gone, as it last was.
    Deleted(Object),
}

type Answer<T> = Result<T, Status>;
type Handler<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, Answer<O>> + Send + Sync>;

/// A kind without a store.
///
/// ```
/// use bareboat_api::{Object, Status, kind::Kind, value};
/// use bareboat_server::Computed;
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
    watch: Option<Handler<Question, mpsc::Receiver<Change>>>,
    connect: Option<Program>,
}

fn handler<I, O, F, R>(function: F) -> Option<Handler<I, O>>
where
    F: Fn(I) -> R + Send + Sync + 'static,
    R: Future<Output = Answer<O>> + Send + 'static,
{
    Some(Arc::new(move |input| Box::pin(function(input))))
}

impl Computed {
    /// A kind that does nothing yet.
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

    /// Answers `list`; selectors and tables are applied by the server.
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
        R: Future<Output = Answer<mpsc::Receiver<Change>>> + Send + 'static,
    {
        self.watch = handler(function);
        self.with_verb(Verb::Watch)
    }

    /// Answers requests to subresources that are connections, as they are: upgrades, streams, whatever HTTP can do.
    #[must_use]
    pub fn connect<F, R>(mut self, function: F) -> Computed
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = Answer<Response>> + Send + 'static,
    {
        self.connect = Some(connector::program(function));
        self
    }

    /// The data of the kind.
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

    pub(crate) async fn do_watch(&self, question: Question) -> Answer<mpsc::Receiver<Change>> {
        let watch = self.watch.as_ref().ok_or_else(|| self.lacks("watch"))?;
        watch(question).await
    }

    pub(crate) async fn do_connect(&self, visit: Visit) -> Answer<Response> {
        let connect = self.connect.as_ref().ok_or_else(Status::no_such_route)?;
        connect(visit).await
    }

    /// Programs need not repeat what the URL already says.
    pub(crate) fn complete(&self, object: &mut Object, question: &Question) {
        object.set_type(
            &self.kind.api_version(&question.version),
            &self.kind.names.kind,
        );
    }
}
