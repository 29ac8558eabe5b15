//! A request on its way through the corridor: everything about it but its body.

use super::info::RequestInfo;
use super::query::Query;
use bareboat_api::kind::User;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// Longer names of managers are refused where they are chosen, and cut where they are not.
const LONGEST_MANAGER: usize = 128;

/// Everything a verb may know about a request.
pub struct Ask {
    /// The HTTP method.
    pub method: Method,
    /// The address as it was sent.
    pub uri: http::Uri,
    /// What it is about.
    pub info: Arc<RequestInfo>,
    /// The query.
    pub query: Query,
    /// The headers.
    pub headers: Arc<HeaderMap>,
    /// Who asks.
    pub user: Arc<User>,
    /// Where the request came from.
    pub came: Came,
    /// The connection itself, for those who make something else of it.
    pub upgrade: Option<hyper::upgrade::OnUpgrade>,
    /// What the request is called in logs.
    pub audit_id: String,
    /// When an answer must be there.
    pub deadline: Instant,
    /// What to tell the client beside the answer.
    pub warnings: Warnings,
    /// It is about the object as it is stored, in whatever version: nothing is converted.
    pub as_stored: bool,
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Came {
    /// The address of the client; nothing for requests from inside the process.
    pub from: Option<std::net::IpAddr>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}

impl Ask {
    /// The name the client is recorded under as manager of fields: its own choice, or the
    /// beginning of its User-Agent.
    pub fn manager<'a>(&'a self, chosen: Option<&'a str>) -> &'a str {
        if let Some(name) = chosen {
            return name;
        }
        let agent = self
            .headers
            .get(http::header::USER_AGENT)
            .and_then(|agent| agent.to_str().ok());
        let name = agent.unwrap_or("").split('/').next().unwrap_or("");
        match name.char_indices().nth(LONGEST_MANAGER) {
            _ if name.is_empty() => "unknown",
            Some((end, _)) => &name[..end],
            None => name,
        }
    }
}

/// Warnings collected for one answer; each is sent once.
#[derive(Default)]
pub struct Warnings(Mutex<Collected>);

/// Warnings in the order in which they were added.
#[derive(Default)]
struct Collected {
    texts: Vec<String>,
    seen: HashSet<String>,
}

impl Warnings {
    /// Adds a warning unless it is there already.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.0.lock();
        if warnings.seen.insert(text.clone()) {
            warnings.texts.push(text);
        }
    }

    /// Takes all warnings.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut warnings = self.0.lock();
        warnings.seen.clear();
        std::mem::take(&mut warnings.texts)
    }
}
