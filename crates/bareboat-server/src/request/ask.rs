//! A parsed and authenticated request, without its body.

use super::info::RequestInfo;
use super::query::Query;
use crate::diagnostics::Trace;
use crate::revocation::Standing;
use crate::server::stopping::Parting;
use bareboat_api::kind::User;
use bareboat_api::value::write_string;
use http::{HeaderMap, Method, header};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Longer manager names are rejected if the client chose them, and cut if they come from User-Agent.
const LONGEST_MANAGER: usize = 128;

/// Everything about a request that verbs need.
pub struct Ask {
    /// The HTTP method.
    pub method: Method,
    /// The URI as sent.
    pub uri: http::Uri,
    /// The parsed target.
    pub info: Arc<RequestInfo>,
    /// The decoded query of the URL.
    pub query: Query,
    /// The headers of the request.
    pub headers: Arc<HeaderMap>,
    /// The requesting user.
    pub user: Arc<User>,
    /// The origin of the request.
    pub came: Came,
    /// The connection, for answers that upgrade it.
    pub upgrade: Option<hyper::upgrade::OnUpgrade>,
    /// The stages the request has passed, for logs.
    pub(crate) trace: Arc<Trace>,
    /// The deadline of the answer.
    pub deadline: Instant,
    /// Warnings for the client.
    pub warnings: Warnings,
    /// Whether the request uses the raw endpoint: objects have their stored version, and nothing is converted.
    pub raw: bool,
    /// Whether writes are stored even if a function answers those of clients.
    pub stores: bool,
    /// Whether the answer may be a stream: it may take any time.
    pub(crate) streams: bool,
    /// For streams of connections: whether the client may still have it.
    pub(crate) standing: Option<Arc<Standing>>,
    /// What the shutdown of the server means for it.
    pub(crate) parting: Parting,
    /// The state of the store that the request was decided on.
    pub(crate) basis: Basis,
}

bareboat_api::opaque_debug!(Ask);

/// The revisions of the store at which a request was authorized, and at which its write began. They matter if several
/// servers share the store.
#[derive(Debug, Default)]
pub(crate) struct Basis {
    authorized: AtomicU64,
    begun: AtomicU64,
}

impl Basis {
    /// A request that is authorized next.
    pub(crate) fn at(revision: u64) -> Basis {
        Basis {
            authorized: AtomicU64::new(revision),
            begun: AtomicU64::new(revision),
        }
    }

    /// Notes that the request is authorized again next, and then its write begins again.
    pub(crate) fn begin_again_at(&self, revision: u64) {
        self.authorized.store(revision, Ordering::Relaxed);
        self.begin_at(revision);
    }

    /// Notes that the write begins, or begins again.
    pub(crate) fn begin_at(&self, revision: u64) {
        self.begun.store(revision, Ordering::Relaxed);
    }

    pub(crate) fn authorized(&self) -> u64 {
        self.authorized.load(Ordering::Relaxed)
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Came {
    /// The address of the client; `None` for in-process requests.
    pub from: Option<std::net::IpAddr>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}

impl Ask {
    /// The name of the request in logs and in audit events.
    pub fn audit_id(&self) -> &str {
        self.trace.audit_id()
    }

    /// The host and port that the client asked for: the `Host` header, or `:authority` of HTTP/2.
    pub(crate) fn host(&self) -> Option<&str> {
        let header = self.headers.get(header::HOST);
        let header = header.and_then(|host| host.to_str().ok());
        header.or_else(|| self.uri.authority().map(|authority| authority.as_str()))
    }

    /// Returns who makes the request, as the log of the store keeps it: user, field manager and audit id.
    pub(crate) fn actor(&self) -> Arc<str> {
        let parts: [(&[u8], &str); 3] = [
            (br#"{"user":"#, &self.user.name),
            (
                br#","manager":"#,
                self.manager(self.query.given("fieldManager")),
            ),
            (br#","audit":"#, self.audit_id()),
        ];
        let mut actor = Vec::with_capacity(128);
        for (before, text) in parts {
            actor.extend_from_slice(before);
            write_string(text, &mut actor);
        }
        actor.push(b'}');
        String::from_utf8(actor).unwrap_or_default().into()
    }

    /// Returns the field manager of the request: the one the client chose, or the first part of its User-Agent.
    pub fn manager<'a>(&'a self, chosen: Option<&'a str>) -> &'a str {
        if let Some(name) = chosen {
            return name;
        }
        let agent = self
            .headers
            .get(http::header::USER_AGENT)
            .and_then(|agent| agent.to_str().ok());
        let name = agent.unwrap_or("").split('/').next().unwrap_or("");
        if name.len() <= LONGEST_MANAGER && !name.is_empty() {
            return name;
        }
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

bareboat_api::opaque_debug!(Warnings);

/// Warnings in the order in which they were added.
#[derive(Default)]
struct Collected {
    texts: Vec<String>,
    seen: HashSet<String>,
}

impl Warnings {
    /// Adds a warning unless it is present already.
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
