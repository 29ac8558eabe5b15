//! The conversion between versions that a definition asks for.
//!
//! Upstream names the paths of its internal form: `spec.conversion.webhookClientConfig` rather
//! than `spec.conversion.webhook.clientConfig`.

use bareboat_api::{FieldError, FieldPath, Value, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Checks `spec.conversion`.
pub(super) fn check(
    conversion: &Value,
    path: &FieldPath,
    require_known_review: bool,
    allow_invalid_bundle: bool,
    errors: &mut Vec<FieldError>,
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
            Some(client) => check_client(client, &client_at, allow_invalid_bundle, errors),
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

fn check_client(
    client: &Value,
    path: &FieldPath,
    allow_invalid_bundle: bool,
    errors: &mut Vec<FieldError>,
) {
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|service| !service.is_null());
    match (url, service) {
        (Some(url), None) => check_url(url, &path.child("url"), errors),
        (None, Some(service)) => check_service(service, &path.child("service"), errors),
        _ => errors.push(FieldError::required(
            path.clone(),
            "exactly one of url or service is required",
        )),
    }
    if let Some(bundle) = client.get("caBundle").and_then(Value::as_str)
        && !allow_invalid_bundle
        && !is_bundle(bundle)
    {
        errors.push(FieldError::invalid(
            path.child("caBundle"),
            bundle,
            "unable to load root certificates: unable to parse bytes as PEM block",
        ));
    }
}

fn check_url(url: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path.clone(), scheme, detail));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() {
        ""
    } else {
        rest.split('/').next().unwrap_or("")
    };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() {
        let detail = format!("host must be specified{FORM}");
        errors.push(FieldError::invalid(path.clone(), host, detail));
    }
    if let Some(user) = user {
        errors.push(FieldError::invalid(
            path.clone(),
            user,
            "user information is not permitted in the URL",
        ));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(
            path.clone(),
            fragment,
            "fragments are not permitted in the URL",
        ));
    }
    if !query.is_empty() {
        errors.push(FieldError::invalid(
            path.clone(),
            query,
            "query parameters are not permitted in the URL",
        ));
    }
}

fn check_service(service: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let text = |key: &str| service.get(key).and_then(Value::as_str).unwrap_or("");
    for key in ["name", "namespace"] {
        if text(key).is_empty() {
            errors.push(FieldError::required(path.child(key), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        errors.push(FieldError::invalid(
            path.child("port"),
            port,
            "port is not valid: must be between 1 and 65535, inclusive",
        ));
    }
    let target = text("path");
    let at = path.child("path");
    let mut complain = |detail: String| {
        errors.push(FieldError::invalid(at.clone(), target, detail));
    };
    match target {
        "" | "/" => return,
        "//" => return complain("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !target.starts_with('/') {
        complain("must start with a '/'".to_owned());
    }
    let inner = target.get(1..).unwrap_or("");
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            complain(format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(segment) {
            complain(format!("segment[{index}]: {problem}"));
        }
    }
}

fn check_reviews(
    reviews: &[Value],
    path: &FieldPath,
    require_known: bool,
    errors: &mut Vec<FieldError>,
) {
    if reviews.is_empty() {
        errors.push(FieldError::required(path.clone(), ""));
        return;
    }
    let versions: Vec<&str> = reviews.iter().filter_map(Value::as_str).collect();
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(
                path.index(index),
                *version,
                "duplicate version",
            ));
            continue;
        }
        for problem in names::dns1035_label(version) {
            errors.push(FieldError::invalid(path.index(index), *version, problem));
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

/// Whether some review version is one the server speaks; an empty list passes.
pub(super) fn has_known_review(reviews: &[Value]) -> bool {
    reviews.is_empty()
        || reviews
            .iter()
            .filter_map(Value::as_str)
            .any(|version| REVIEWS.contains(&version))
}

/// Whether the bundle of a webhook, if there is one, holds certificates.
pub(super) fn bundle_is_valid(crd: &Value) -> bool {
    crd.at(&["spec", "conversion", "webhook", "clientConfig", "caBundle"])
        .and_then(Value::as_str)
        .is_none_or(is_bundle)
}

/// Base64 of PEM blocks with at least one certificate; nothing at all is fine.
fn is_bundle(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let Ok(bytes) = STANDARD.decode(text) else {
        return false;
    };
    let Ok(pem) = String::from_utf8(bytes) else {
        return false;
    };
    let mut rest = pem.as_str();
    let mut found = false;
    while let Some((_, tail)) = rest.split_once("-----BEGIN CERTIFICATE-----") {
        let Some((body, tail)) = tail.split_once("-----END CERTIFICATE-----") else {
            return found;
        };
        let body: String = body.split_whitespace().collect();
        // A certificate is a DER sequence; anything more is the business of whoever connects.
        match STANDARD.decode(body) {
            Ok(der) if der.first() == Some(&0x30) => found = true,
            _ => return false,
        }
        rest = tail;
    }
    found
}
