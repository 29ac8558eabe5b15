//! What a user may read: members, and the real groups, resources and namespaces, by the hub's authorizer.

use crate::target::{GROUP, RESOURCES, VERSION};
use bareboat_api::kind::User;
use bareboat_api::{Status, Str};
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

    /// Returns whether the user may read a member.
    pub(crate) async fn may_read_member(&self, member: &str) -> bool {
        self.may(&member_info(member)).await
    }
}
