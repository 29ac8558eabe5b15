//! What is used is told in the status of each quota, a little later while much changes.

use super::{Accounts, QUOTAS};
use crate::Client;
use crate::kinds::read;
use crate::queue::Verdict;
use bareboat_api::quantity::Quantity;
use bareboat_api::{Status, Value, value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a status that was just written is left as it is.
const CALM: Duration = Duration::from_millis(100);

/// Writes statuses.
pub(crate) struct Worker {
    client: Client,
    accounts: Arc<Accounts>,
    written: Mutex<HashMap<Arc<str>, Instant>>,
}

impl Worker {
    pub(crate) fn new(client: &Client, accounts: Arc<Accounts>) -> Worker {
        Worker {
            client: client.named("resourcequota-controller"),
            accounts,
            written: Mutex::default(),
        }
    }

    pub(crate) async fn look(&self, namespace: Arc<str>) -> Verdict {
        let Some(account) = self.accounts.of(&namespace) else {
            self.written.lock().remove(&namespace);
            return Verdict::Done;
        };
        let recent = self.written.lock().get(&namespace).map(Instant::elapsed);
        if let Some(calm) = recent.and_then(|ago| CALM.checked_sub(ago)) {
            return Verdict::After(calm);
        }
        let store = self.client.server().store();
        let quotas = account.open(store, &namespace).quotas.clone();
        if quotas.is_empty() {
            self.accounts.close(&namespace);
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
            match self.tell(&namespace, &own.name, status).await {
                Ok(()) => {}
                Err(problem) if matches!(problem.code, 404 | 409) => verdict = Verdict::Retry,
                Err(problem) => {
                    tracing::warn!(%namespace, quota = %own.name, status = %problem, "the status of a quota could not be written");
                    verdict = Verdict::Retry;
                }
            }
        }
        verdict
    }

    async fn tell(&self, namespace: &Arc<str>, name: &str, status: Value) -> Result<(), Status> {
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
