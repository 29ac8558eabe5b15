//! What controllers ask about remote groups: whether a server answers, and which resources it has.

use super::fetch::{self, Wanted};
use super::{Route, refresh};
use crate::Server;
use crate::discovery::RemoteVersion;
use crate::outbound::OutboundError;

/// Maximum size of an answer that is read, so that its connection can be used again.
const MOST: usize = 1 << 20;

impl Server {
    /// Asks the server of a remote APIService for its discovery, and returns why it is not available. Returns `None` if
    /// this server serves the version itself.
    pub async fn probe_api_service(&self, name: &str) -> Option<Result<(), String>> {
        let route = self.state.aggregation.named(name)?;
        Some(self.probe(&route).await)
    }

    async fn probe(&self, route: &Route) -> Result<(), String> {
        let path = route.root();
        let url = route.backend.remote.destination();
        let url = url.map(|to| format!("{to}{path}")).unwrap_or_default();
        let wanted = Wanted {
            path: &path,
            accept: "application/json",
            etag: None,
            most: MOST,
        };
        let outbound = self.state.proxy.outbound();
        let error = match fetch::get(outbound, &route.backend, wanted).await {
            // Only the status code counts; the body need not be readable.
            Ok(fetched) if fetched.code.is_success() => return Ok(()),
            Ok(fetched) => OutboundError::Refused {
                uri: url.parse().unwrap_or_default(),
                code: fetched.code,
                page: String::new(),
            },
            Err(error) => error,
        };
        let why = match outbound.shows_causes() {
            true => describe(&error, &url),
            false => outbound.disclose_in_condition(&path, &error),
        };
        Err(format!("failing or missing response from {url}: {why}"))
    }

    /// Fetches discovery and OpenAPI of the server of a remote APIService, unless they are known and recent.
    pub async fn refresh_api_service(&self, name: &str) {
        if let Some(route) = self.state.aggregation.named(name) {
            refresh::refresh(&self.state, &route).await;
        }
    }

    /// Returns the groups and versions that other servers serve. The resources of a server that is not available are
    /// not known.
    pub fn remote_versions(&self) -> Vec<RemoteVersion> {
        self.state.aggregation.versions()
    }

    /// Returns whether other servers serve any group and version. It costs next to nothing.
    pub fn has_remote_versions(&self) -> bool {
        self.state.aggregation.has_routes()
    }

    /// Returns whether another server serves this group and version.
    pub fn is_remote(&self, group: &str, version: &str) -> bool {
        self.state.aggregation.find(group, version).is_some()
    }
}

fn describe(error: &OutboundError, url: &str) -> String {
    match error {
        OutboundError::Unreachable { why, .. } | OutboundError::Broken { why, .. } => {
            format!("Get \"{url}\": {why}")
        }
        OutboundError::Refused { code, .. } => {
            format!("bad status from {url}: {}", code.as_u16())
        }
        OutboundError::Timeout(_) => {
            format!(
                "Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            )
        }
        other => other.to_string(),
    }
}
