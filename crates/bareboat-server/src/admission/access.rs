//! The `authorizer` of expressions: checks of rights, answered by the server's authorizer.
//!
//! Expressions cannot wait, and an authorizer may have to ask another server. A check without an answer is recorded and
//! counts as refused; after [`AccessChecks::settle`] the expression is evaluated again, with the answer.

use super::pass::Pass;
use crate::authz::{self, Authorizer, Decision};
use crate::request::info::RequestInfo;
use bareboat_api::Str;
use bareboat_api::kind::User;
use bareboat_cel::{AccessCheck, AccessDecision, Val};
use parking_lot::Mutex;
use std::sync::Arc;

/// The most checks that the expressions of one request may make.
const MOST: usize = 1000;

/// The checks that expressions make for one request.
pub(crate) struct AccessChecks {
    authorizer: Arc<dyn Authorizer>,
    user: User,
    /// The right to the resource of the request.
    own: AccessCheck,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    answers: Vec<(AccessCheck, AccessDecision)>,
    wanted: Vec<AccessCheck>,
}

impl AccessChecks {
    /// No checks yet.
    pub(crate) fn new(pass: &Pass<'_, '_>) -> Arc<AccessChecks> {
        let review = pass.review();
        Arc::new(AccessChecks {
            authorizer: pass.ground().state.authorizer.clone(),
            user: review.user.clone(),
            own: AccessCheck {
                group: review.kind.group.as_str().into(),
                resource: review.kind.names.plural.as_str().into(),
                subresource: review.subresource.into(),
                namespace: review.attributed_namespace().into(),
                name: review.name.into(),
                ..AccessCheck::default()
            },
            known: Mutex::default(),
        })
    }

    /// Returns the right to the resource of the request, without a verb.
    pub(crate) fn own(&self) -> AccessCheck {
        self.own.clone()
    }

    /// Returns the value of `authorizer`.
    pub(crate) fn value<'a>(self: &Arc<AccessChecks>) -> Val<'a> {
        Val::authorizer(self.clone())
    }

    /// Returns the value of `authorizer.requestResource`.
    pub(crate) fn request_resource<'a>(self: &Arc<AccessChecks>) -> Val<'a> {
        Val::resource_check(self.clone(), self.own.clone())
    }

    /// Answers recorded checks. Returns whether there were any, so that expressions must be evaluated again.
    pub(crate) async fn settle(&self) -> bool {
        let wanted = std::mem::take(&mut self.known.lock().wanted);
        if wanted.is_empty() {
            return false;
        }
        for check in wanted {
            let decision = self.decide(&check).await;
            self.known.lock().answers.push((check, decision));
        }
        true
    }

    async fn decide(&self, check: &AccessCheck) -> AccessDecision {
        let account = check.service_account.as_ref().map(service_account);
        let user = account.as_ref().unwrap_or(&self.user);
        let decision = authz::explain(self.authorizer.as_ref(), user, &info(check)).await;
        let (allowed, reason) = match decision {
            Decision::Allow(reason) => (true, reason),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => (false, reason),
        };
        AccessDecision {
            allowed,
            reason: reason.into(),
            error: None,
        }
    }
}

impl bareboat_cel::Authorizer for AccessChecks {
    fn authorize(&self, check: &AccessCheck) -> AccessDecision {
        let mut known = self.known.lock();
        if let Some((_, answer)) = known.answers.iter().find(|(known, _)| known == check) {
            return answer.clone();
        }
        let refused = |error: Option<Box<str>>| AccessDecision {
            allowed: false,
            reason: Box::default(),
            error,
        };
        if known.answers.len() + known.wanted.len() >= MOST {
            return refused(Some("too many checks of rights".into()));
        }
        if !known.wanted.contains(check) {
            known.wanted.push(check.clone());
        }
        refused(None)
    }
}

fn service_account((namespace, name): &(Box<str>, Box<str>)) -> User {
    User {
        name: Str::new(format!("system:serviceaccount:{namespace}:{name}")),
        groups: vec![
            Str::const_new("system:serviceaccounts"),
            Str::new(format!("system:serviceaccounts:{namespace}")),
            Str::const_new("system:authenticated"),
        ],
        ..User::default()
    }
}

fn info(check: &AccessCheck) -> RequestInfo {
    if let Some(path) = &check.path {
        return RequestInfo {
            path: path.to_string(),
            verb: Str::new(&check.verb),
            ..RequestInfo::default()
        };
    }
    RequestInfo {
        is_resource: true,
        verb: Str::new(&check.verb),
        group: Str::new(&check.group),
        version: Str::const_new("*"),
        resource: Str::new(&check.resource),
        subresource: Str::new(&check.subresource),
        namespace: Str::new(&check.namespace),
        name: Str::new(&check.name),
        field_selector: Str::new(&check.field_selector),
        label_selector: Str::new(&check.label_selector),
        ..RequestInfo::default()
    }
}
