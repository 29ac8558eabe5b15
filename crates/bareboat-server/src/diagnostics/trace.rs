//! The stages of one request, with their times.

use crate::aggregation::Route;
use crate::audit::Audited;
use crate::request::info::RequestInfo;
use crate::spans::{ChildSpan, Recorder, SpanId};
use bareboat_api::kind::{Kind, User};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tracing::field::Empty;

/// A stage that a request has passed, in order. Reads skip those of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The URL is parsed.
    Parsed = 1,
    /// The user is authenticated.
    Authenticated,
    /// The user may impersonate, if the request asked for it.
    Impersonated,
    /// The request has a seat.
    Flow,
    /// The request is authorized.
    Authorized,
    /// The body has arrived.
    Read,
    /// The body is decoded and the new object computed.
    Decoded,
    /// Mutating admission has changed the object.
    Mutated,
    /// The object is valid.
    Validated,
    /// Validating admission has accepted the object.
    Admitted,
    /// The write is durable.
    Committed,
    /// The head of the answer is made.
    Answered,
}

const STAGES: [Stage; 12] = [
    Stage::Parsed,
    Stage::Authenticated,
    Stage::Impersonated,
    Stage::Flow,
    Stage::Authorized,
    Stage::Read,
    Stage::Decoded,
    Stage::Mutated,
    Stage::Validated,
    Stage::Admitted,
    Stage::Committed,
    Stage::Answered,
];

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Parsed => "parsed",
            Stage::Authenticated => "authenticated",
            Stage::Impersonated => "impersonated",
            Stage::Flow => "flow",
            Stage::Authorized => "authorized",
            Stage::Read => "read",
            Stage::Decoded => "decoded",
            Stage::Mutated => "mutated",
            Stage::Validated => "validated",
            Stage::Admitted => "admitted",
            Stage::Committed => "committed",
            Stage::Answered => "answered",
        }
    }
}

/// Returns what a request does after a stage, for log lines.
fn after(last: Option<Stage>) -> &'static str {
    match last {
        None => "parsing",
        Some(Stage::Parsed) => "authentication",
        Some(Stage::Authenticated) => "impersonation",
        Some(Stage::Impersonated) => "flow control",
        Some(Stage::Flow) => "authorization",
        Some(Stage::Authorized) => "handling",
        Some(Stage::Read) => "decoding",
        Some(Stage::Decoded) => "mutating admission",
        Some(Stage::Mutated) => "validation",
        Some(Stage::Validated) => "validating admission",
        Some(Stage::Admitted) => "commit",
        Some(Stage::Committed | Stage::Answered) => "answering",
    }
}

/// The trace of one request.
pub(crate) struct Trace {
    audit_id: Arc<str>,
    started: Instant,
    /// The span of this request's debug lines; disabled unless they are logged.
    span: tracing::Span,
    info: OnceLock<Arc<RequestInfo>>,
    user: OnceLock<Arc<User>>,
    /// The kind that answers the request, for metrics.
    kind: OnceLock<Arc<Kind>>,
    /// Set if another server answers the request.
    route: OnceLock<Arc<Route>>,
    /// Set if the request is audited.
    audited: OnceLock<Arc<Audited>>,
    /// Set if the request has a span of distributed tracing.
    recorder: Option<Arc<Recorder>>,
    /// The last stage that was passed; 0 for none.
    last: AtomicU8,
    /// Microseconds from the start to each stage; 0 for stages that were not timed.
    times: [AtomicU32; STAGES.len()],
    /// Whether the request has waited for something.
    has_waited: AtomicBool,
    /// Whether a log line about the end of the request exists.
    reported: AtomicBool,
}

impl Trace {
    /// Starts a trace.
    pub(crate) fn new(audit_id: Arc<str>, method: &http::Method, path: &str) -> Trace {
        let span = tracing::debug_span!(
            target: "bareboat_server::request",
            "request",
            audit_id = &*audit_id,
            method = method.as_str(),
            path,
            verb = Empty,
            resource = Empty,
            namespace = Empty,
            name = Empty,
            user = Empty,
        );
        Trace {
            audit_id,
            started: Instant::now(),
            span,
            info: OnceLock::new(),
            user: OnceLock::new(),
            kind: OnceLock::new(),
            route: OnceLock::new(),
            audited: OnceLock::new(),
            recorder: None,
            last: AtomicU8::new(0),
            times: Default::default(),
            has_waited: AtomicBool::new(false),
            reported: AtomicBool::new(false),
        }
    }

