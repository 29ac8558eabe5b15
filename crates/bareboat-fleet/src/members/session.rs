//! The session of a member: probes its health, asks what it serves, and runs a task for each type.
//!
//! Nothing is withdrawn out of ignorance. Rows of a type are removed only if its PediaCluster no longer wants it, if its
//! definition was deleted, or if it was absent in complete answers of the member for a while.

mod negotiate;
mod probe;
mod start;

#[cfg(test)]
pub(crate) use negotiate::identify;

use super::conditions::Condition;
use super::definitions::Pool;
use super::state::MemberState;
use crate::api::MemberApi;
use crate::credentials::Access;
use crate::settings::FleetSettings;
use crate::sync::Streaming;
use crate::sync::writer::Writer;
use crate::types::{Definitions, TypeKey, Wanted};
use bareboat_server::Server;
use bareboat_shelf::{MemberId, Shelf};
use probe::{Health, Probe};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long changes of namespaces are collected.
const NAMESPACES_CHANGE: Duration = Duration::from_millis(500);

/// What all sessions share.
pub(crate) struct Common {
    pub(crate) server: Server,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) writer: Writer,
    pub(crate) refills: Arc<Semaphore>,
    pub(crate) settings: Arc<FleetSettings>,
    pub(crate) definitions: Pool,
    pub(crate) salt: Arc<[u8]>,
    /// Makes the client of a member. Tests have members without sockets.
    pub(crate) connect: Connect,
}

/// Makes the client of a member.
pub(crate) type Connect =
    Box<dyn Fn(&Server, &Access) -> Result<Arc<dyn MemberApi>, String> + Send + Sync>;

/// Makes a client that calls a member over the network.
pub(crate) fn over_network(server: &Server, access: &Access) -> Result<Arc<dyn MemberApi>, String> {
    let api = server.outbound_api(&access.outbound()?);
    Ok(Arc::new(api.map_err(|error| error.to_string())?))
}

/// What a PediaCluster says, as far as the session is concerned.
#[derive(Clone)]
pub(crate) struct Desired {
    pub(crate) access: Result<Access, String>,
    /// How requests of users are forwarded. The session does not need it.
    pub(crate) forwarding: Result<Access, String>,
    pub(crate) wanted: Wanted,
    /// Why it is not known what is to be synced, if it is not.
    pub(crate) invalid: Option<String>,
    /// What is missing but no error, for the message of the condition `Validated`.
    pub(crate) warning: String,
}

impl Desired {
    /// Returns whether nothing changed for the session.
    pub(crate) fn is_same(&self, other: &Desired) -> bool {
        self.same_access(other)
            && self.wanted == other.wanted
            && self.invalid == other.invalid
            && self.warning == other.warning
    }

    fn same_access(&self, other: &Desired) -> bool {
        match (&self.access, &other.access) {
            (Ok(own), Ok(other)) => own.digest() == other.digest(),
            (Err(own), Err(other)) => own == other,
            _ => false,
        }
    }
}

/// A type whose task runs.
struct Running {
    task: JoinHandle<()>,
    /// Marks which objects are synced; the task starts again if it differs.
    mark: String,
}

/// The session of a member.
pub(crate) struct Session {
    common: Arc<Common>,
    state: Arc<MemberState>,
    member: MemberId,
    running: BTreeMap<TypeKey, Running>,
    /// What the member must be asked about again.
    ask: Arc<Notify>,
    /// Namespaces of the member changed, so that a selector may choose others.
    look: Arc<Notify>,
    /// The namespaces that the selector chose last; `None` for all.
    selected: Option<Arc<[String]>>,
    /// Whether the member sends the present state in watches.
    streaming: Arc<Streaming>,
    /// The definitions, once they are known.
    definitions: Option<Definitions>,
    /// Types that a complete answer lacked, and since when.
    absent: BTreeMap<TypeKey, Instant>,
    /// Whether a type could not be started.
    lacks_types: bool,
}

impl Session {
    pub(crate) fn new(common: &Arc<Common>, state: &Arc<MemberState>, member: MemberId) -> Session {
        Session {
            common: common.clone(),
            state: state.clone(),
            member,
            running: BTreeMap::new(),
            ask: Arc::default(),
            look: Arc::default(),
            selected: None,
            streaming: Arc::new(Streaming::new(true)),
            definitions: None,
            absent: BTreeMap::new(),
            lacks_types: false,
        }
    }

    /// Runs until the sender of what is desired is dropped. Then nothing of the member is written any more.
    pub(crate) async fn run(mut self, desired: watch::Receiver<Desired>) {
        let mut end = desired.clone();
        let ended = async move { while end.changed().await.is_ok() {} };
        tokio::select! {
            () = self.follow_all(desired) => {}
            () = ended => {}
        }
        self.stop_types().await;
    }

