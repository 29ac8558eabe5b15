//! The admission plug-ins of the default control plane, and how to disable some of them.

use crate::control_plane::Profile;
use crate::pod_security;
use bareboat_api::admission::{Mutator, Validator};
use bareboat_builtin::admission::{
    CertificateSubject, ClaimGrowth, Completion, DefaultClass, LimitRanger, NamespaceLifecycle,
    OwnerReferences, PodResize, PodSecurityConfiguration, PolicyParams, Priority, RuntimeClass,
    ServiceAccount, SigningRequests,
};
use bareboat_server::{
    AdmissionConfiguration, AdmissionConfigurationError, ServerBuilder, WebhookCredentials,
};
use std::collections::BTreeSet;

/// The plug-ins that can be disabled, by their Kubernetes names.
pub const PLUGINS: [&str; 15] = [
    "CertificateApproval",
    "CertificateSubjectRestriction",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodResizeValidator",
    "PodSecurity",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// The error for an unknown admission plug-in, or one that cannot be disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlugin(pub String);

impl std::fmt::Display for UnknownPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = PLUGINS.join(", ");
        write!(
            f,
            "there is no admission plug-in {}; there are {known}",
            self.0
        )
    }
}

impl std::error::Error for UnknownPlugin {}

/// Finds a plug-in that can be disabled.
pub fn plugin(name: &str) -> Result<&'static str, UnknownPlugin> {
    let found = PLUGINS.into_iter().find(|known| *known == name);
    found.ok_or_else(|| UnknownPlugin(name.to_owned()))
}

/// Adds the plug-ins of a profile to a server, except those that are disabled.
pub(crate) fn install(
    builder: ServerBuilder,
    profile: Profile,
    disabled: &BTreeSet<&'static str>,
    pod_security: &PodSecurityConfiguration,
    webhooks: &Webhooks,
) -> ServerBuilder {
    let mut plugins = Plugins { builder, disabled };
    if profile == Profile::Full && !disabled.contains(pod_security::NAME) {
        plugins.builder = pod_security::install(plugins.builder, pod_security);
    }
    let plugins = plugins
        .mutator(NamespaceLifecycle)
        .validator(CertificateSubject)
        .validator(SigningRequests)
        .validator(OwnerReferences)
        .validator(PolicyParams);
    let plugins = match profile {
        Profile::Full => plugins
            .mutator(LimitRanger)
            .mutator(ServiceAccount)
            .mutator(Priority)
            .mutator(Completion)
            .mutator(DefaultClass)
            .mutator(RuntimeClass)
            .validator(LimitRanger)
            .validator(ServiceAccount)
            .validator(Priority)
            .validator(ClaimGrowth)
            .validator(RuntimeClass)
            .validator(PodResize),
        Profile::Bare => plugins,
    };
    let mut builder = plugins.builder;
    if !disabled.contains("MutatingAdmissionPolicy") {
        builder = builder.mutating_policies();
    }
    if !disabled.contains("ValidatingAdmissionPolicy") {
        builder = builder.validating_policies();
    }
    if !disabled.contains("MutatingAdmissionWebhook") {
        builder = builder.mutating_webhooks(webhooks.mutating.clone());
    }
    if !disabled.contains("ValidatingAdmissionWebhook") {
        builder = builder.validating_webhooks(webhooks.validating.clone());
    }
    builder
}

/// Reads the settings of PodSecurity in an AdmissionConfiguration.
pub fn pod_security(
    configuration: &AdmissionConfiguration,
) -> Result<PodSecurityConfiguration, AdmissionConfigurationError> {
    match configuration.plugin(pod_security::NAME) {
        None => Ok(PodSecurityConfiguration::default()),
        Some((settings, file)) => PodSecurityConfiguration::parse(settings)
            .map_err(|error| AdmissionConfigurationError::new(file, error)),
    }
}

/// The server's credentials for webhooks.
#[derive(Clone, Debug, Default)]
pub struct Webhooks {
    /// For mutating webhooks.
    pub mutating: WebhookCredentials,
    /// For validating webhooks.
    pub validating: WebhookCredentials,
}

impl Webhooks {
    /// Reads the kubeconfigs that an AdmissionConfiguration names.
    pub fn of(
        configuration: &AdmissionConfiguration,
    ) -> Result<Webhooks, AdmissionConfigurationError> {
        let read = |plugin| WebhookCredentials::of_plugin(configuration, plugin);
        Ok(Webhooks {
            mutating: read("MutatingAdmissionWebhook")?,
            validating: read("ValidatingAdmissionWebhook")?,
        })
    }
}

struct Plugins<'a> {
    builder: ServerBuilder,
    disabled: &'a BTreeSet<&'static str>,
}

impl Plugins<'_> {
    fn mutator(mut self, plugin: impl Mutator + 'static) -> Self {
        if !self.disabled.contains(plugin.name()) {
            self.builder = self.builder.mutator(plugin);
        }
        self
    }

    fn validator(mut self, plugin: impl Validator + 'static) -> Self {
        if !self.disabled.contains(plugin.name()) {
            self.builder = self.builder.validator(plugin);
        }
        self
    }
}
