//! Reads what routing needs from a stored APIService.

use super::{OWN_GROUP, URL_ANNOTATION};
use crate::outbound::{Address, Destination, OutboundError, Shown};
use bareboat_api::{Str, Value};

/// An APIService, as far as routing needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiService {
    pub(super) group: Str,
    pub(super) version: Str,
    pub(super) group_priority: u32,
    pub(super) version_priority: u32,
    /// Where another server is; `None` if this server serves the version itself.
    pub(super) place: Option<Place>,
    /// Whether its condition `Available` is true.
    pub(super) available: bool,
    /// Whether a controller of this server keeps it.
    pub(super) managed: bool,
}

/// Where another server is, and how it proves its identity. APIServices with equal places share connections, limits and
/// documents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    namespace: Str,
    name: Str,
    port: u16,
    /// Takes the place of the service.
    url: Option<Str>,
    /// PEM in base64; empty for the roots of the system.
    ca_bundle: Str,
    insecure: bool,
}

impl ApiService {
    /// Reads a stored APIService.
    pub(super) fn parse(object: &Value) -> ApiService {
        let text = |path: &[&str]| {
            let text = object.at(path).and_then(Value::as_str);
            text.map(Str::new).unwrap_or_default()
        };
        let number = |path: &[&str]| {
            let number = object.at(path).and_then(Value::as_i64);
            number.and_then(|number| u32::try_from(number).ok())
        };
        let group = text(&["spec", "group"]);
        let label = text(&[
            "metadata",
            "labels",
            "kube-aggregator.kubernetes.io/automanaged",
        ]);
        let place = object
            .at(&["spec", "service"])
            .filter(|service| service.as_object().is_some() && group != OWN_GROUP)
            .map(|_| Place {
                namespace: text(&["spec", "service", "namespace"]),
                name: text(&["spec", "service", "name"]),
                port: number(&["spec", "service", "port"])
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(443),
                url: object
                    .at(&["metadata", "annotations", URL_ANNOTATION])
                    .and_then(Value::as_str)
                    .map(Str::new),
                ca_bundle: text(&["spec", "caBundle"]),
                insecure: object.at(&["spec", "insecureSkipTLSVerify"]) == Some(&Value::Bool(true)),
            })
            .filter(|place| !place.is_this_server());
        ApiService {
            version: text(&["spec", "version"]),
            group_priority: number(&["spec", "groupPriorityMinimum"]).unwrap_or(0),
            version_priority: number(&["spec", "versionPriority"]).unwrap_or(0),
            available: is_available(object),
            managed: matches!(label.as_str(), "true" | "onstart"),
            place,
            group,
        }
    }
}

impl Place {
    /// The service `default/kubernetes` is this server: its kinds answer, without a connection.
    fn is_this_server(&self) -> bool {
        self.url.is_none()
            && self.namespace == "default"
            && self.name == "kubernetes"
            && self.port == 443
    }

    /// Returns the destination of requests.
    pub(super) fn destination(&self) -> Result<Destination, OutboundError> {
        let address = match &self.url {
            Some(url) => Address::Url(url.trim_end_matches('/').to_owned()),
            None => Address::Service {
                namespace: self.namespace.to_string(),
                name: self.name.to_string(),
                path: String::new(),
                port: self.port,
            },
        };
        let destination = Destination::new(&address, "", &self.ca_bundle)?;
        let destination = destination.showing(Shown::FrontProxy);
        Ok(match self.insecure {
            true => destination.unverified(),
            false => destination,
        })
    }
}

fn is_available(object: &Value) -> bool {
    let conditions = object.at(&["status", "conditions"]);
    let mut conditions = conditions.and_then(Value::as_array).unwrap_or(&[]).iter();
    let text = |condition: &Value, key: &str| {
        let text = condition.get(key).and_then(Value::as_str);
        text.unwrap_or("").to_owned()
    };
    conditions.any(|condition| {
        text(condition, "type") == "Available" && text(condition, "status") == "True"
    })
}
