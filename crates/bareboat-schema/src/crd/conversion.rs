//! Validation of `spec.conversion`.
//!
//! Errors have the paths of upstream's internal form: `spec.conversion.webhookClientConfig` instead
//! of `spec.conversion.webhook.clientConfig`.

use crate::client;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, names};
use std::collections::HashSet;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Checks `spec.conversion`.
pub(super) fn check(
    conversion: &Value,
    path: &FieldPath,
    require_known_review: bool,
    allow_invalid_bundle: bool,
    errors: &mut FieldErrors,
) {
    let strategy = conversion
        .get("strategy")
        .and_then(Value::as_str)
        .unwrap_or("");
    let at = path.child("strategy");
    match strategy {
        "" => errors.push(FieldError::required(at, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(at, other, ["None", "Webhook"])),
    }
    let client = conversion.at(&["webhook", "clientConfig"]);
    let client = client.filter(|client| !client.is_null());
    let reviews = conversion
        .at(&["webhook", "conversionReviewVersions"])
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    let client_at = path.child("webhookClientConfig");
    let reviews_at = path.child("conversionReviewVersions");
    if strategy == "Webhook" {
        match client {
            None => errors.push(FieldError::required(
                client_at,
                "required when strategy is set to Webhook",
            )),
            Some(client) => client::check(client, &client_at, allow_invalid_bundle, errors),
        }
        check_reviews(reviews, &reviews_at, require_known_review, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(client_at, detail));
    }
    if !reviews.is_empty() {
        errors.push(FieldError::forbidden(reviews_at, detail));
    }
}

fn check_reviews(
    reviews: &[Value],
    path: &FieldPath,
    require_known: bool,
    errors: &mut FieldErrors,
) {
    if reviews.is_empty() {
        errors.push(FieldError::required(path.clone(), ""));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in reviews.iter().filter_map(Value::as_str).enumerate() {
        if !seen.insert(version) {
            errors.push(FieldError::invalid(
                path.index(index),
                version,
                "duplicate version",
            ));
            continue;
        }
        for problem in names::dns1035_label(version) {
            errors.push(FieldError::invalid(path.index(index), version, problem));
        }
    }
    if require_known && !has_known_review(reviews) {
        errors.push(FieldError::invalid(
            path.clone(),
            reviews.to_vec(),
            "must include at least one of v1, v1beta1",
        ));
    }
}

/// Returns whether the server supports one of the review versions; an empty list passes.
pub(super) fn has_known_review(reviews: &[Value]) -> bool {
    reviews.is_empty()
        || reviews
            .iter()
            .filter_map(Value::as_str)
            .any(|version| REVIEWS.contains(&version))
}

/// Returns whether the CA bundle of a webhook, if there is one, contains certificates.
pub(super) fn bundle_is_valid(crd: &Value) -> bool {
    crd.at(&["spec", "conversion", "webhook", "clientConfig", "caBundle"])
        .and_then(Value::as_str)
        .is_none_or(client::is_bundle)
}
