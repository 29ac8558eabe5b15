//! Ends watches and connections of clients that lose their permission while they run.
//!
//! Every stream over a socket is registered with its connection, its credentials and its target, so that it can be
//! checked again. One task waits for a change or for the expiry of a credential; otherwise nothing runs.

mod guard;
mod judge;
mod reviewed;

pub(crate) use guard::{End, guard};
#[cfg(feature = "outbound")]
pub(crate) use reviewed::could_not_review;

use crate::authn::{CredentialHeaders, bearer, with_bearer};
use crate::request::info::RequestInfo;
use crate::server::door::SocketClient;
use crate::server::state::State;
use bareboat_api::Value;
use bareboat_api::kind::{AskedRight, User};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderMap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, watch};

/// Maximum number of separate changes for single users; beyond that, every stream is checked.
const MOST_CHANGES: usize = 256;
/// How far clocks may differ before a token counts as expired, in seconds.
const LEEWAY: i64 = 60;

/// Reports changes to streams. Clones share their state.
#[derive(Clone, Default)]
pub struct Revocations(Arc<Registry>);

impl std::fmt::Debug for Revocations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Revocations")
            .field("streams", &self.0.count.load(Ordering::Relaxed))
            .finish()
    }
}

#[derive(Default)]
struct Registry {
    streams: Mutex<HashMap<usize, Arc<Stream>>>,
    next: AtomicUsize,
    /// The number of streams.
    count: AtomicUsize,
    changes: Mutex<Changes>,
    changed: Notify,
    /// When the first credential expires, in seconds since 1970; 0 if none does.
    earliest: AtomicI64,
    is_judging: AtomicBool,
}

/// Returns whether a change affects a user.
type Concerns = Box<dyn Fn(&User) -> bool + Send + Sync>;

/// Changes since streams were last checked.
#[derive(Default)]
struct Changes {
    everything: bool,
    users: Vec<Concerns>,
}

impl Changes {
    fn concern(&self, user: &User) -> bool {
        self.everything || self.users.iter().any(|concerns| concerns(user))
    }
}

impl Revocations {
    /// Reports that roles, bindings, CAs or tokens changed: every stream is checked again.
    pub fn everything_changed(&self) {
        if !self.is_idle() {
            let mut changes = self.0.changes.lock();
            changes.everything = true;
            changes.users.clear();
            drop(changes);
            self.0.changed.notify_one();
        }
    }

    /// Reports a change that only affects some authenticated users, such as the deletion of a service account.
    pub fn changed_for(&self, concerns: impl Fn(&User) -> bool + Send + Sync + 'static) {
        if self.is_idle() {
            return;
        }
        let mut changes = self.0.changes.lock();
        if changes.users.len() >= MOST_CHANGES {
            changes.everything = true;
            changes.users.clear();
        }
        if !changes.everything {
            changes.users.push(Box::new(concerns));
        }
        drop(changes);
        self.0.changed.notify_one();
    }

    /// Returns whether there are no streams, so that changes need not be reported.
    pub fn is_idle(&self) -> bool {
        self.0.count.load(Ordering::Acquire) == 0
    }

    /// Registers a stream, which is checked until the returned value is dropped.
    pub(crate) fn register(&self, state: &Arc<State>, stream: Stream) -> Arc<Standing> {
        let registry = &self.0;
        let id = registry.next.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(stream);
        let due = stream.due.load(Ordering::Relaxed);
        registry.count.fetch_add(1, Ordering::AcqRel);
        registry.streams.lock().insert(id, stream.clone());
        if !registry.is_judging.swap(true, Ordering::AcqRel) {
            let ending = state.ending();
            let judging = judge::judge(Arc::downgrade(state), registry.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = judging => {}
                    () = ending.begun() => {}
                }
            });
        }
        if due > 0 {
            let earliest = registry.earliest.load(Ordering::Acquire);
            if earliest == 0 || due < earliest {
                registry.changed.notify_one();
            }
        }
        Arc::new(Standing {
            id,
            registry: registry.clone(),
            stream,
        })
    }
}

/// Whether the client of a stream still has permission.
pub(crate) struct Standing {
    id: usize,
    registry: Arc<Registry>,
    stream: Arc<Stream>,
}

impl Standing {
    /// Waits until the client loses its permission.
    pub(crate) async fn revoked(&self) {
        let mut woken = pin!(self.stream.woken.notified());
        // Enabled before the flag is read, so that no change is missed in between.
        woken.as_mut().enable();
        if !self.stream.ended.load(Ordering::Acquire) {
            woken.await;
        }
    }
}

