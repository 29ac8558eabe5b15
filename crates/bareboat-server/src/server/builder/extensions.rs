//! What clients extend a running server with: definitions, aggregated servers, policies and webhooks.

use super::ServerBuilder;
use crate::admission::{
    Chain, ConditionMetrics, MUTATING, MutatingPolicies, MutatingWebhooks, Policies, PolicyMetrics,
    VALIDATING, ValidatingPolicies, ValidatingWebhooks, WebhookCredentials, WebhookMetrics,
    Webhooks,
};
use crate::aggregation::{self, Aggregation, ApiServiceObserver};
use crate::kinds::catalog::Catalog;
use crate::kinds::custom::{self, CustomKinds};
use crate::outbound::Outgoing;
use bareboat_api::kind::Kind;
use bareboat_policy::PolicyKind;
use bareboat_storage::Store;
use prometheus::core::Collector;
use std::sync::Arc;

type Metrics = Vec<Box<dyn Collector>>;

/// The extensions that are on.
#[derive(Default)]
pub(super) struct Extensions {
    definitions: Option<Kind>,
    aggregates: bool,
    /// Whether mutating and validating policies apply.
    policies: (bool, bool),
    mutating_webhooks: Option<WebhookCredentials>,
    validating_webhooks: Option<WebhookCredentials>,
}

impl ServerBuilder {
    /// Serves custom kinds; `definitions` is the kind CustomResourceDefinition itself.
    #[must_use]
    pub fn custom_resources(mut self, definitions: Kind) -> Self {
        self.extensions.definitions = Some(definitions);
        self
    }

    /// Applies MutatingAdmissionPolicies.
    #[must_use]
    pub fn mutating_policies(mut self) -> Self {
        self.extensions.policies.0 = true;
        self
    }

    /// Applies ValidatingAdmissionPolicies.
    #[must_use]
    pub fn validating_policies(mut self) -> Self {
        self.extensions.policies.1 = true;
        self
    }

    /// Forwards requests for groups and versions to the servers that stored APIServices name. The kind APIService must be
    /// served, and a controller must set the condition `Available`.
    #[must_use]
    pub fn aggregation(mut self) -> Self {
        self.extensions.aggregates = true;
        self
    }

    /// Calls the webhooks of MutatingWebhookConfigurations, with these credentials.
    #[must_use]
    pub fn mutating_webhooks(mut self, credentials: WebhookCredentials) -> Self {
        self.extensions.mutating_webhooks = Some(credentials);
        self
    }

    /// Calls the webhooks of ValidatingWebhookConfigurations, with these credentials.
    #[must_use]
    pub fn validating_webhooks(mut self, credentials: WebhookCredentials) -> Self {
        self.extensions.validating_webhooks = Some(credentials);
        self
    }
}

/// Extensions of a server that is being built.
pub(super) struct Extended {
    definitions: Option<Kind>,
    custom: Option<Arc<CustomKinds>>,
    aggregates: bool,
    metrics: Metrics,
}

impl Extensions {
    /// Adds the stages of policies and webhooks to the chain, where they are on.
    pub(super) fn install(
        self,
        chain: &mut Chain,
        catalog: &Arc<Catalog>,
        store: &Store,
        outgoing: &Outgoing,
    ) -> Result<Extended, prometheus::Error> {
        let conditions = Arc::new(ConditionMetrics::new()?);
        let mut metrics = conditions.collectors();
        metrics.extend(install_policies(self.policies, chain, store, &conditions)?);
        let hooks = (self.mutating_webhooks, self.validating_webhooks);
        metrics.extend(install_webhooks(
            hooks,
            chain,
            store,
            outgoing,
            &conditions,
        )?);
        let custom = self.definitions.map(|mut kind| {
            let custom = Arc::new(CustomKinds::new(catalog, store, &outgoing.outbound));
            kind.strategy = Arc::new(custom.strategy());
            (kind, custom)
        });
        let (definitions, custom) = custom.unzip();
        Ok(Extended {
            definitions,
            custom,
            aggregates: self.aggregates,
            metrics,
        })
    }
}

impl Extended {
    /// Takes the kind CustomResourceDefinition, if it is served.
    pub(super) fn kind(&mut self) -> Option<Kind> {
        self.definitions.take()
    }

    /// Takes the metrics.
    pub(super) fn collectors(&mut self) -> Metrics {
        std::mem::take(&mut self.metrics)
    }

    /// Follows stored definitions and APIServices.
    pub(super) fn observe(self, store: &Store) -> Arc<Aggregation> {
        if let Some(custom) = self.custom {
            store.observe(custom::STORE, custom);
        }
        let aggregation = Arc::<Aggregation>::default();
        if self.aggregates {
            let observer = ApiServiceObserver(aggregation.clone());
            store.observe(aggregation::STORE, Arc::new(observer));
        }
        aggregation
    }
}

fn install_policies(
    (mutating, validating): (bool, bool),
    chain: &mut Chain,
    store: &Store,
    conditions: &Arc<ConditionMetrics>,
) -> Result<Metrics, prometheus::Error> {
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
    let stages = &mut chain.stages;
    if mutating {
        let policies = MutatingPolicies(make(PolicyKind::Mutating));
        stages.mutating.push(Arc::new(policies));
    }
    if validating {
        let policies = ValidatingPolicies(make(PolicyKind::Validating));
        stages.validating.push(Arc::new(policies));
    }
    Ok(metrics.collectors())
}

/// Adds the webhook stages that are on to the admission chain, and observes their configurations. Returns their metrics.
fn install_webhooks(
    (mutating, validating): (Option<WebhookCredentials>, Option<WebhookCredentials>),
    chain: &mut Chain,
    store: &Store,
    outgoing: &Outgoing,
    conditions: &Arc<ConditionMetrics>,
) -> Result<Metrics, prometheus::Error> {
    if mutating.is_none() && validating.is_none() {
        return Ok(Vec::new());
    }
    let metrics = Arc::new(WebhookMetrics::new()?);
    let make = |credentials: WebhookCredentials| {
        let connect = |identity| outgoing.with_identity(store, identity);
        let credentials = credentials.connect(connect);
        let metrics = (metrics.clone(), conditions.clone());
        Webhooks::new(outgoing.outbound.clone(), credentials, metrics)
    };
    let stages = &mut chain.stages;
    if let Some(credentials) = mutating {
        let hooks = make(credentials);
        store.observe(MUTATING, hooks.observer());
        stages.mutating.push(Arc::new(MutatingWebhooks(hooks)));
    }
    if let Some(credentials) = validating {
        let hooks = make(credentials);
        store.observe(VALIDATING, hooks.observer());
        stages.validating.push(Arc::new(ValidatingWebhooks(hooks)));
    }
    Ok(metrics.collectors())
}
