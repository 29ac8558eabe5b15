//! Advice for manifests of `apiextensions.k8s.io/v1beta1`, which older articles still show.
//!
//! The version is not served; Kubernetes removed it in 1.22.

use super::validate;
use bareboat_api::Value;

const API_VERSION: &str = "apiVersion: write apiextensions.k8s.io/v1";

/// Returns the changes that turn a v1beta1 definition into v1: those for the given one, or all
/// possible ones.
pub fn advise_v1beta1(crd: Option<&Value>) -> String {
    let changes = match crd {
        Some(crd) => changes(crd),
        None => everything(),
    };
    format!(
        "apiextensions.k8s.io/v1beta1 is not served, it was replaced by apiextensions.k8s.io/v1; change in the manifest: {}",
        changes.join("; ")
    )
}

fn everything() -> Vec<String> {
    let all = [
        API_VERSION,
        "spec.version: list it in spec.versions, with served: true and storage: true",
        "spec.validation: move openAPIV3Schema to schema.openAPIV3Schema of each entry of spec.versions, which all need one",
        "spec.subresources and spec.additionalPrinterColumns: move them to each entry of spec.versions",
        "JSONPath of additionalPrinterColumns: write jsonPath",
        "spec.conversion.webhookClientConfig: move it to spec.conversion.webhook.clientConfig",
        "spec.conversion.conversionReviewVersions: move it to spec.conversion.webhook.conversionReviewVersions",
        "spec.preserveUnknownFields: remove it, and write x-kubernetes-preserve-unknown-fields: true in the schema where undeclared fields must be kept",
    ];
    all.iter().map(|&change| change.to_owned()).collect()
}

fn changes(crd: &Value) -> Vec<String> {
    let mut changes = vec![API_VERSION.to_owned()];
    let nothing = Value::object();
    let spec = crd.get("spec").unwrap_or(&nothing);
    let has = |path: &[&str]| spec.at(path).is_some_and(|value| !value.is_null());
    let versions = validate::versions(crd);
    if let Some(name) = spec.get("version").and_then(Value::as_str) {
        changes.push(match versions.is_empty() {
            true => format!(
                "spec.version: write spec.versions: [{{name: {name}, served: true, storage: true, schema: …}}] instead"
            ),
            false => "spec.version: remove it, spec.versions replaces it".to_owned(),
        });
    }
    let shared_schema = has(&["validation"]);
    if shared_schema {
        changes.push(
            "spec.validation: move openAPIV3Schema to schema.openAPIV3Schema of each entry of spec.versions"
                .to_owned(),
        );
    }
    let schema = |version: &Value| version.at(&["schema", "openAPIV3Schema"]).cloned();
    if !shared_schema && (versions.is_empty() || versions.iter().any(|it| schema(it).is_none())) {
        changes.push(
            "spec.versions: each entry needs schema.openAPIV3Schema, at least {type: object, x-kubernetes-preserve-unknown-fields: true}"
                .to_owned(),
        );
    }
    let shared = spec.at(&["validation", "openAPIV3Schema"]).cloned();
    let untyped = |schema: &Value| schema.get("type").and_then(Value::as_str) != Some("object");
    if shared
        .iter()
        .chain(
            versions
                .iter()
                .filter_map(schema)
                .collect::<Vec<_>>()
                .iter(),
        )
        .any(untyped)
    {
        changes.push(
            "openAPIV3Schema: it must be structural, so write type: object at its root and a type for every field"
                .to_owned(),
        );
    }
    for key in ["subresources", "additionalPrinterColumns"] {
        if has(&[key]) {
            changes.push(format!(
                "spec.{key}: move it to each entry of spec.versions"
            ));
        }
    }
    if has_old_columns(spec) || versions.iter().any(has_old_columns) {
        changes.push("JSONPath of additionalPrinterColumns: write jsonPath".to_owned());
    }
    for (old, new) in [
        ("webhookClientConfig", "clientConfig"),
        ("conversionReviewVersions", "conversionReviewVersions"),
    ] {
        if has(&["conversion", old]) {
            changes.push(format!(
                "spec.conversion.{old}: move it to spec.conversion.webhook.{new}"
            ));
        }
    }
    if !has(&["scope"]) {
        changes.push("spec.scope: write Namespaced, which was the default, or Cluster".to_owned());
    }
    if let Some(change) = unknown_fields(spec.get("preserveUnknownFields")) {
        changes.push(change.to_owned());
    }
    changes
}

fn has_old_columns(from: &Value) -> bool {
    let columns = from
        .get("additionalPrinterColumns")
        .and_then(Value::as_array);
    columns
        .unwrap_or(&[])
        .iter()
        .any(|column| column.get("JSONPath").is_some())
}

fn unknown_fields(preserve: Option<&Value>) -> Option<&'static str> {
    match preserve {
        Some(Value::Bool(true)) => Some(
            "spec.preserveUnknownFields: remove it, and write x-kubernetes-preserve-unknown-fields: true in the schema where undeclared fields must be kept",
        ),
        // It was the default.
        None | Some(Value::Null) => Some(
            "fields that the schema does not declare are dropped: declare them, or write x-kubernetes-preserve-unknown-fields: true where they must be kept",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
