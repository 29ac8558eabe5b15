//! Keeps a service account `default` in every namespace.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{NAMESPACES, is_active};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::value;
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Event, EventKind, Resource, Store};
use std::sync::Arc;

const ACCOUNTS: &str = "core/serviceaccounts";
const NAME: &str = "default";

/// Creates the accounts. Keys are names of namespaces.
pub(crate) struct AccountCreator {
    client: Client,
}

impl Controller for AccountCreator {
    const NAME: &'static str = "service-accounts";
    const MANAGER: &'static str = "service-account-controller";
    const PARALLEL: usize = 16;
    type Key = Arc<str>;
    type Listener = AccountListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes("service-account-controller")
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        let table = server.catalog().table();
        table.find("", "serviceaccounts").is_some()
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (AccountCreator, AccountListener) {
        let client = context.client.clone();
        (AccountCreator { client }, AccountListener { queue })
    }

    async fn reconcile(&self, namespace: Arc<str>) -> Verdict {
        let server = self.client.server();
        let accounts = server.store().resource(ACCOUNTS);
        let exists = accounts.get(&format!("{namespace}/{NAME}")).is_some();
        if exists || !is_active(server, &namespace) {
            return Verdict::Done;
        }
        let account = value!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": (&*namespace)},
        });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        match self.client.ensure(&path, &account).await {
            Ok(()) => Verdict::Done,
            Err(_) if !is_active(server, &namespace) => Verdict::Done,
            Err(status) => {
                tracing::warn!(%namespace, %status, "cannot create the default service account");
                Verdict::Retry
            }
        }
    }
}

/// Notices namespaces that may have no default account.
pub(crate) struct AccountListener {
    queue: Arc<Queue<Arc<str>>>,
}

impl Listener for AccountListener {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(NAMESPACES).snapshot().range("", None) {
            self.queue.add(entry.key().into());
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let entry = &event.entry;
        match resource.name() {
            NAMESPACES if event.kind == EventKind::Added => self.queue.add(event.key().into()),
            ACCOUNTS if event.kind == EventKind::Deleted && entry.name() == NAME => {
                self.queue.add(entry.namespace().unwrap_or_default().into());
            }
            _ => {}
        }
    }
}
