//! Fills Secrets of the type `kubernetes.io/service-account-token` with a token of their account, and deletes them when
//! the account is gone.
//!
//! The key that signs is not in the API: the program that starts the controllers passes a [`SecretTokenIssuer`].

mod plan;

use crate::Client;
use crate::Options;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{of_store, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use bareboat_tokens::KeyError;
use bareboat_tokens::account::Claims;
use memchr::memmem::Finder;
use plan::{Plan, plan};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const SECRETS: &str = "core/secrets";
const ACCOUNTS: &str = "core/serviceaccounts";
/// The type of Secrets that hold a token.
const TYPE: &str = "kubernetes.io/service-account-token";

/// Called with the namespace and the name of a Secret whose token was used today for the first time.
pub type UseHook = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Signs tokens of Secrets, and reports their use.
///
/// ```
/// # mod bareboat { pub mod controllers { pub use bareboat_controllers::*; } }
/// use bareboat::controllers::tokens::account::{self, Claims};
/// use bareboat::controllers::tokens::{KeyError, SigningKey};
/// use bareboat::controllers::{SecretTokenIssuer, UseHook};
/// use std::time::{SystemTime, UNIX_EPOCH};
///
/// /// Signs with one key, and does not know when tokens are used.
/// struct OneKey(SigningKey);
///
/// impl SecretTokenIssuer for OneKey {
///     fn issue(&self, claims: &Claims) -> Result<String, KeyError> {
///         let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
///         account::issue(&self.0, "https://harbour.example.com", claims, now.as_secs() as i64)
///     }
///
///     fn on_use(&self, _: UseHook) {}
/// }
/// ```
pub trait SecretTokenIssuer: Send + Sync {
    /// Signs a token.
    fn issue(&self, claims: &Claims) -> Result<String, KeyError>;

    /// Sets what is called when a token is used. The function returns at once, and may be called several times a day.
    fn on_use(&self, hook: UseHook);
}

/// How long to wait after an account is gone. Accounts of the same namespace that are deleted meanwhile need no look of
/// their own at its Secrets.
const GATHER: Duration = Duration::from_millis(100);
/// How many Secrets are looked at before others have a turn.
const TURN: usize = 64;

/// Secrets, and what to do with them. A Secret is named by `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// Compare it with its account.
    Fill(Arc<str>),
    /// Note the day of its last use.
    Used(Arc<str>),
    /// Find the Secrets of a namespace whose accounts are gone.
    Sort(Arc<str>),
}

/// Fills and deletes Secrets.
pub(crate) struct TokenFiller {
    client: Client,
    queue: Arc<Queue<Task>>,
    issuer: Option<Arc<dyn SecretTokenIssuer>>,
    ca: Option<String>,
}

impl Controller for TokenFiller {
    const NAME: &'static str = "service-account-tokens";
    const MANAGER: &'static str = "service-account-token-controller";
    const PARALLEL: usize = 4;
    type Key = Task;
    type Listener = SecretListener;

    /// Kubernetes has no account for this: its controller runs with all rights of kube-controller-manager.
    fn identity(_: &Table) -> Identity {
        Identity::own(
            "bareboat-service-account-tokens",
            &["delete update | core | secrets"],
        )
    }

    fn has_work(server: &Server, options: &Options) -> bool {
        let table = server.catalog().table();
        options.secret_tokens.is_some()
            && of_store(&table, SECRETS).is_some()
            && of_store(&table, ACCOUNTS).is_some()
    }

    fn new(context: &mut Context<'_>, queue: Arc<Queue<Task>>) -> (TokenFiller, SecretListener) {
        let filler = TokenFiller {
            client: context.client.clone(),
            queue: queue.clone(),
            issuer: context.options.secret_tokens.clone(),
            ca: context.options.root_ca.clone(),
        };
        if let Some(issuer) = &filler.issuer {
            let queue = queue.clone();
            issuer.on_use(Box::new(move |namespace, name| {
                queue.add(Task::Used(format!("{namespace}/{name}").into()));
            }));
        }
        (filler, SecretListener { queue })
    }

