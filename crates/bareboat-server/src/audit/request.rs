//! One audited request: collects its facts, and makes the events of its stages.
//!
//! Every request ends with a `ResponseComplete` or a `Panic` event. For a long-running request (a watch, a connection),
//! and for one whose client disconnects before the answer, the event is made when the last reference is dropped.

use super::arrival::before_now;
use super::{Audit, Unwritten};
use crate::authz::Decision;
use bareboat_api::facts::MessageRef;
use bareboat_api::kind::User;
use bareboat_api::time::print_duration;
use bareboat_api::{Status, Str};
use bareboat_audit::event::{Outcome, Request};
use bareboat_audit::{Event, Level, Messages, Payload, Stage, Stages};
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum number of annotations of one event, and the maximum length of each.
const ANNOTATIONS: (usize, usize) = (64, 8 * 1024);

/// Events of slower answers include the times of their stages.
const SLOW: Duration = Duration::from_millis(500);

/// An audited request.
pub(crate) struct Audited {
    audit: Arc<Audit>,
    request: Arc<Request>,
    omit: Stages,
    known: Mutex<Known>,
}

/// Facts collected while a request runs.
#[derive(Default)]
struct Known {
    impersonated: Option<Arc<User>>,
    created_name: Option<Str>,
    outcome: Option<Outcome>,
    sent: Option<Bytes>,
    answered: Option<Bytes>,
    /// The kinds that protobuf bodies may have.
    messages: Messages,
    annotations: BTreeMap<String, String>,
    /// Whether the last event is made.
    ended: bool,
}

impl Audited {
    pub(super) fn new(audit: Arc<Audit>, request: Arc<Request>, omit: Stages) -> Audited {
        audit.open.fetch_add(1, Ordering::Relaxed);
        Audited {
            audit,
            request,
            omit,
            known: Mutex::default(),
        }
    }

    /// Records the impersonated user.
    pub(crate) fn acts_as(&self, user: &Arc<User>) {
        let other = self.request.user.as_ref();
        if !other.is_some_and(|own| Arc::ptr_eq(own, user)) {
            self.known.lock().impersonated = Some(user.clone());
        }
    }

    /// Records the authorizer's decision.
    pub(crate) fn decided(&self, decision: &Decision) {
        let (word, reason) = match decision {
            Decision::Allow(reason) => ("allow", reason),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => ("forbid", reason),
        };
        self.annotate("authorization.k8s.io/decision", word);
        self.annotate("authorization.k8s.io/reason", reason);
    }

    /// Adds an annotation, unless there is one of that name.
    pub(crate) fn annotate(&self, key: &str, text: &str) {
        let mut known = self.known.lock();
        let annotations = &mut known.annotations;
        if annotations.len() < ANNOTATIONS.0 && !annotations.contains_key(key) {
            let text: String = text.chars().take(ANNOTATIONS.1).collect();
            annotations.insert(key.to_owned(), text);
        }
    }

    /// Records how long the answer took, with its stages.
    pub(crate) fn took(&self, time: Duration, stages: impl FnOnce() -> String) {
        if time >= SLOW {
            let nanoseconds = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            self.annotate(
                "apiserver.latency.k8s.io/total",
                &print_duration(nanoseconds),
            );
            // In audit events of slow requests: how long each stage took.
            self.annotate("bareboat.dev/stages", &stages());
        }
    }

    /// Records a kind that protobuf bodies may have.
    pub(crate) fn speaks(&self, kind: &str, message: Option<MessageRef>) {
        if let Some(message) = message.filter(|_| self.wants_sent() || self.wants_answer()) {
            self.known.lock().messages.push((kind.to_owned(), message));
        }
    }

    /// Returns whether bodies of requests are recorded.
    pub(crate) fn wants_sent(&self) -> bool {
        self.request.level >= Level::Request
    }

    /// Records the body of the request.
    pub(crate) fn sent(&self, body: &Bytes) {
        if self.wants_sent() {
            self.known.lock().sent = Some(body.clone());
        }
    }

    /// Records the name of a new object.
    pub(crate) fn creates(&self, name: &str) {
        self.known.lock().created_name = Some(Str::new(name));
    }

    /// Returns whether the body of the answer is recorded.
    pub(crate) fn wants_answer(&self) -> bool {
        let lists = matches!(self.request.verb.as_str(), "list" | "watch");
        let object = self.request.object.as_ref();
        let issues = object.is_some_and(|object| object.issues_credentials());
        !lists && (issues || self.request.level == Level::RequestResponse)
    }

    /// Records the body of the answer.
    pub(crate) fn answers(&self, body: &Bytes) {
        self.known.lock().answered = Some(body.clone());
    }

    /// Records that the request was refused or failed.
    pub(crate) fn refused(&self, status: &Status, quotes_body: bool) {
        self.known.lock().outcome = Some(Outcome {
            code: status.code,
            status: Some(status.clone()),
            quotes_body,
        });
    }

    /// Makes the event of the arrival.
    pub(super) async fn received(&self) -> Result<(), Unwritten> {
        self.record(Stage::RequestReceived).await
    }

    /// Makes the event of an answer whose head is ready: started for a long-running request, otherwise complete.
    pub(crate) async fn answered(&self, code: StatusCode, lasts: bool) {
        {
            let outcome = &mut self.known.lock().outcome;
            match outcome {
                Some(outcome) => outcome.code = code.as_u16(),
                None => {
                    *outcome = Some(Outcome {
                        code: code.as_u16(),
                        status: None,
                        quotes_body: false,
                    });
                }
            }
        }
        let begins = code.is_success() || code == StatusCode::SWITCHING_PROTOCOLS;
        // A request that failed authentication gets one event, at this stage.
        let is_stranger = self.request.user.is_none();
        let stage = match (lasts && begins) || is_stranger {
            true => Stage::ResponseStarted,
            false => Stage::ResponseComplete,
        };
        if stage == Stage::ResponseComplete || is_stranger {
            self.known.lock().ended = true;
        }
        // The client is answered regardless: its request has been carried out.
        let _ = self.record(stage).await;
    }

    /// Makes the event of a panic.
    pub(crate) async fn panicked(&self) {
        self.known.lock().ended = true;
        let _ = self.record(Stage::Panic).await;
    }

    async fn record(&self, stage: Stage) -> Result<(), Unwritten> {
        if self.omit.has(stage) {
            return Ok(());
        }
        let event = self.event(stage);
        self.audit.record(event).await
    }

    fn event(&self, stage: Stage) -> Event {
        let known = self.known.lock();
        Event {
            request: self.request.clone(),
            stage,
            time: before_now(Duration::ZERO),
            impersonated: known.impersonated.clone(),
            created_name: known.created_name.clone(),
            outcome: known.outcome.clone(),
            request_object: known.payload(known.sent.as_ref()),
            response_object: known.payload(known.answered.as_ref()),
            annotations: known.annotations.clone(),
        }
    }
}

impl Known {
    fn payload(&self, body: Option<&Bytes>) -> Option<Payload> {
        Some(Payload::new(body?.clone()).of_kinds(&self.messages))
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        let has_ended = std::mem::replace(&mut self.known.lock().ended, true);
        if !has_ended && !self.omit.has(Stage::ResponseComplete) {
            let event = self.event(Stage::ResponseComplete);
            self.audit.record_later(event);
        }
        self.audit.open.fetch_sub(1, Ordering::Relaxed);
    }
}
