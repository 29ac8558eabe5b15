//! Gives expressions what they read of a request, and evaluates them where that does not delay other requests.

use crate::admission::access::AccessChecks;
use crate::admission::pass::Pass;
use crate::kinds::stored_kind::parse_entry;
use crate::work;
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status, Value};
use bareboat_cel::AccessCheck;
use bareboat_policy::{Inputs, Policy, Trial, visible_namespace};
use std::sync::Arc;

/// What the expressions of all policies share for one request, made when it is first needed.
#[derive(Default)]
pub(super) struct Shared {
    access: Option<Arc<AccessChecks>>,
    namespace: Option<Arc<Value>>,
    /// By form.
    requests: Vec<Option<Arc<Value>>>,
}

/// What the expressions of a policy read, except `object`, `oldObject` and `params`: request, namespace, authorizer.
pub(super) struct Ready {
    access: Option<Arc<AccessChecks>>,
    own: AccessCheck,
    namespace: Option<Arc<Value>>,
    request: Arc<Value>,
}

impl Shared {
    /// Prepares what a policy reads. The error is a namespace that does not exist.
    pub(super) async fn prepare(
        &mut self,
        policy: &Policy,
        pass: &Pass<'_, '_>,
        form: usize,
    ) -> Result<Ready, Status> {
        if !policy.is_compiled() {
            work::large().await;
        }
        if self.access.is_none() && policy.needs_authorizer() {
            self.access = Some(AccessChecks::new(pass));
        }
        if self.namespace.is_none() && policy.needs_namespace() {
            self.namespace = namespace_of(pass)?.map(Arc::new);
        }
        if self.requests.len() <= form {
            self.requests.resize(form + 1, None);
        }
        let request = self.requests[form]
            .get_or_insert_with(|| Arc::new(pass.request_value(form)))
            .clone();
        Ok(Ready {
            own: self
                .access
                .as_ref()
                .map(|access| access.own())
                .unwrap_or_default(),
            access: self.access.clone(),
            namespace: self.namespace.clone(),
            request,
        })
    }
}

impl Ready {
    /// Evaluates something: at once if it is cheap, otherwise on a thread for large work; and again when the authorizer
    /// has answered the checks of the expressions.
    pub(super) async fn evaluate<T>(
        &self,
        pass: &Pass<'_, '_>,
        form: usize,
        params: Option<&Object>,
        what: impl Fn(&Inputs<'_>) -> T,
    ) -> T {
        let run = |trial: Option<&Trial>| {
            let mut inputs = Inputs::new(pass.object(form), pass.old(form), &self.request);
            inputs.params = params.map(Object::value);
            inputs.namespace = self.namespace.as_deref();
            inputs.request_resource = self.own.clone();
            inputs.trial = trial;
            if let Some(access) = &self.access {
                inputs.authorizer = Some(access.clone());
            }
            what(&inputs)
        };
        let attempt = || {
            let trial = Trial::default();
            let result = run(Some(&trial));
            (!trial.exceeded()).then_some(result)
        };
        loop {
            // Many policies or parameters are much work, even if each is cheap.
            work::turn().await;
            let attempted = attempt();
            let result = match attempted {
                Some(result) => result,
                None => {
                    work::large().await;
                    run(None)
                }
            };
            match &self.access {
                Some(access) if access.settle().await => {}
                _ => return result,
            }
        }
    }
}

/// Returns the namespace of the object under review; none for cluster-scoped objects and for namespaces themselves.
fn namespace_of(pass: &Pass<'_, '_>) -> Result<Option<Value>, Status> {
    let review = pass.review();
    if review.namespace.is_empty() {
        return Ok(None);
    }
    let stored = pass.ground().state.store.resource("core/namespaces");
    let Some(entry) = stored.get(review.namespace) else {
        let what = GroupResource {
            group: "",
            resource: "namespaces",
        };
        return Err(Status::not_found(what, review.namespace));
    };
    let namespace = parse_entry(&entry)?;
    Ok(Some(visible_namespace(namespace.value())))
}
