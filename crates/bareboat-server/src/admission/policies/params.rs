//! Finds the parameters of a binding: objects of any stored kind, in the version the policy names.

use crate::admission::pass::Pass;
use crate::kinds::catalog::Backing;
use crate::kinds::stored_kind::StoredKind;
use crate::work::{self, Pace};
use bareboat_api::{Object, Status};
use bareboat_policy::{Binding, Params, Policy};
use bareboat_storage::Entry;
use std::sync::Arc;

/// The kind of a policy's parameters.
pub(super) struct ParamSource {
    served: Arc<StoredKind>,
    version: usize,
}

impl ParamSource {
    /// Finds the kind; `None` if the policy has no parameters. The error is for the client.
    pub(super) fn of(policy: &Policy, pass: &Pass<'_, '_>) -> Result<Option<ParamSource>, String> {
        let Some(kind) = &policy.param_kind else {
            return Ok(None);
        };
        let table = pass.ground().state.catalog.table();
        let Some(Backing::Stored(served)) = table.find_kind(&kind.group, &kind.kind) else {
            return Err(kind.unknown());
        };
        match served.version_index(&kind.version) {
            Some(version) if served.version(version).served => Ok(Some(ParamSource {
                served: served.clone(),
                version,
            })),
            _ => Err(kind.unknown()),
        }
    }

    async fn read(&self, entry: &Entry) -> Result<Object, Status> {
        work::maybe_large(entry.json().len()).await;
        self.served.object(entry, self.version).await
    }
}

/// Returns the parameters of a binding for a request: one `None` if the policy is evaluated without any, and nothing
/// if it does not apply because there are none.
pub(super) async fn collect(
    source: Option<&ParamSource>,
    policy: &Policy,
    binding: &Binding,
    pass: &Pass<'_, '_>,
) -> Result<Vec<Option<Object>>, String> {
    let Some(source) = source else {
        return Ok(vec![None]);
    };
    let served = &source.served;
    let namespace = pass.review().attributed_namespace();
    let mut entries: Vec<Arc<Entry>> = Vec::new();
    let mut pace = Pace::new();
    match binding.params(policy, served.kind.namespaced(), namespace)? {
        Params::None => return Ok(vec![None]),
        Params::Named { namespace, name } => {
            entries.extend(served.resource().get(&served.key(namespace, name)));
        }
        Params::Selected {
            namespace,
            selector,
        } => {
            let snapshot = served.resource().snapshot();
            let prefix = served.prefix(namespace);
            for entry in snapshot.range(&prefix, None) {
                if pace.spend(work::STEP) {
                    work::turn().await;
                }
                let facets = entry.facets();
                if selector.matches(|key| facets.label(key)) {
                    entries.push(entry.clone());
                }
            }
        }
    }
    if entries.is_empty() {
        binding.without_params()?;
    }
    let mut params = Vec::with_capacity(entries.len());
    for entry in entries {
        if pace.spend(entry.json().len()) {
            work::turn().await;
        }
        let object = source.read(&entry).await;
        params.push(Some(object.map_err(|status| status.message)?));
    }
    Ok(params)
}
