//! Mutating webhooks: called one after the other, each sees what the one before it changed.

use super::call::{Failure, failed, time_left, timeout};
use super::hook::Hook;
use super::metrics::Ended;
use super::{Webhooks, annotations, response};
use crate::admission::matching::Target;
use crate::admission::pass::{Pass, Reinvocations};
use crate::admission::stages::MutatingStage;
use crate::flow;
use crate::work;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Str, Value};
use bareboat_merge::json_patch::JsonPatch;
use bareboat_policy::patch_failure;
use std::time::Instant;

/// The step in metrics.
const STEP: &str = "admit";

/// The stage of mutating webhooks.
pub(crate) struct MutatingWebhooks(pub(crate) Webhooks);

impl MutatingStage for MutatingWebhooks {
    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        self.0.concerns(target, aliases)
    }

    fn mutate<'a>(
        &'a self,
        pass: &'a mut Pass<'_, '_>,
        again: &'a mut Reinvocations,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.call_all(pass, again))
    }
}

impl MutatingWebhooks {
    async fn call_all(
        &self,
        pass: &mut Pass<'_, '_>,
        again: &mut Reinvocations,
    ) -> Result<(), Status> {
        let round = pass.round();
        again.begin(round, pass.object(0));
        for (place, hook) in self.0.candidates(&pass.target(), pass.aliases()) {
            let Some(form) = self.0.matches(&hook, pass, STEP).await? else {
                continue;
            };
            // A hook that did not match at first is not called in the second round either.
            if round > 0 && !again.wants(&hook.id) {
                continue;
            }
            let changed = self.call_and_record(&hook, pass, (form, place)).await?;
            if changed {
                again.changed();
            }
            if hook.reinvoked {
                again.called(&hook.id);
            }
        }
        again.end(round, pass.object(0));
        Ok(())
    }

    async fn call_and_record(
        &self,
        hook: &Hook,
        pass: &mut Pass<'_, '_>,
        (form, place): (usize, usize),
    ) -> Result<bool, Status> {
        let (round, operation) = (pass.round(), pass.review().operation);
        let began = Instant::now();
        let called = self.call(hook, pass, (form, place)).await;
        let changed = matches!(called, Ok(true));
        let (key, text) = annotations::mutation(hook, round, place, changed);
        pass.annotate(key, text);
        let ended = match &called {
            Ok(_) => Ended::Admitted,
            Err(Failure::Call(_, code)) => Ended::CallFailed {
                code: *code,
                rejected: !hook.fails_open,
            },
            Err(Failure::Denied(status)) => Ended::Denied(status.code),
            Err(Failure::Other(_)) => Ended::Error,
        };
        let metrics = &self.0.metrics;
        metrics.called(&hook.name, STEP, operation, began.elapsed(), ended);
        match called {
            Ok(changed) => Ok(changed),
            Err(Failure::Call(why, _)) if hook.fails_open => {
                tracing::warn!(webhook = %hook.name, %why, "calling a webhook failed; its failure policy ignores that");
                metrics.failed_open(&hook.name, STEP);
                let (key, text) = annotations::failed_open(hook, "mutation", round, place);
                pass.annotate(key, text);
                match time_left(pass).is_zero() {
                    true => Err(timeout()),
                    false => Ok(false),
                }
            }
            Err(Failure::Call(why, _)) => Err(failed(hook, &why)),
            Err(Failure::Denied(status) | Failure::Other(status)) => Err(status),
        }
    }

    /// Calls a hook and applies its patch. Returns whether the object changed.
    async fn call(
        &self,
        hook: &Hook,
        pass: &mut Pass<'_, '_>,
        (form, place): (usize, usize),
    ) -> Result<bool, Failure> {
        let caller = &self.0.caller;
        let question = caller.question(hook, pass, form, true)?;
        let _aside = flow::set_aside(question.pieces()).map_err(Failure::Other)?;
        let answer = flow::away(caller.send(hook, &question)).await?;
        work::maybe_large(answer.len()).await;
        let answer = caller.read(&question, &answer)?;
        super::remark(hook, pass, &answer);
        if !answer.allowed {
            let status = response::denial(&hook.name, answer.status.as_ref());
            return Err(Failure::Denied(status));
        }
        if answer.patch.is_empty() {
            return Ok(false);
        }
        let parsed = bareboat_wire::json::parse(&answer.patch);
        let operations = parsed.map_err(|error| caller.undecodable(&error))?.value;
        if !matches!(operations, Value::Array(_) | Value::Null) {
            let found = operations.type_name();
            let why =
                format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch");
            return Err(caller.undecodable(&why));
        }
        if operations.as_array().is_none_or(<[Value]>::is_empty) {
            return Ok(false);
        }
        let patch = JsonPatch::parse(operations.clone());
        let patch = patch.map_err(|error| caller.undecodable(&error))?;
        let Some(object) = pass.object(form) else {
            return Err(Failure::Other(Status::internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                hook.name.as_str()
            ))));
        };
        if answer.patch_type != "JSONPatch" {
            let why = format!("unsupported patch type {:?}", answer.patch_type);
            return Err(Failure::Call(why, 400));
        }
        let mut patched = object.clone();
        let applied = patch.apply(&mut patched);
        let applied = applied.map_err(|error| patch_failure(&error, object));
        applied.map_err(|why| Failure::Other(Status::internal(why)))?;
        let changed = pass.replace(form, patched).await.map_err(Failure::Other)?;
        let audited = pass.ground().audited;
        if audited.is_some_and(|audited| audited.wants_sent()) {
            let (key, text) = annotations::patch(hook, pass.round(), place, &operations);
            pass.annotate(key, text);
        }
        Ok(changed)
    }
}
