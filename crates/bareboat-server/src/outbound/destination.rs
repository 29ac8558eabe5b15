//! Destinations of calls: a URL or a service, and the certificates to trust.
//!
//! A service is called by its name in the cluster, `NAME.NAMESPACE.svc`, which its certificate must also name; its
//! network address is resolved for each connection.

/// The address of a destination.
pub(crate) use bareboat_schema::Target as Address;

use super::error::OutboundError;
use crate::tls::{ClientIdentity, Trust};
use bareboat_api::names::is_dns1123_label;
use http::Uri;
use http::uri::PathAndQuery;
use std::fmt;
use std::net::SocketAddr;

/// How the host of a URL is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// The host is a name that DNS resolves, or an address.
    Dns,
    /// The host names a service, which the `ServiceResolver` resolves.
    Service,
    /// Like `Dns`, and the connection may be unencrypted: the URL says so.
    Plain,
    /// The host is a name of the certificate alone; the server is at this address.
    At(SocketAddr),
}

/// The origin of a destination, which decides whether its address is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChosenBy {
    /// Someone who writes objects.
    Clients,
    /// The operator by flags or files, or the program.
    Operator,
}

/// The client certificate presented to a destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shown {
    /// No certificate.
    Nothing,
    /// The certificate for proxied requests.
    FrontProxy,
    /// The one in a secret, `NAMESPACE/NAME`.
    Secret(String),
    /// One of the program's.
    Given(ClientIdentity),
}

/// The HTTP version of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// HTTP/2 if the server offers it.
    Best,
    /// HTTP/1.1, which supports upgrades.
    Http1,
}

/// A server to call: URL, trusted CAs, and client certificate.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(super) uri: Uri,
    pub(super) route: Route,
    pub(super) trust: Trust,
    pub(super) shown: Shown,
    pub(super) chosen_by: ChosenBy,
}

impl Destination {
    /// A destination at an address, called with a query. Its certificate must be trusted by the bundle: base64 of PEM,
    /// or empty for the system's roots. Clients chose it, unless [`Destination::chosen_by`] says otherwise.
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
                // No other characters may reach the host of a URL.
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
            chosen_by: ChosenBy::Clients,
        })
    }

    /// A destination at an `http` or `https` URL, for requests that carry no identity of this server's users.
    pub(crate) fn of_url(url: &str, ca_bundle: &str) -> Result<Destination, OutboundError> {
        let Some(rest) = url.strip_prefix("http://") else {
            return Destination::new(&Address::Url(url.to_owned()), "", ca_bundle);
        };
        let encrypted = Address::Url(format!("https://{rest}"));
        let mut destination = Destination::new(&encrypted, "", ca_bundle)?;
        destination.uri = url
            .parse()
            .map_err(|error| OutboundError::Target(format!("{url:?} is no URL: {error}")))?;
        destination.route = Route::Plain;
        Ok(destination)
    }

    /// A server at an address, whose certificate has a name.
    pub(crate) fn of_address(
        address: SocketAddr,
        name: &str,
        ca_bundle: &str,
    ) -> Result<Destination, OutboundError> {
        let host = match name.contains(':') {
            true => format!("[{name}]"),
            false => name.to_owned(),
        };
        let url = Address::Url(format!("https://{host}:{}", address.port()));
        let mut destination = Destination::new(&url, "", ca_bundle)?;
        destination.route = Route::At(address);
        Ok(destination)
    }

    /// Returns the same destination with a client certificate.
    #[must_use]
    pub(crate) fn showing(mut self, shown: Shown) -> Destination {
        self.shown = shown;
        self
    }

    /// Returns the same destination, of which any certificate is accepted.
    #[must_use]
    pub(crate) fn unverified(mut self) -> Destination {
        self.trust = Trust::unverified();
        self
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the same destination, called with a query.
    pub(crate) fn with_query(&self, query: &str) -> Result<Destination, OutboundError> {
        let path = self.uri.path();
        let mut parts = self.uri.clone().into_parts();
        let target = PathAndQuery::try_from(format!("{path}?{query}"));
        parts.path_and_query =
            Some(target.map_err(|error| OutboundError::Target(error.to_string()))?);
        Ok(Destination {
            uri: Uri::from_parts(parts)
                .map_err(|error| OutboundError::Target(error.to_string()))?,
            ..self.clone()
        })
    }

    /// Returns the same destination with another origin.
    #[must_use]
    pub(crate) fn chosen_by(mut self, chosen_by: ChosenBy) -> Destination {
        self.chosen_by = chosen_by;
        self
    }

    /// Returns the URL of a path below the destination's path.
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

/// Shows the host only; paths and queries may contain data that only the caller should see.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.uri.authority().map_or("", |host| host.as_str());
        let scheme = self.uri.scheme_str().unwrap_or("https");
        write!(f, "{scheme}://{host}")
    }
}
