//! What a user may read: members, and the real groups, resources and namespaces, by the hub's authorizer.

use crate::members::{Member, Review};
use crate::reviews;
use crate::target::{GROUP, RESOURCES, VERSION};
use crate::views::Views;
use bareboat_api::kind::User;
use bareboat_api::{Status, Str};
use bareboat_server::Calls;
use bareboat_server::authz::Decision;
use bareboat_server::kinds::computed::Access;
use bareboat_server::request::info::RequestInfo;
use std::sync::Arc;

/// Answers questions about the rights of one user.
#[derive(Clone)]
pub(crate) struct Rights {
    pub(crate) user: Arc<User>,
    pub(crate) access: Access,
    /// Whether the path decides alone, as in Clusterpedia. Then nothing is asked here.
    pub(crate) by_path: bool,
    pub(crate) views: Arc<Views>,
    pub(crate) calls: Calls,
}

bareboat_api::opaque_debug!(Rights);

/// Returns the request that stands for reading a member.
pub(crate) fn member_info(member: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: Str::const_new("get"),
        group: Str::const_new(GROUP),
        version: Str::const_new(VERSION),
        resource: Str::const_new(RESOURCES),
        name: Str::new(member),
        ..RequestInfo::default()
    }
}

/// Returns the request that stands for sending requests to a member.
pub(crate) fn proxy_info(member: &str, verb: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: Str::new(verb),
        group: Str::const_new("cluster.karmada.io"),
        version: Str::const_new("v1alpha1"),
        resource: Str::const_new("clusters"),
        subresource: Str::const_new("proxy"),
        name: Str::new(member),
        ..RequestInfo::default()
    }
}

/// Returns the request that stands for reading a type.
pub(crate) fn read_info(verb: &str, group: &str, resource: &str, namespace: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: Str::new(verb),
        group: Str::new(group),
        resource: Str::new(resource),
        namespace: Str::new(namespace),
        ..RequestInfo::default()
    }
}

impl Rights {
    /// Returns whether the user may do something.
    pub(crate) async fn may(&self, info: &RequestInfo) -> bool {
        self.by_path || matches!(self.access.may(&self.user, info).await, Decision::Allow(_))
    }

    /// Returns the answer for users who may not do something.
    pub(crate) async fn check(&self, info: &RequestInfo) -> Result<(), Status> {
        match self.by_path {
            true => Ok(()),
            false => self.access.check(&self.user, info).await,
        }
    }

    /// Returns whether a member itself decides who reads its objects.
    pub(crate) fn is_judge(&self, member: &Member) -> bool {
        member.judges && !self.by_path
    }

    /// Asks a member that judges itself. The status says why it did not answer.
    pub(crate) async fn may_in(&self, member: &str, info: &RequestInfo) -> Result<bool, Status> {
        let question = reviews::question(member, &self.user, info);
        if let Some(known) = self.views.reviews.known(&question) {
            return Ok(known);
        }
        let reviews = &self.views.reviews;
        if reviews.is_silent(member) {
            let why = format!("{member} did not answer a question about rights a moment ago");
            return Err(Status::unavailable(why));
        }
        let review = self.views.members.review(Review {
            member: member.to_owned(),
            user: self.user.clone(),
            info: info.clone(),
            calls: self.calls.clone(),
        });
        let answer = self.calls.away(review).await;
        reviews.answered(member, answer.is_ok());
        if let Ok(allowed) = answer {
            reviews.note(question, allowed);
        }
        answer
    }

    /// Returns the answer for users who may not do something in a member that judges itself.
    pub(crate) async fn check_in(&self, member: &str, info: &RequestInfo) -> Result<(), Status> {
        match self.may_in(member, info).await? {
            true => Ok(()),
            false => Err(refused_by(member, &self.user, info)),
        }
    }

    /// Returns whether the user may read a member.
    pub(crate) async fn may_read_member(&self, member: &str) -> bool {
        self.may(&member_info(member)).await
    }
}

/// Returns that a member does not allow something.
fn refused_by(member: &str, user: &User, info: &RequestInfo) -> Status {
    let (verb, resource, group) = (&info.verb, &info.resource, &info.group);
    let place = match info.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let message = format!(
        "{resource} is forbidden: User {:?} cannot {verb} resource {resource:?} in API group {group:?} {place}: the cluster {member} decides",
        user.name
    );
    Status::new(403, "Forbidden", message)
}
