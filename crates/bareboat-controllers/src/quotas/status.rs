//! Writes what is used into the status of each quota, at most every 100 ms for a namespace.

use super::{Enforcement, QUOTAS, QuotaListener};
use crate::Client;
use crate::controller::Controller;
use crate::identity::Identity;
use crate::kinds::read;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::quantity::Quantity;
use bareboat_api::{Status, Value, value};
use bareboat_server::kinds::catalog::Table;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time between two writes of statuses in a namespace.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// Enforces quotas and writes their statuses. Keys are names of namespaces.
pub(crate) struct QuotaController {
    client: Client,
    enforcement: Enforcement,
    /// When a status in a namespace was last written.
    written: Mutex<HashMap<Arc<str>, Instant>>,
}

impl Controller for QuotaController {
    const NAME: &'static str = "quotas";
    const MANAGER: &'static str = "resourcequota-controller";
    const PARALLEL: usize = 16;
    type Key = Arc<str>;
    type Listener = QuotaListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes("resourcequota-controller")
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (QuotaController, QuotaListener) {
        let enforcement = Enforcement::begin(context.server);
        let listener = QuotaListener {
            namespaces: enforcement.namespaces.clone(),
            queue,
            store: context.server.store().clone(),
        };
        let controller = QuotaController {
            client: context.client.clone(),
            enforcement,
            written: Mutex::default(),
        };
        (controller, listener)
    }

    async fn reconcile(&self, namespace: Arc<str>) -> Verdict {
        let namespaces = &self.enforcement.namespaces;
        let Some(usage) = namespaces.of(&namespace) else {
            self.written.lock().remove(&namespace);
            return Verdict::Done;
        };
        let recent = self.written.lock().get(&namespace).map(Instant::elapsed);
        if let Some(wait) = recent.and_then(|ago| WRITE_INTERVAL.checked_sub(ago)) {
            return Verdict::After(wait);
        }
        let store = self.client.server().store();
        let quotas = usage.current(store, &namespace).quotas.clone();
        if quotas.is_empty() {
            namespaces.remove(&namespace);
        }
        let mut verdict = Verdict::Done;
        for own in quotas {
            let mut used = own.quota.hard.clone();
            for (name, _) in own.quota.hard.iter() {
                used.set(name, own.used.get(name).unwrap_or(Quantity::ZERO));
            }
            let status = value!({
                "hard": (own.quota.hard.to_value()),
                "used": (used.to_value()),
            });
            match self.write(&namespace, &own.name, status).await {
                Ok(()) => {}
                Err(problem) if matches!(problem.code, 404 | 409) => verdict = Verdict::Retry,
                Err(problem) => {
                    tracing::warn!(%namespace, quota = %own.name, status = %problem, "cannot write the status of a quota");
                    verdict = Verdict::Retry;
                }
            }
        }
        verdict
    }
}

impl QuotaController {
    async fn write(&self, namespace: &Arc<str>, name: &str, status: Value) -> Result<(), Status> {
        let store = self.client.server().store();
        let Some(entry) = store.resource(QUOTAS).get(&format!("{namespace}/{name}")) else {
            return Ok(());
        };
        let mut quota = read(&entry)?;
        if quota.get("status") == Some(&status) {
            return Ok(());
        }
        quota.map_mut().insert("status", status);
        let path = format!("/api/v1/namespaces/{namespace}/resourcequotas/{name}/status");
        self.client.update(&path, quota.value()).await?;
        self.written
            .lock()
            .insert(namespace.clone(), Instant::now());
        Ok(())
    }
}
