//! The task that checks streams: it waits for a change or an expiry, then authorizes each stream again.

use super::reviewed::reviewed;
use super::{Changes, Registry, Stream};
use crate::connections::Close;
use crate::request::info::RequestInfo;
use crate::server::authenticate::{accepts_anonymous, identify};
use crate::server::state::State;
use crate::{authn, authz};
use bareboat_api::admission::Right;
use bareboat_api::kind::User;
use futures_util::stream::{self, StreamExt as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long changes are collected, so that several share one round. It is longer if rounds take long, so that they
/// never take more than a tenth of the time.
const COLLECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(1500));
/// The clock is read again after this long, because it may have been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(600);
/// How long an upgraded connection may take to end.
const FAREWELL: Duration = Duration::from_secs(1);
/// How many streams are checked at once. A webhook may decide about some of them, and take long.
const AT_ONCE: usize = 64;
/// How long a webhook that could not review a stream is left alone before it is asked once more.
const SECOND_TRY: Duration = Duration::from_secs(1);

/// Checks streams until the server is gone.
pub(super) async fn judge(state: Weak<State>, registry: Arc<Registry>) {
    let mut took = Duration::ZERO;
    loop {
        let earliest = earliest(&registry);
        registry.earliest.store(earliest, Ordering::Release);
        match earliest {
            0 => registry.changed.notified().await,
            due => {
                let wait = Duration::from_secs(u64::try_from(due - now()).unwrap_or(0));
                tokio::select! {
                    () = registry.changed.notified() => {}
                    () = tokio::time::sleep(wait.min(LONGEST_SLEEP)) => {}
                }
            }
        }
        tokio::time::sleep((took * 10).clamp(COLLECT.0, COLLECT.1)).await;
        let Some(state) = state.upgrade() else {
            return;
        };
        let changes = std::mem::take(&mut *registry.changes.lock());
        let begun = Instant::now();
        round(&state, &registry, &changes).await;
        took = begun.elapsed();
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// Returns when the first credential expires; 0 if none does.
fn earliest(registry: &Registry) -> i64 {
    let streams = registry.streams.lock();
    let dues = streams.values().map(|it| it.due.load(Ordering::Relaxed));
    dues.filter(|due| *due > 0).min().unwrap_or(0)
}

async fn round(state: &State, registry: &Registry, changes: &Changes) {
    let now = now();
    let expired = |stream: &Stream| {
        let due = stream.due.load(Ordering::Relaxed);
        due > 0 && due <= now
    };
    let concerned: Vec<Arc<Stream>> = registry
        .streams
        .lock()
        .values()
        .filter(|stream| expired(stream) || changes.concern(&stream.authenticated))
        .cloned()
        .collect();
    let check = |stream: Arc<Stream>| async move {
        // Most checks do not wait for anything: the task yields after each AT_ONCE of them.
        tokio::task::yield_now().await;
        if !may_stay_for_sure(state, &stream).await {
            tracing::info!(user = %stream.user.name, "a stream ends: its client lost the permission for it");
            stream.end();
            stream.due.store(0, Ordering::Relaxed);
            if stream.client.line.is_upgraded() {
                tokio::spawn(cut_off(stream));
            }
            return;
        }
        if expired(&stream) {
            stream.postpone(now);
        }
        stream.stays();
    };
    let checks = stream::iter(concerned).for_each_concurrent(AT_ONCE, check);
    checks.await;
}

/// Closes an upgraded connection unless it ends within a moment, because a program may hold it.
async fn cut_off(stream: Arc<Stream>) {
    tokio::time::sleep(FAREWELL).await;
    stream.client.line.close(Close::Now);
}

/// Returns whether a stream may stay. A refusal counts if a webhook could review the stream, or if it could not twice.
async fn may_stay_for_sure(state: &State, stream: &Stream) -> bool {
    let (allowed, unreviewed) = reviewed(may_stay(state, stream)).await;
    if allowed || !unreviewed {
        return allowed;
    }
    tokio::time::sleep(SECOND_TRY).await;
    may_stay(state, stream).await
}

/// Returns whether the same request would be answered now.
async fn may_stay(state: &State, stream: &Stream) -> bool {
    let none = http::HeaderMap::new();
    let headers = stream.credentials.as_deref().unwrap_or(&none);
    let user = match identify(state, &stream.client, headers).await {
        Ok(Some((user, _))) => user,
        Ok(None) if accepts_anonymous(state, &stream.info) => Arc::new(authn::anonymous()),
        _ => return false,
    };
    let authorizer = state.authorizer.as_ref();
    let Ok(user) = authn::impersonate(authorizer, user, headers).await else {
        return false;
    };
    if user.name != stream.user.name {
        return false;
    }
    if stream.by_target && authz::also(authorizer, &user, &stream.info).await.is_err() {
        return false;
    }
    let same = sees_the_same(authorizer, &user, stream).await;
    stream.sees_others.store(!same, Ordering::Release);
    same
}

/// Returns whether the rights that decided what the client sees are unchanged.
async fn sees_the_same(authorizer: &dyn authz::Authorizer, user: &User, stream: &Stream) -> bool {
    for asked in stream.rights.get().into_iter().flatten() {
        let right = RequestInfo::of_right(Right {
            verb: &asked.verb,
            group: &stream.info.group,
            resource: &stream.info.resource,
            subresource: &asked.subresource,
            namespace: &stream.info.namespace,
            name: &stream.info.name,
        });
        if authz::also(authorizer, user, &right).await.is_ok() != asked.allowed {
            return false;
        }
    }
    true
}
