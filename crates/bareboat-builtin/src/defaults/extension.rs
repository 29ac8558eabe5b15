//! Defaults of webhooks, admission policies, CustomResourceDefinitions and APIServices.

use super::spec;
use crate::reach::{Fill, Reach};
use bareboat_api::{Map, Value, value};

fn webhook(webhook: &mut Map) {
    webhook.fill("failurePolicy", "Fail");
    webhook.fill("matchPolicy", "Equivalent");
    webhook.fill("namespaceSelector", Map::new());
    webhook.fill("objectSelector", Map::new());
    webhook.fill("timeoutSeconds", 10);
    rules(webhook, "rules");
    if let Some(service) = webhook
        .sub("clientConfig")
        .and_then(|config| config.sub("service"))
    {
        service.fill("port", 443);
    }
}

fn rules(parent: &mut Map, list: &str) {
    for rule in parent.each(list) {
        rule.fill("scope", "*");
    }
}

/// Sets the defaults of ValidatingWebhookConfiguration.
pub(crate) fn validating_webhooks(object: &mut Value) {
    for hook in object.make_object().each("webhooks") {
        webhook(hook);
    }
}

/// Sets the defaults of MutatingWebhookConfiguration.
pub(crate) fn mutating_webhooks(object: &mut Value) {
    for hook in object.make_object().each("webhooks") {
        webhook(hook);
        hook.fill("reinvocationPolicy", "Never");
    }
}

fn match_resources(resources: &mut Map) {
    resources.fill("matchPolicy", "Equivalent");
    resources.fill("namespaceSelector", Map::new());
    resources.fill("objectSelector", Map::new());
    rules(resources, "resourceRules");
    rules(resources, "excludeResourceRules");
}

/// Sets the defaults of ValidatingAdmissionPolicy and MutatingAdmissionPolicy.
pub(crate) fn admission_policy(object: &mut Value) {
    let spec = spec(object);
    spec.fill("failurePolicy", "Fail");
    if let Some(constraints) = spec.sub("matchConstraints") {
        match_resources(constraints);
    }
}

/// Sets the defaults of admission policy bindings.
pub(crate) fn admission_binding(object: &mut Value) {
    if let Some(resources) = spec(object).sub("matchResources") {
        match_resources(resources);
    }
}

/// Sets the defaults of APIService.
pub(crate) fn api_service(object: &mut Value) {
    if let Some(service) = spec(object).sub("service") {
        service.fill("port", 443);
    }
}

/// Sets the defaults of CustomResourceDefinition.
pub(crate) fn custom_resource_definition(object: &mut Value) {
    let kind = object.text(&["spec", "names", "kind"]).to_owned();
    let stored: Vec<Value> = object
        .list(&["spec", "versions"])
        .iter()
        .filter(|version| version.flag(&["storage"]))
        .map(|version| version.text(&["name"]).into())
        .take(1)
        .collect();
    let map = object.make_object();
    let spec = map.object_mut("spec");
    let names = spec.object_mut("names");
    names.fill("singular", kind.to_lowercase());
    if !kind.is_empty() {
        names.fill("listKind", format!("{kind}List"));
    }
    if !spec.contains_key("conversion") {
        spec.insert("conversion", value!({"strategy": "None"}));
    }
    if let Some(service) = spec
        .sub("conversion")
        .and_then(|conversion| conversion.sub("webhook"))
        .and_then(|webhook| webhook.sub("clientConfig"))
        .and_then(|config| config.sub("service"))
    {
        service.fill("port", 443);
    }
    let status = map.object_mut("status");
    if !stored.is_empty()
        && status
            .get("storedVersions")
            .and_then(Value::as_array)
            .is_none_or(<[Value]>::is_empty)
    {
        status.insert("storedVersions", stored.into());
    }
}
