//! Validating webhooks: all that match are called at once; the first that refuses decides.

use super::call::{Failure, Question, failed, time_left, timeout};
use super::hook::Hook;
use super::metrics::Ended;
use super::response::Answer;
use super::{Webhooks, annotations, response};
use crate::admission::matching::Target;
use crate::admission::pass::Pass;
use crate::admission::stages::ValidatingStage;
use crate::flow;
use crate::work;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Str};
use bytes::Bytes;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The step in metrics.
const STEP: &str = "validating";

/// The stage of validating webhooks.
pub(crate) struct ValidatingWebhooks(pub(crate) Webhooks);

impl ValidatingStage for ValidatingWebhooks {
    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        self.0.concerns(target, aliases)
    }

    fn validate<'a>(&'a self, pass: &'a mut Pass<'_, '_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.call_all(pass))
    }
}

impl ValidatingWebhooks {
    async fn call_all(&self, pass: &mut Pass<'_, '_>) -> Result<(), Status> {
        let mut relevant: Vec<(Arc<Hook>, usize)> = Vec::new();
        for (_, hook) in self.0.candidates(&pass.target(), pass.aliases()) {
            if let Some(form) = self.0.matches(&hook, pass, STEP).await? {
                relevant.push((hook, form));
            }
        }
        if relevant.is_empty() {
            return Ok(());
        }
        if time_left(pass).is_zero() {
            return Err(timeout());
        }
        let questions: Vec<Result<Question, Failure>> = relevant
            .iter()
            .map(|(hook, form)| self.0.caller.question(hook, pass, *form, false))
            .collect();
        let _aside = flow::set_aside(questions.iter().flatten().flat_map(Question::pieces))?;
        let calls = relevant.iter().zip(questions).map(|((hook, _), question)| {
            let began = Instant::now();
            async move {
                let sent = match &question {
                    Ok(question) => Some(self.0.caller.send(hook, question).await),
                    Err(_) => None,
                };
                (question, sent, began.elapsed())
            }
        });
        let answers = flow::away(join_all(calls)).await;
        let mut first = None;
        for (place, ((hook, _), (question, sent, took))) in relevant.iter().zip(answers).enumerate()
        {
            let answer = self.read(question, sent).await;
            let judged = self.judge(hook, pass, answer, (place, took));
            first = first.or(judged.err());
        }
        first.map_or(Ok(()), Err)
    }

    async fn read(
        &self,
        question: Result<Question, Failure>,
        sent: Option<Result<Bytes, Failure>>,
    ) -> Result<Answer, Failure> {
        let question = question?;
        match sent {
            None => Err(Failure::Other(Status::internal("a webhook was not called"))),
            Some(sent) => {
                let bytes = sent?;
                work::maybe_large(bytes.len()).await;
                self.0.caller.read(&question, &bytes)
            }
        }
    }

    /// Records the answer of a hook, and decides what it means for the request.
    fn judge(
        &self,
        hook: &Hook,
        pass: &mut Pass<'_, '_>,
        answer: Result<Answer, Failure>,
        (place, took): (usize, Duration),
    ) -> Result<(), Status> {
        let judged = answer.and_then(|answer| {
            super::remark(hook, pass, &answer);
            match answer.allowed {
                true => Ok(()),
                false => {
                    let status = response::denial(&hook.name, answer.status.as_ref());
                    Err(Failure::Denied(status))
                }
            }
        });
        let ended = match &judged {
            Ok(()) => Ended::Admitted,
            Err(Failure::Call(_, code)) => Ended::CallFailed {
                code: *code,
                rejected: !hook.fails_open,
            },
            Err(Failure::Denied(status)) => Ended::Denied(status.code),
            Err(Failure::Other(_)) => Ended::Error,
        };
        let (metrics, operation) = (&self.0.metrics, pass.review().operation);
        metrics.called(&hook.name, STEP, operation, took, ended);
        match judged {
            Ok(()) => Ok(()),
            Err(Failure::Call(why, _)) if hook.fails_open => {
                tracing::warn!(webhook = %hook.name, %why, "calling a webhook failed; its failure policy ignores that");
                metrics.failed_open(&hook.name, STEP);
                let (key, text) = annotations::failed_open(hook, "validating", 0, place);
                pass.annotate(key, text);
                Ok(())
            }
            Err(Failure::Call(why, _)) => Err(failed(hook, &why)),
            Err(Failure::Denied(status) | Failure::Other(status)) => Err(status),
        }
    }
}
