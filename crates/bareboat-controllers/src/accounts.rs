//! Keeps a service account `default` in every namespace.

use crate::Client;
use crate::controller::Controller;
use crate::every_namespace::EveryNamespace;
use crate::identity::Identity;
use crate::kinds::is_active;
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::value;
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
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
    type Listener = EveryNamespace;

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
    ) -> (AccountCreator, EveryNamespace) {
        let client = context.client.clone();
        let listener = EveryNamespace {
            queue,
            resource: ACCOUNTS,
            name: NAME,
        };
        (AccountCreator { client }, listener)
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
