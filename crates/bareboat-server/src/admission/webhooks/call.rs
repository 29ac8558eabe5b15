//! Calls a webhook: sends an AdmissionReview, and reads the answer.

use super::credentials::WebhookCredentials;
use super::hook::{Hook, ReviewVersion, SideEffects};
use super::response::{self, Answer, Unusable};
use super::review_text::ReviewText;
use crate::admission::pass::Pass;
use crate::outbound::{Bounds, Destination, Outbound, OutboundError};
use crate::spans::{Call, Recorder};
use bareboat_api::Status;
use bytes::Bytes;
use http::{Method, Request, header};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum size of an answer to a small review.
const ANSWER: usize = 4 << 20;
/// Beyond that, an answer may be this many times larger than the review.
const GROWTH: usize = 4;
/// The code of failures without one, in metrics.
const UNAVAILABLE: u16 = 503;

/// Why a webhook did not admit a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// The call failed: the failure policy decides. The text follows the name of the webhook; the code is for metrics.
    Call(String, u16),
    /// The webhook refused the request.
    Denied(Status),
    /// Something else failed, and the request with it.
    Other(Status),
}

/// A review that is ready to be sent.
pub(super) struct Question {
    version: ReviewVersion,
    uid: String,
    mutating: bool,
    text: ReviewText,
    destination: Destination,
    time: Duration,
    recorder: Option<Arc<Recorder>>,
}

impl Question {
    /// Returns what is sent, in pieces.
    pub(super) fn pieces(&self) -> &[Bytes] {
        self.text.pieces()
    }
}

/// Sends reviews.
pub(super) struct Caller {
    outbound: Arc<Outbound>,
    credentials: WebhookCredentials,
}

impl Caller {
    pub(super) fn new(outbound: Arc<Outbound>, credentials: WebhookCredentials) -> Caller {
        Caller {
            outbound,
            credentials,
        }
    }

    /// Makes the review for a hook. The objects are prepared in the form.
    pub(super) fn question(
        &self,
        hook: &Hook,
        pass: &Pass<'_, '_>,
        form: usize,
        mutating: bool,
    ) -> Result<Question, Failure> {
        if pass.review().dry_run {
            match hook.side_effects {
                SideEffects::None => {}
                SideEffects::Unset => {
                    return Err(Failure::Call("Webhook SideEffects is nil".to_owned(), 400));
                }
                SideEffects::Some => {
                    let why = format!(
                        "admission webhook {:?} does not support dry run",
                        hook.name.as_str()
                    );
                    return Err(Failure::Other(Status::bad_request(why)));
                }
            }
        }
        let version = hook.review.ok_or_else(|| {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            Failure::Call(why.to_owned(), 400)
        })?;
        let destination = hook
            .destination
            .as_ref()
            .map_err(|error| Failure::Call(format!("could not get REST client: {error}"), 500))?;
        let time = hook.timeout.min(time_left(pass));
        if time.is_zero() {
            return Err(Failure::Other(timeout()));
        }
        let query = format!("timeout={}s", time.as_millis().div_ceil(1000).max(1));
        let destination = destination
            .with_query(&query)
            .map_err(|error| Failure::Call(format!("could not get REST client: {error}"), 500))?;
        let uid = crate::random::uuid().to_string();
        let mut request = pass.request_value(form);
        request.make_object().insert("uid", uid.as_str().into());
        let objects = (pass.object_text(form), pass.old_text(form));
        Ok(Question {
            version,
            mutating,
            text: ReviewText::new(version.api_version(), &request, objects),
            uid,
            destination: self.credentials.shown_to(&hook.host, destination),
            time,
            recorder: pass.ground().recorder.cloned(),
        })
    }

    /// Sends a review. The request holds no seat meanwhile: the caller wraps this in `flow::away`.
    pub(super) async fn send(&self, hook: &Hook, question: &Question) -> Result<Bytes, Failure> {
        let Some(recorder) = &question.recorder else {
            return self.exchange(hook, question, None).await;
        };
        let call = recorder.call(format!("webhook {}", hook.name));
        let sent = self.exchange(hook, question, Some(&call)).await;
        call.end(sent.is_err());
        sent
    }

    async fn exchange(
        &self,
        hook: &Hook,
        question: &Question,
        call: Option<&Call>,
    ) -> Result<Bytes, Failure> {
        let bounds = Bounds {
            time: question.time,
            answer: ANSWER + GROWTH * question.text.len(),
        };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(question.destination.uri())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "bareboat-admission");
        match self.credentials.authorization(&hook.host).await {
            Ok(Some(words)) => request = request.header(header::AUTHORIZATION, words),
            Ok(None) => {}
            Err(why) => {
                return Err(Failure::Call(
                    format!("could not get REST client: {why}"),
                    500,
                ));
            }
        }
        let mut request = request
            .body(question.text.body())
            .map_err(|error| Failure::Call(format!("could not get REST client: {error}"), 500))?;
        if let Some(call) = call {
            call.add_to(request.headers_mut());
        }
        let outbound = self.credentials.outbound(&hook.host);
        let outbound = outbound.unwrap_or(&self.outbound);
        let exchange = outbound.exchange(&question.destination, request, bounds);
        exchange.await.map_err(|error| {
            let code = match &error {
                OutboundError::Refused { code, .. } => code.as_u16(),
                _ => UNAVAILABLE,
            };
            let why = outbound.disclose(&error);
            Failure::Call(format!("failed to call webhook: {why}"), code)
        })
    }

    /// Reads the answer.
    pub(super) fn read(&self, question: &Question, answer: &[u8]) -> Result<Answer, Failure> {
        let read = response::read(question.version, &question.uid, question.mutating, answer);
        read.map_err(|unusable| {
            let disclose = |why: &str| self.outbound.disclose_answer(why);
            let why = match unusable {
                Unusable::Undecodable(why) => format!("failed to call webhook: {}", disclose(&why)),
                Unusable::Invalid(why) => {
                    format!("received invalid webhook response: {}", disclose(&why))
                }
            };
            Failure::Call(why, UNAVAILABLE)
        })
    }

    /// Returns the failure of a patch that cannot be read.
    pub(super) fn undecodable(&self, why: &dyn Display) -> Failure {
        let why = self.outbound.disclose_answer(&why.to_string());
        let why = format!("received undecodable patch in webhook response: {why}");
        Failure::Call(why, UNAVAILABLE)
    }
}

/// Returns the time until the answer to the client is due.
pub(super) fn time_left(pass: &Pass<'_, '_>) -> Duration {
    let deadline = pass.ground().deadline;
    deadline.saturating_duration_since(Instant::now())
}

/// Returns the Status for a request whose time is up.
pub(super) fn timeout() -> Status {
    Status::timeout("request did not complete within requested timeout")
}

/// Returns the Status for a failed call, if the failure policy is to fail.
pub(super) fn failed(hook: &Hook, why: &str) -> Status {
    let name = hook.name.as_str();
    Status::internal(format!("failed calling webhook {name:?}: {why}"))
}
