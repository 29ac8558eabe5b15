//! Finds the parameters of a binding: objects of any stored kind, in the version the policy names.

use crate::admission::pass::Pass;
use crate::kinds::catalog::Backing;
use crate::kinds::stored_kind::StoredKind;
use crate::work::{self, Pace};
use bareboat_api::Object;
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
    pub(super) fn of(
        policy: &Policy,
        pass: &Pass<'_, '_>,
    ) -> Result<Option<Arc<ParamSource>>, String> {
        let Some(kind) = &policy.param_kind else {
            return Ok(None);
        };
        let table = pass.ground().state.catalog.table();
        let Some(Backing::Stored(served)) = table.find_kind(&kind.group, &kind.kind) else {
            return Err(kind.unknown());
        };
        match served.version_index(&kind.version) {
            Some(version) if served.version(version).served => Ok(Some(Arc::new(ParamSource {
                served: served.clone(),
                version,
            }))),
            _ => Err(kind.unknown()),
        }
    }
}

/// A parameter object. It is decoded when a policy reads it, because a binding may select any number of objects.
pub(super) struct Param {
    source: Arc<ParamSource>,
    pub(super) entry: Arc<Entry>,
}

impl Param {
    /// Returns the object in the version that the policy names. The error is for the client.
    pub(super) async fn read(&self) -> Result<Object, String> {
        work::maybe_large(self.entry.json().len()).await;
        let object = self.source.served.object(&self.entry, self.source.version);
        object.await.map_err(|status| status.message)
    }
}

/// Returns the parameters of a binding for a request: one `None` if the policy is evaluated without any, and nothing
/// if it does not apply because there are none.
pub(super) async fn collect(
    source: Option<&Arc<ParamSource>>,
    policy: &Policy,
    binding: &Binding,
    pass: &Pass<'_, '_>,
) -> Result<Vec<Option<Param>>, String> {
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
    let params = entries.into_iter().map(|entry| {
        Some(Param {
            source: source.clone(),
            entry,
        })
    });
    Ok(params.collect())
}