    async fn follow_all(&mut self, mut desired: watch::Receiver<Desired>) {
        loop {
            let now = desired.borrow_and_update().clone();
            let connected = match &now.access {
                Ok(access) => {
                    self.state.set_url(&access.url);
                    (self.common.connect)(&self.common.server, access)
                }
                Err(why) => Err(why.clone()),
            };
            let connected = connected.map_err(|why| ("InvalidConfig", why));
            let connected = match &now.invalid {
                Some(why) => connected.and(Err(("InvalidSyncResources", why.clone()))),
                None => connected,
            };
            let go_on = match connected {
                Ok(api) => {
                    let valid = Condition::new(true, "Validated", now.warning.clone());
                    self.state
                        .set_condition(|conditions| conditions.validated = valid);
                    self.follow(api, now, &mut desired).await
                }
                Err((reason, why)) => {
                    self.state.set_condition(|conditions| {
                        conditions.validated = Condition::new(false, reason, why);
                        conditions.healthy =
                            Condition::unknown("MonitorStop", "the member cannot be reached");
                        conditions.pause("the PediaCluster is not valid");
                    });
                    if now.invalid.is_none() {
                        self.remove_unwanted(&now.wanted).await;
                    }
                    desired.changed().await.is_ok()
                }
            };
            self.stop_types().await;
            if !go_on {
                return;
            }
        }
    }

    /// Follows a member until its address or credentials change. Returns whether the member still exists.
    async fn follow(
        &mut self,
        api: Arc<dyn MemberApi>,
        mut now: Desired,
        desired: &mut watch::Receiver<Desired>,
    ) -> bool {
        let settings = self.common.settings.clone();
        let mut health = Health::default();
        let mut probes = tokio::time::interval(settings.probe_interval);
        probes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut asked = Instant::now();
        let mut negotiated = false;
        self.remove_unwanted(&now.wanted).await;
        loop {
            let mut looked = false;
            tokio::select! {
                () = self.look.notified(), if negotiated => looked = true,
                changed = desired.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    let next = desired.borrow_and_update().clone();
                    if !next.same_access(&now) || next.invalid.is_some() {
                        return true;
                    }
                    let valid = Condition::new(true, "Validated", next.warning.clone());
                    self.state.set_condition(|conditions| conditions.validated = valid);
                    now = next;
                    self.remove_unwanted(&now.wanted).await;
                    if negotiated {
                        negotiated = self.negotiate(&api, &now.wanted).await;
                        asked = Instant::now();
                    }
                    continue;
                }
                _ = probes.tick() => {}
                () = self.ask.notified(), if negotiated => {
                    // Several changes of definitions mostly come together.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    negotiated = self.negotiate(&api, &now.wanted).await;
                    asked = Instant::now();
                    continue;
                }
            }
            if looked {
                tokio::time::sleep(NAMESPACES_CHANGE).await;
                if self.selects_others(&api, &now.wanted).await {
                    negotiated = self.negotiate(&api, &now.wanted).await;
                    asked = Instant::now();
                }
                continue;
            }
            let found = probe::ask(&*api, &settings).await;
            if found.is_healthy() {
                self.state.heard();
            }
            match health.judge(found) {
                Probe::Healthy => {
                    let due = asked.elapsed() >= settings.discovery_interval;
                    let waits = !self.absent.is_empty() || self.lacks_types;
                    let due = due || (waits && asked.elapsed() >= settings.absent_for);
                    if !negotiated || due {
                        if !negotiated {
                            self.open(&api).await;
                        }
                        negotiated = self.negotiate(&api, &now.wanted).await;
                        asked = Instant::now();
                    }
                    if negotiated && !self.state.is_healthy() {
                        tracing::info!(member = %self.state.name, "a member is healthy");
                    }
                    // After the types are started, so that a member that is ready can be searched.
                    self.state.set_condition(|conditions| {
                        conditions.healthy = Condition::new(true, "Healthy", "");
                    });
                    self.state.publish();
                }
                Probe::Recovering => {}
                Probe::Doubtful => {}
                Probe::Failed(condition) => {
                    if self.state.is_healthy() {
                        tracing::warn!(member = %self.state.name, reason = condition.reason,
                            message = %condition.message, "a member is not healthy; its objects are shown as they were");
                    }
                    self.state
                        .set_condition(|conditions| conditions.healthy = condition);
                    if negotiated {
                        self.stop_types().await;
                        negotiated = false;
                    }
                    self.state.set_condition(|conditions| {
                        conditions.pause("the member is not healthy");
                    });
                }
            }
        }
    }

    /// Ends the tasks of all types. What they wrote stays.
    async fn stop_types(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
        // Each is known until it has ended: this future may be dropped, and then it is called again.
        while let Some(mut first) = self.running.first_entry() {
            let _ = (&mut first.get_mut().task).await;
            first.remove();
        }
        self.state.stop_types();
    }
}

/// Ends a task, and waits until it does nothing more.
async fn end(task: JoinHandle<()>) {
    task.abort();
    // A task that was aborted is an error, as is one that failed; both have ended.
    let _ = task.await;
}

impl Drop for Session {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
    }
}
