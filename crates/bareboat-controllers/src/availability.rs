//! Keeps the condition `Available` of APIServices: whether the Service exists and has endpoints, and whether the server
//! behind it answers.
//!
//! A server that answers is asked every 30 seconds over a kept connection; one that does not, after a growing wait. A
//! change of an APIService, a Service or its endpoints is looked at once.

mod check;
mod listener;
mod metrics;

use crate::Client;
use crate::conditions::Condition;
use crate::controller::Controller;
use crate::identity::Identity;
use crate::kinds::{join, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, Value};
use bareboat_server::Server;
use bareboat_server::aggregation::STORE;
use bareboat_server::kinds::catalog::Table;
use listener::AvailabilityListener;
use metrics::AvailabilityMetrics;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// How often a server that answers is asked again; also the longest wait after failures.
const INTERVAL: Duration = Duration::from_secs(30);
/// The wait after the first failure. It doubles with each one that follows.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Sets the condition `Available`. Keys are names of APIServices.
pub(crate) struct AvailabilityController {
    client: Client,
    metrics: Option<AvailabilityMetrics>,
    /// How often in a row a server did not answer.
    failures: Mutex<HashMap<Arc<str>, u32>>,
}

impl Controller for AvailabilityController {
    const NAME: &'static str = "api-service-availability";
    const MANAGER: &'static str = "kube-apiserver";
    // Servers that hang must not delay the others.
    const PARALLEL: usize = 64;
    const EVERYWHERE: bool = true;
    type Key = Arc<str>;
    type Listener = AvailabilityListener;

    fn identity(_: &Table) -> Identity {
        let rules = ["update | apiregistration.k8s.io | apiservices/status"];
        Identity::own("bareboat-api-service-availability", &rules)
    }

    fn has_work(server: &Server, _: &crate::Options) -> bool {
        let table = server.catalog().table();
        table
            .find("apiregistration.k8s.io", "apiservices")
            .is_some()
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (AvailabilityController, AvailabilityListener) {
        let controller = AvailabilityController {
            client: context.client.clone(),
            metrics: AvailabilityMetrics::of(context.server),
            failures: Mutex::default(),
        };
        (controller, AvailabilityListener::new(queue))
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        let entry = self.client.server().store().resource(STORE).get(&name);
        let Some(entry) = entry else {
            self.failures.lock().remove(&name);
            if let Some(metrics) = &self.metrics {
                metrics.forget(&name);
            }
            return Verdict::Done;
        };
        let Ok(object) = read(&entry) else {
            return Verdict::Done;
        };
        let is_local = object.at(&["spec", "service"]).is_none_or(Value::is_null);
        let condition = match is_local {
            true => check::local(),
            false => self.judge(&name, &object).await,
        };
        let (holds, reason) = (condition.holds(), condition.reason);
        if let Err(status) = self.write(&name, object, &condition).await {
            if !matches!(status.code, 404 | 409) {
                tracing::warn!(%name, %status, "cannot write the condition of an APIService");
            }
            return Verdict::Retry;
        }
        if is_local {
            self.failures.lock().remove(&name);
            if let Some(metrics) = &self.metrics {
                metrics.forget(&name);
            }
            return Verdict::Done;
        }
        let mut failures = self.failures.lock();
        if holds {
            failures.remove(&name);
            return Verdict::After(INTERVAL);
        }
        if reason != check::FAILED {
            // What is missing is an object, and its creation is an event.
            failures.remove(&name);
            return Verdict::After(INTERVAL);
        }
        let count = failures.entry(name).or_insert(0);
        *count = count.saturating_add(1);
        let wait = FIRST_WAIT.saturating_mul(1 << count.saturating_sub(1).min(10));
        Verdict::After(wait.min(INTERVAL))
    }
}

impl AvailabilityController {
    /// Looks at the Service of a remote APIService, and asks its server.
    async fn judge(&self, name: &str, object: &Object) -> Condition {
        let server = self.client.server();
        if let Some(problem) = check::service(server.store(), object) {
            return problem;
        }
        let mut answer = server.probe_api_service(name).await;
        if matches!(answer, Some(Err(_))) && check::is_available(object) {
            // One lost connection does not make a server unavailable.
            answer = server.probe_api_service(name).await;
        }
        match answer {
            Some(Err(why)) => check::failed(why),
            Some(Ok(())) => {
                // Before clients see that it is available, so that discovery is complete by then.
                server.refresh_api_service(name).await;
                check::passed()
            }
            // The Service is this server.
            None => check::passed(),
        }
    }

    /// Writes the condition if it differs.
    async fn write(
        &self,
        name: &str,
        mut object: Object,
        condition: &Condition,
    ) -> Result<(), Status> {
        let was_available = check::is_available(&object);
        let mut list = match object.at(&["status", "conditions"]) {
            Some(Value::Array(list)) => list.clone(),
            _ => Vec::new(),
        };
        let is_remote = object.at(&["spec", "service"]).is_some();
        if let Some(metrics) = self.metrics.as_ref().filter(|_| is_remote) {
            metrics.set(name, condition.holds());
        }
        if !condition.set(&mut list, &crate::conditions::now()) {
            return Ok(());
        }
        let status = object.map_mut().object_mut("status");
        status.insert("conditions", Value::Array(list));
        let path = format!("{}/status", join(PATH, name));
        self.client.update(&path, object.value()).await?;
        if was_available != condition.holds() {
            tracing::info!(
                %name,
                available = condition.holds(),
                reason = condition.reason,
                message = %condition.message,
                "the availability of an APIService changed"
            );
        }
        if was_available
            && !condition.holds()
            && let Some(metrics) = &self.metrics
        {
            metrics.count(name, condition.reason);
        }
        Ok(())
    }
}
