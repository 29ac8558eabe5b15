//! Client configurations of webhooks: a URL or a service, and a CA bundle.

use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The address of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A URL.
    Url(String),
    /// A service in the cluster.
    Service {
        /// The namespace of the service.
        namespace: String,
        /// The name of the service.
        name: String,
        /// The path of the request.
        path: String,
        /// The port of the service.
        port: u16,
    },
}

impl Target {
    /// Parses a client configuration; malformed parts count as absent.
    pub fn parse(client: &Value) -> Target {
        let Some(service) = client.get("service").filter(|service| !service.is_null()) else {
            return Target::Url(text(client, "url"));
        };
        Target::Service {
            namespace: text(service, "namespace"),
            name: text(service, "name"),
            path: text(service, "path"),
            port: service
                .get("port")
                .and_then(Value::as_i64)
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(443),
        }
    }
}

fn text(value: &Value, key: &str) -> String {
    let found = value.get(key).and_then(Value::as_str);
    found.unwrap_or("").to_owned()
}

/// Checks the client configuration of a webhook: exactly one of `url` and `service`, and a valid
/// `caBundle`.
pub fn check(
    client: &Value,
    path: &FieldPath,
    allow_invalid_bundle: bool,
    errors: &mut FieldErrors,
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

fn check_url(url: &str, path: &FieldPath, errors: &mut FieldErrors) {
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

fn check_service(service: &Value, path: &FieldPath, errors: &mut FieldErrors) {
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

/// Returns whether a text is base64 of PEM blocks with at least one certificate; an empty text is
/// valid.
pub(crate) fn is_bundle(text: &str) -> bool {
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
        // A certificate is a DER sequence; the connection checks the rest.
        match STANDARD.decode(body) {
            Ok(der) if der.first() == Some(&0x30) => found = true,
            _ => return false,
        }
        rest = tail;
    }
    found
}