    /// Records the span of this request for distributed tracing, if there is one.
    #[must_use]
    pub(crate) fn recorded_by(mut self, recorder: Option<Arc<Recorder>>) -> Trace {
        self.recorder = recorder;
        self
    }

    /// Returns what records the span of the request, if it has one.
    pub(crate) fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref()
    }

    /// Returns the ID of the request in logs and in audit events.
    pub(crate) fn audit_id(&self) -> &str {
        &self.audit_id
    }

    /// Returns that ID, for work that outlives the trace.
    pub(crate) fn shared_audit_id(&self) -> Arc<str> {
        self.audit_id.clone()
    }

    /// Returns the span of this request's log lines.
    pub(crate) fn span(&self) -> &tracing::Span {
        &self.span
    }

    /// Returns when the request started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the parsed URL, once it is known.
    pub(crate) fn info(&self) -> Option<&RequestInfo> {
        self.info.get().map(|info| &**info)
    }

    /// Returns the user, once it is known.
    pub(crate) fn user(&self) -> Option<&Arc<User>> {
        self.user.get()
    }

    /// Records that another server answers the request.
    pub(crate) fn goes_to(&self, route: Arc<Route>) {
        let _ = self.route.set(route);
    }

    /// Returns the server that answers the request, if it is another one.
    pub(crate) fn route(&self) -> Option<&Arc<Route>> {
        self.route.get()
    }

    /// Records the kind that answers the request.
    pub(crate) fn is_about(&self, kind: &Arc<Kind>) {
        let _ = self.kind.set(kind.clone());
    }

    /// Returns the kind that answers the request, once it is known.
    pub(crate) fn kind(&self) -> Option<&Arc<Kind>> {
        self.kind.get()
    }

    /// Sets the audit record.
    #[cfg(feature = "audit")]
    pub(crate) fn audit(&self, audited: Arc<Audited>) {
        let _ = self.audited.set(audited);
    }

    /// Returns the audit record, if the request is audited.
    pub(crate) fn audited(&self) -> Option<&Arc<Audited>> {
        self.audited.get()
    }

    /// Records that the URL is parsed.
    pub(crate) fn parsed(&self, info: &Arc<RequestInfo>) {
        let _ = self.info.set(info.clone());
        if !self.span.is_disabled() {
            self.span.record("verb", info.verb.as_str());
            if info.is_resource {
                self.span.record("resource", resource(info).as_str());
            }
            for (field, text) in [("namespace", &info.namespace), ("name", &info.name)] {
                if !text.is_empty() {
                    self.span.record(field, text.as_str());
                }
            }
        }
        self.skip(Stage::Parsed);
    }

    /// Records the user, after impersonation.
    pub(crate) fn acts_as(&self, user: &Arc<User>) {
        self.span.record("user", user.name.as_str());
        let _ = self.user.set(user.clone());
        if let Some(audited) = self.audited() {
            audited.acts_as(user);
        }
        self.skip(Stage::Impersonated);
    }

    /// Records a stage that can take long. Returns the time since the start.
    pub(crate) fn pass(&self, stage: Stage) -> Duration {
        let elapsed = self.started.elapsed();
        self.pass_after(stage, elapsed);
        elapsed
    }

    /// Records a stage that was passed after so much time.
    pub(crate) fn pass_after(&self, stage: Stage, elapsed: Duration) {
        self.last.store(stage as u8, Ordering::Relaxed);
        let time = u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX);
        self.times[stage as usize - 1].store(time.max(1), Ordering::Relaxed);
        tracing::debug!(
            target: "bareboat_server::request",
            parent: &self.span,
            stage = stage.name(),
            microseconds = time,
            "stage passed"
        );
    }

    /// Notes that the request waits for something.
    pub(crate) fn waits(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
    }

    /// Records a stage that takes no time unless the request has waited. Only then the clock is read, or if debug lines
    /// are logged or the request is sampled.
    pub(crate) fn pass_soon(&self, stage: Stage) {
        if self.is_timed() || self.has_waited.load(Ordering::Relaxed) {
            self.pass(stage);
            return;
        }
        self.last.store(stage as u8, Ordering::Relaxed);
        self.times[stage as usize - 1].store(1, Ordering::Relaxed);
    }

    /// Records a stage that takes no time: it is timed only if debug lines are logged or the request is sampled.
    pub(crate) fn skip(&self, stage: Stage) {
        match self.is_timed() {
            true => {
                self.pass(stage);
            }
            false => self.last.store(stage as u8, Ordering::Relaxed),
        }
    }

    /// Returns whether every stage is timed.
    fn is_timed(&self) -> bool {
        let is_sampled = || self.recorder.as_ref().is_some_and(|one| one.is_sampled());
        !self.span.is_disabled() || is_sampled()
    }

    /// Returns whether a stage that is always timed is passed.
    pub(crate) fn has_passed(&self, stage: Stage) -> bool {
        self.times[stage as usize - 1].load(Ordering::Relaxed) > 0
    }

    /// Returns what the request does now, or did when it ended.
    pub(crate) fn doing(&self) -> &'static str {
        let last = usize::from(self.last.load(Ordering::Relaxed));
        after(last.checked_sub(1).and_then(|at| STAGES.get(at).copied()))
    }

    /// Returns whether this is the first log line about the end of the request.
    pub(crate) fn report(&self) -> bool {
        !self.reported.swap(true, Ordering::Relaxed)
    }

    /// Returns whether a log line about the end of the request exists.
    pub(crate) fn is_reported(&self) -> bool {
        self.reported.load(Ordering::Relaxed)
    }

    /// Returns a span for each timed stage.
    pub(crate) fn stages(&self) -> Vec<ChildSpan> {
        let (mut spans, mut last, mut from) = (Vec::new(), None, Duration::ZERO);
        for (stage, time) in STAGES.into_iter().zip(&self.times) {
            let micros = time.load(Ordering::Relaxed);
            if micros > 0 {
                let to = Duration::from_micros(micros.into()).max(from);
                spans.push(ChildSpan {
                    id: SpanId::random(),
                    name: after(last).to_owned(),
                    is_call: false,
                    from,
                    to,
                    failed: false,
                    attributes: Vec::new(),
                });
                (last, from) = (Some(stage), to);
            }
        }
        spans
    }

    /// Returns the name of the request's span: verb and resource, or the verb alone. Names of objects and unknown
    /// paths are not part of it.
    pub(crate) fn span_name(&self) -> String {
        match self.info() {
            Some(info) if info.is_resource => format!("{} {}", info.verb, resource(info)),
            Some(info) => info.verb.to_string(),
            None => "request".to_owned(),
        }
    }

    /// Returns what is known about the request, for its span.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("audit.id", self.audit_id.to_string())];
        if let Some(info) = self.info() {
            let resource = match info.is_resource {
                true => resource(info),
                false => String::new(),
            };
            let known = [
                ("url.path", info.path.as_str()),
                ("k8s.verb", &info.verb),
                ("k8s.resource", &resource),
                ("k8s.namespace.name", &info.namespace),
                ("k8s.object.name", &info.name),
            ];
            let known = known.into_iter().filter(|(_, text)| !text.is_empty());
            all.extend(known.map(|(name, text)| (name, text.to_owned())));
        }
        let user = self
            .user()
            .map(|user| ("enduser.id", user.name.to_string()));
        all.extend(user);
        all
    }

    /// Returns the times of the timed stages, such as `authenticated=0.1ms authorized=0.2ms`.
    pub(crate) fn times(&self) -> String {
        let mut text = String::new();
        for (stage, time) in STAGES.iter().zip(&self.times) {
            let micros = time.load(Ordering::Relaxed);
            if micros > 0 {
                let gap = if text.is_empty() { "" } else { " " };
                let time = Duration::from_micros(micros.into()).as_secs_f64() * 1000.0;
                let _ = write!(text, "{gap}{}={time:.1}ms", stage.name());
            }
        }
        text
    }
}

/// `resource` or `resource/subresource`, with the group.
pub(super) fn resource(info: &RequestInfo) -> String {
    let mut text = info.resource.to_string();
    if !info.group.is_empty() {
        text.push('.');
        text.push_str(&info.group);
    }
    if !info.subresource.is_empty() {
        text.push('/');
        text.push_str(&info.subresource);
    }
    text
}