    async fn reconcile(&self, task: Task) -> Verdict {
        let (key, done) = match &task {
            Task::Fill(key) => (key, self.fill(key).await),
            Task::Used(key) => (key, self.note_use(key).await),
            Task::Sort(namespace) => {
                self.sort(namespace).await;
                return Verdict::Done;
            }
        };
        match done {
            Ok(()) => Verdict::Done,
            // It changed meanwhile.
            Err(status) if status.code == 409 => Verdict::Retry,
            Err(status) if status.code == 404 => Verdict::Done,
            // It cannot be filled, such as a Secret that is immutable. An event follows if it changes.
            Err(status) if status.code == 422 => {
                tracing::warn!(secret = %key, %status, "a service account token cannot be stored");
                Verdict::Done
            }
            Err(status) => {
                tracing::warn!(secret = %key, %status, "cannot write a service account token");
                Verdict::Retry
            }
        }
    }
}

impl TokenFiller {
    async fn fill(&self, key: &str) -> Result<(), Status> {
        let Some(mut secret) = self.read(SECRETS, key)? else {
            return Ok(());
        };
        match self.plan(&secret)? {
            Plan::Leave => Ok(()),
            Plan::Remove => {
                let options = value!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "preconditions": {
                        "uid": (secret.uid()),
                        "resourceVersion": (secret.resource_version()),
                    },
                });
                self.client.remove(&path(&secret), &options).await
            }
            Plan::Fill(missing) => {
                let token = match (&missing.claims, &self.issuer) {
                    (Some(claims), Some(issuer)) => {
                        Some(issuer.issue(claims).map_err(Status::internal)?)
                    }
                    _ => None,
                };
                plan::fill(&mut secret, &missing, token.as_deref());
                self.write(&secret).await
            }
        }
    }

    fn plan(&self, secret: &Object) -> Result<Plan, Status> {
        let account = match plan::account_of(secret) {
            Some(name) => self.read(ACCOUNTS, &format!("{}/{name}", secret.namespace()))?,
            None => None,
        };
        Ok(plan(secret, account.as_ref(), self.ca.as_deref()))
    }

    /// Adds those Secrets of a namespace to the queue that something is to be done with.
    async fn sort(&self, namespace: &str) {
        let snapshot = self.client.server().store().resource(SECRETS).snapshot();
        let prefix = format!("{namespace}/");
        for (index, entry) in snapshot.range(&prefix, None).enumerate() {
            let plan = || self.plan(&read(entry)?);
            if may_hold_token(entry) && !matches!(plan(), Ok(Plan::Leave)) {
                self.queue.add(Task::Fill(entry.key().into()));
            }
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn note_use(&self, key: &str) -> Result<(), Status> {
        let Some(mut secret) = self.read(SECRETS, key)? else {
            return Ok(());
        };
        let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        match plan::note_use(&mut secret, &today) {
            false => Ok(()),
            true => self.write(&secret).await,
        }
    }

    async fn write(&self, secret: &Object) -> Result<(), Status> {
        let path = path(secret);
        self.client.update(&path, secret.value()).await.map(|_| ())
    }

    fn read(&self, resource: &str, key: &str) -> Result<Option<Object>, Status> {
        let store = self.client.server().store().resource(resource);
        store.get(key).map(|entry| read(&entry)).transpose()
    }
}

fn path(secret: &Object) -> String {
    let collection = format!("/api/v1/namespaces/{}/secrets", secret.namespace());
    crate::kinds::join(&collection, secret.name())
}

static TYPE_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TYPE));

/// Whether a Secret may be one for a token. `false` is certain.
fn may_hold_token(entry: &Entry) -> bool {
    TYPE_FINDER.find(entry.json()).is_some()
}

/// Notices Secrets for tokens, and accounts that are gone.
pub(crate) struct SecretListener {
    queue: Arc<Queue<Task>>,
}

impl Listener for SecretListener {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(SECRETS).snapshot().range("", None) {
            if may_hold_token(entry) {
                self.queue.add(Task::Fill(entry.key().into()));
            }
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let entry = &event.entry;
        match resource.name() {
            SECRETS if event.kind != EventKind::Deleted && may_hold_token(entry) => {
                self.queue.add(Task::Fill(event.key().into()));
            }
            ACCOUNTS if event.kind == EventKind::Deleted => {
                let namespace = entry.namespace().unwrap_or_default();
                let due = Instant::now() + GATHER;
                self.queue.add_at(Task::Sort(namespace.into()), due);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
