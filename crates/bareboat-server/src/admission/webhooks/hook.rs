//! One webhook of a configuration, compiled.

use super::conditions::Conditions;
use super::path::clean;
use crate::admission::matching::Criteria;
use crate::outbound::{Address, Destination, OutboundError};
use bareboat_api::{Str, Value};
use std::time::Duration;

/// The version of the AdmissionReview that a webhook understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    pub(super) fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "admission.k8s.io/v1",
            ReviewVersion::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Whether a webhook may be called in a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SideEffects {
    /// It has no side effects, or none in a dry run.
    None,
    Some,
    /// The configuration does not say whether it has side effects.
    Unset,
}

/// A webhook.
pub(super) struct Hook {
    pub(super) name: Str,
    pub(super) configuration: Str,
    /// Identifies the hook among all hooks.
    pub(super) id: String,
    pub(super) criteria: Criteria,
    pub(super) conditions: Conditions,
    /// Whether a failed call is ignored.
    pub(super) fails_open: bool,
    pub(super) side_effects: SideEffects,
    pub(super) timeout: Duration,
    pub(super) review: Option<ReviewVersion>,
    /// Whether it is called again if the object changed after its call.
    pub(super) reinvoked: bool,
    /// Host and port, for credentials.
    pub(super) host: String,
    pub(super) destination: Result<Destination, OutboundError>,
}

impl Hook {
    /// Reads a hook of a stored, valid configuration.
    pub(super) fn read(configuration: &str, place: usize, hook: &Value) -> Hook {
        let text = |key: &str| hook.get(key).and_then(Value::as_str).unwrap_or("");
        let name = text("name");
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_i64);
        let seconds = u64::try_from(seconds.unwrap_or(10)).unwrap_or(10);
        let versions = hook
            .get("admissionReviewVersions")
            .and_then(Value::as_array);
        let (host, destination) = destination(hook.get("clientConfig").unwrap_or(&Value::Null));
        Hook {
            name: Str::new(name),
            configuration: Str::new(configuration),
            id: format!("{configuration}/{name}/{place}"),
            criteria: Criteria::of_webhook(hook),
            conditions: Conditions::read(hook),
            fails_open: text("failurePolicy") == "Ignore",
            side_effects: match text("sideEffects") {
                "None" | "NoneOnDryRun" => SideEffects::None,
                "" => SideEffects::Unset,
                _ => SideEffects::Some,
            },
            timeout: Duration::from_secs(seconds),
            review: versions
                .unwrap_or(&[])
                .iter()
                .find_map(|version| match version.as_str() {
                    Some("v1") => Some(ReviewVersion::V1),
                    Some("v1beta1") => Some(ReviewVersion::V1Beta1),
                    _ => None,
                }),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
            host,
            destination,
        }
    }
}

/// Returns host and port of a hook, and its destination.
fn destination(config: &Value) -> (String, Result<Destination, OutboundError>) {
    let text = |path: &[&str]| config.at(path).and_then(Value::as_str).unwrap_or("");
    let bundle = text(&["caBundle"]);
    let (host, address) = match config.get("service") {
        Some(Value::Object(_)) => {
            let (namespace, name) = (text(&["service", "namespace"]), text(&["service", "name"]));
            let port = config.at(&["service", "port"]).and_then(Value::as_i64);
            let port = port
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(443);
            let address = Address::Service {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                path: clean(text(&["service", "path"])),
                port,
            };
            (format!("{name}.{namespace}.svc:{port}"), address)
        }
        _ => {
            let url = text(&["url"]);
            let (host, url) = split(url);
            (host, Address::Url(url))
        }
    };
    (host, Destination::new(&address, "", bundle))
}

/// Returns `host:port` of a URL (port 443 if it has none), and the URL with a normalized path: no empty, `.` or `..`
/// segments, and no slash at the end.
fn split(url: &str) -> (String, String) {
    let Some((scheme, rest)) = url.split_once("://") else {
        return (String::new(), url.to_owned());
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let host = match has_port {
        true => authority.to_owned(),
        false => format!("{authority}:443"),
    };
    (host, format!("{scheme}://{authority}{}", clean(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_with_port_and_a_clean_path() {
        for (url, host, cleaned) in [
            (
                "https://a.example/x//y/",
                "a.example:443",
                "https://a.example/x/y",
            ),
            (
                "https://127.0.0.1:9443",
                "127.0.0.1:9443",
                "https://127.0.0.1:9443/",
            ),
            (
                "https://[::1]:9443/a/../b",
                "[::1]:9443",
                "https://[::1]:9443/b",
            ),
            ("https://[::1]/", "[::1]:443", "https://[::1]/"),
        ] {
            assert_eq!(split(url), (host.to_owned(), cleaned.to_owned()));
        }
    }
}
