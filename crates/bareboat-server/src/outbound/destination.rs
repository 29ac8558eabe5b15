//! Whom to call: a URL or a service, and whose certificates to trust there.
//!
//! A service is called by its name in the cluster, `NAME.NAMESPACE.svc`, which is also what its certificate must be for;
//! where that is in the network is found out when a connection is made.

use super::error::OutboundError;
use super::trust::Trust;
use bareboat_api::names::is_dns1123_label;
use http::Uri;

/// Where somebody to call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// At a URL.
    Url(String),
    /// Behind a service.
    Service {
        namespace: String,
        name: String,
        /// Empty, or beginning with a slash.
        path: String,
        port: u16,
    },
}

/// How the host of a URL is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// By DNS.
    Dns,
    /// It is a service, found in the store.
    Service,
}

/// Somebody to call.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(super) uri: Uri,
    pub(super) route: Route,
    pub(super) trust: Trust,
}

impl Destination {
    /// An address, called with a query, that must show a certificate of a bundle: base64 of PEM, or
    /// nothing for the roots of the system.
    pub(crate) fn new(
        address: &Address,
        query: &str,
        ca_bundle: &str,
    ) -> Result<Destination, OutboundError> {
        let (mut url, route) = match address {
            Address::Url(url) => (url.clone(), Route::Dns),
            Address::Service {
                namespace,
                name,
                path,
                port,
            } => {
                // Nothing else may reach the host of a URL.
                for part in [namespace, name] {
                    if !is_dns1123_label(part) {
                        return Err(OutboundError::Target(format!(
                            "{part:?} cannot be the name of a service or its namespace"
                        )));
                    }
                }
                let slash = if path.starts_with('/') { "" } else { "/" };
                let url = format!("https://{name}.{namespace}.svc:{port}{slash}{path}");
                (url, Route::Service)
            }
        };
        if !query.is_empty() {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(query);
        }
        let uri: Uri = url
            .parse()
            .map_err(|error| OutboundError::Target(format!("{url:?} is no URL: {error}")))?;
        if uri.scheme_str() != Some("https") || uri.host().is_none_or(str::is_empty) {
            let why = format!("{url:?} is no https URL");
            return Err(OutboundError::Target(why));
        }
        Ok(Destination {
            uri,
            route,
            trust: Trust::of_base64(ca_bundle)?,
        })
    }
}
