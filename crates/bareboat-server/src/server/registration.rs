//! Puts kinds and their connectors into the catalog of a server that is being built, and policies and webhooks into its
//! admission.

use super::builder::BuildError;
use crate::admission::{
    Chain, ConditionMetrics, MUTATING, MutatingPolicies, MutatingWebhooks, Policies, PolicyMetrics,
    VALIDATING, ValidatingPolicies, ValidatingWebhooks, WebhookCredentials, WebhookMetrics,
    Webhooks,
};
use crate::kinds::catalog::{Backing, Catalog};
use crate::kinds::connector::{Connections, Connector};
use crate::outbound::Outbound;
use crate::tls::ClientIdentity;
use bareboat_api::kind::Kind;
use bareboat_policy::PolicyKind;
use bareboat_storage::Store;
use prometheus::core::Collector;
use std::sync::Arc;

/// Adds the stages of policies and webhooks to the chain, where they are on; returns their metrics.
pub(super) fn install_extensions(
    (policies, hooks): ((bool, bool), WebhookStages),
    chain: &mut Chain,
    store: &Store,
    outbound: &Arc<Outbound>,
    connect: impl Fn(ClientIdentity) -> Outbound,
) -> Result<Vec<Box<dyn Collector>>, prometheus::Error> {
    let conditions = Arc::new(ConditionMetrics::new()?);
    let mut metrics = conditions.collectors();
    metrics.extend(install_policies(policies, chain, store, &conditions)?);
    metrics.extend(hooks.install(chain, store, outbound, &conditions, connect)?);
    Ok(metrics)
}

fn install_policies(
    (mutating, validating): (bool, bool),
    chain: &mut Chain,
    store: &Store,
    conditions: &Arc<ConditionMetrics>,
) -> Result<Vec<Box<dyn Collector>>, prometheus::Error> {
    if !mutating && !validating {
        return Ok(Vec::new());
    }
    let metrics = Arc::new(PolicyMetrics::new()?);
    let make = |kind: PolicyKind| {
        let policies = Policies::new(kind, metrics.clone(), conditions.clone());
        for (resource, observer) in policies.observers() {
            store.observe(resource, observer);
        }
        policies
    };
    if mutating {
        let policies = make(PolicyKind::Mutating);
        chain.mutating.push(Arc::new(MutatingPolicies(policies)));
    }
    if validating {
        let policies = make(PolicyKind::Validating);
        chain
            .validating
            .push(Arc::new(ValidatingPolicies(policies)));
    }
    Ok(metrics.collectors())
}

/// The stages of webhooks that a server has, with their credentials.
pub(super) struct WebhookStages {
    pub(super) mutating: Option<WebhookCredentials>,
    pub(super) validating: Option<WebhookCredentials>,
}

impl WebhookStages {
    /// Adds the webhook stages that are on to the admission chain, and observes their configurations. Returns their
    /// metrics.
    fn install(
        self,
        chain: &mut Chain,
        store: &Store,
        outbound: &Arc<Outbound>,
        conditions: &Arc<ConditionMetrics>,
        connect: impl Fn(ClientIdentity) -> Outbound,
    ) -> Result<Vec<Box<dyn Collector>>, prometheus::Error> {
        if self.mutating.is_none() && self.validating.is_none() {
            return Ok(Vec::new());
        }
        let metrics = Arc::new(WebhookMetrics::new()?);
        let make = |credentials: WebhookCredentials| {
            let credentials = credentials.connect(&connect);
            let metrics = (metrics.clone(), conditions.clone());
            Webhooks::new(outbound.clone(), credentials, metrics)
        };
        if let Some(credentials) = self.mutating {
            let hooks = make(credentials);
            store.observe(MUTATING, hooks.observer());
            chain.mutating.push(Arc::new(MutatingWebhooks(hooks)));
        }
        if let Some(credentials) = self.validating {
            let hooks = make(credentials);
            store.observe(VALIDATING, hooks.observer());
            chain.validating.push(Arc::new(ValidatingWebhooks(hooks)));
        }
        Ok(metrics.collectors())
    }
}

/// The connectors of a kind. They are taken out of the list of all.
pub(super) fn connections_of(
    kind: &Kind,
    connectors: &mut Vec<([String; 3], Connector)>,
) -> Result<Connections, BuildError> {
    let mut connections = Connections::default();
    let mut others = Vec::new();
    for (place, connector) in connectors.drain(..) {
        let [group, plural, subresource] = &place;
        if *group != kind.group || *plural != kind.names.plural {
            others.push((place, connector));
            continue;
        }
        connector.check().map_err(|error| BuildError::Remote {
            subresource: place.join("/"),
            why: error.to_string(),
        })?;
        if !connections.add_to(kind, subresource, connector) {
            return Err(BuildError::NoSuchSubresource(place.join("/")));
        }
    }
    *connectors = others;
    Ok(connections)
}

/// Adds a kind to the catalog, if its place is free.
pub(super) fn register(catalog: &Catalog, backing: Backing) -> Result<(), BuildError> {
    let kind = backing.kind();
    let name = kind.group_resource().to_string();
    if kind.versions.is_empty() {
        return Err(BuildError::NoVersion(name));
    }
    if catalog
        .table()
        .find(&kind.group, &kind.names.plural)
        .is_some()
    {
        return Err(BuildError::SameResource(name));
    }
    catalog.insert(backing);
    Ok(())
}
