//! Whom to call: a URL or a service, and whose certificates to trust there.
//!
//! A service is called by its name in the cluster, `NAME.NAMESPACE.svc`, which is also what its certificate must be for;
//! where that is in the network is found out when a connection is made.

/// Where somebody to call is.
pub(crate) use bareboat_schema::crd::Target as Address;

use super::error::OutboundError;
use crate::tls::Trust;
use bareboat_api::names::is_dns1123_label;
use http::Uri;
use http::uri::PathAndQuery;
use std::fmt;

/// How the host of a URL is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// By DNS.
    Dns,
    /// It is a service, found in the store.
    Service,
}

/// Which certificate of ours a destination gets to see.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shown {
    /// None.
    Nothing,
    /// The one by which those we call on behalf of others know us.
    FrontProxy,
    /// The one in a secret, `NAMESPACE/NAME`.
    Secret(String),
}

/// Which HTTP to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// HTTP/2 if the other side offers it.
    Best,
    /// HTTP/1.1, where a connection can become something else.
    Http1,
}

/// Somebody to call.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(super) uri: Uri,
    pub(super) route: Route,
    pub(super) trust: Trust,
    pub(super) shown: Shown,
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
            trust: Trust::of_base64(ca_bundle).map_err(OutboundError::Trust)?,
            shown: Shown::Nothing,
        })
    }

    /// The same destination, shown a certificate.
    #[must_use]
    pub(crate) fn showing(mut self, shown: Shown) -> Destination {
        self.shown = shown;
        self
    }

    /// The URL of a path below the destination's own.
    pub(crate) fn below(&self, path_and_query: &str) -> Result<Uri, OutboundError> {
        let mut parts = self.uri.clone().into_parts();
        let base = self.uri.path().trim_end_matches('/');
        let joined = format!("{base}{path_and_query}");
        let joined = PathAndQuery::try_from(joined)
            .map_err(|error| OutboundError::Target(format!("the path cannot be sent: {error}")))?;
        parts.path_and_query = Some(joined);
        Uri::from_parts(parts).map_err(|error| OutboundError::Target(error.to_string()))
    }
}

/// The host as people know it; paths and queries may hold what only the caller should see.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.uri.authority().map_or("", |host| host.as_str());
        write!(f, "https://{host}")
    }
}