impl Standing {
    /// Notes the rights that decided what the client sees. The stream ends when one of them changes.
    pub(crate) fn depends_on(&self, rights: Vec<AskedRight>) {
        // A stream asks once.
        let _ = self.stream.rights.set(rights);
    }

    /// Returns what changes whenever the rights of the client may have changed and the stream may stay.
    pub(crate) fn rounds(&self) -> watch::Receiver<u64> {
        self.stream.rounds.subscribe()
    }

    /// Returns whether the stream ended because the client now sees other objects.
    pub(crate) fn sees_others(&self) -> bool {
        self.stream.sees_others.load(Ordering::Acquire)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.registry.streams.lock().remove(&self.id);
        self.registry.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream, and the data to check it.
pub(crate) struct Stream {
    client: Arc<SocketClient>,
    /// The headers with credentials; `None` if the connection authenticates.
    credentials: Option<Box<HeaderMap>>,
    /// The authenticated user.
    authenticated: Arc<User>,
    /// The effective user: the same, or the impersonated one.
    user: Arc<User>,
    info: Arc<RequestInfo>,
    /// Whether the target decides. Otherwise only the credentials do, and the annex judges the rest.
    by_target: bool,
    /// How often the stream was checked and may stay.
    rounds: watch::Sender<u64>,
    /// When a credential expires, in seconds since 1970; 0 if none does.
    due: AtomicI64,
    ended: AtomicBool,
    /// The rights that decided what the client sees, for kinds with a read filter.
    rights: OnceLock<Vec<AskedRight>>,
    /// Whether one of these rights changed.
    sees_others: AtomicBool,
    /// Wakes tasks that wait for the end.
    woken: Notify,
}

impl Stream {
    pub(crate) fn new(
        client: Arc<SocketClient>,
        headers: &HeaderMap,
        known: &CredentialHeaders,
        authenticated: Arc<User>,
        user: Arc<User>,
        info: Arc<RequestInfo>,
        by_target: bool,
    ) -> Stream {
        // The connection keeps a certificate. Otherwise all headers that authentication may read are kept, but not
        // those that every request has.
        let by_certificate = !client.peer.certificates.is_empty();
        let needed = |name: &str| match name {
            "accept" | "accept-encoding" | "user-agent" | "host" | "content-length" => false,
            "sec-websocket-protocol" | "connection" | "upgrade" => true,
            name => !by_certificate || known.hold(name),
        };
        let credentials: HeaderMap = headers
            .iter()
            .filter(|(name, _)| needed(name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let expires = expiry(&client, headers);
        Stream {
            client,
            credentials: (!credentials.is_empty()).then(|| Box::new(credentials)),
            authenticated,
            user,
            info,
            by_target,
            rounds: watch::Sender::new(0),
            due: AtomicI64::new(expires),
            ended: AtomicBool::new(false),
            rights: OnceLock::new(),
            sees_others: AtomicBool::new(false),
            woken: Notify::new(),
        }
    }

    /// Tells the annex that rights may have changed.
    fn stays(&self) {
        self.rounds.send_modify(|rounds| *rounds += 1);
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.woken.notify_waiters();
    }

    /// Postpones the next check after a credential expired and the stream was found valid, because clocks may differ.
    fn postpone(&self, now: i64) {
        let due = self.due.load(Ordering::Relaxed);
        let next = match due + LEEWAY {
            later if later > now => later,
            _ => 0,
        };
        self.due.store(next, Ordering::Relaxed);
    }
}

/// Returns when the certificate or the token of a request expires; 0 if unknown. The token was verified, so its content
/// can be trusted.
fn expiry(client: &SocketClient, headers: &HeaderMap) -> i64 {
    let certificate = match client.peer.certificates.is_empty() {
        true => i64::MAX,
        false => client.peer.ends(),
    };
    // The token of a WebSocket may be one of its subprotocols.
    let translated = with_bearer(headers).ok().flatten();
    let token = bearer(translated.as_ref().unwrap_or(headers)).and_then(|token| {
        let claims = token.split('.').nth(1)?;
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims = bareboat_wire::json::parse(&claims).ok()?.value;
        claims.get("exp").and_then(Value::as_i64)
    });
    match token.unwrap_or(i64::MAX).min(certificate) {
        i64::MAX => 0,
        // In the second after it.
        end => end.saturating_add(1),
    }
}
