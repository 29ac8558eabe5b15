//! What views ask about members, and how they reach one.
//!
//! The crate that syncs members implements [`Members`]. A [`Fleet`] is an immutable table; it is replaced when something
//! changes, so that every request reads one consistent state without locks.

use crate::twins::twin;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Status, Value};
use bareboat_server::reply::Response;
use bareboat_server::request::body::RequestBody;
use bareboat_server::request::info::RequestInfo;
use bareboat_server::{Calls, Upstream};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The members, as views see them. The documentation of the [`crate`] has an example.
pub trait Members: Send + Sync {
    /// Returns all members. It is called for every request, so it must be cheap.
    fn fleet(&self) -> Arc<Fleet>;

    /// Returns the time in milliseconds since 1970, by the clock that [`Member::heard`] is of.
    fn now(&self) -> i64;

    /// Sends a request to a member as a user, and returns the answer as soon as its head has arrived. The caller has
    /// checked that the user may do this. The status names the member if it cannot be reached.
    fn forward(&self, request: LiveRequest) -> BoxFuture<'static, Result<Response, Status>>;

    /// Asks a member what a user may do there. Only members with [`Member::judges`] are asked. The status says why the member did not
    /// answer.
    fn review(&self, review: Review) -> BoxFuture<'static, Result<bool, Status>> {
        let why = format!("{} cannot be asked about rights", review.member);
        Box::pin(std::future::ready(Err(Status::unavailable(why))))
    }

    /// Returns which server answers requests to the views. Among several servers only one may have the members' objects.
    fn place(&self) -> Place {
        Place::Here
    }

    /// Waits for a short time until this server knows its members, if it has just started. It is called when
    /// [`Members::place`] is nowhere.
    fn known(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until this server does not answer any more, because another one has the members' objects. Watches end then.
    fn left(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Which server answers requests to the views.
#[derive(Clone, Debug)]
pub enum Place {
    /// This one.
    Here,
    /// Another one, which requests are forwarded to.
    There(Upstream),
    /// None at the moment; the status says why.
    Nowhere(Status),
}

/// A request that a member answers itself.
pub struct LiveRequest {
    /// The name of the member.
    pub member: String,
    /// The user that the member is told, by impersonation.
    pub user: Arc<User>,
    /// The path and the query in the member, such as `/api/v1/namespaces/a/pods/x/log?follow=true`.
    pub target: String,
    /// The client's request: its method, headers without credentials, body, and perhaps its connection for an upgrade.
    pub request: http::Request<RequestBody>,
    /// Calls on behalf of the client's request, with its record, its rights and its connection.
    pub calls: Calls,
}

impl fmt::Debug for LiveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRequest")
            .field("member", &self.member)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// A question about the rights of a user in a member.
pub struct Review {
    /// The name of the member.
    pub member: String,
    /// The user. The request to the member impersonates this user.
    pub user: Arc<User>,
    /// What the user wants to do.
    pub info: RequestInfo,
    /// Calls on behalf of the client's request.
    pub calls: Calls,
}

impl fmt::Debug for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Review")
            .field("member", &self.member)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// All members at a moment, by name.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// The members.
    pub members: BTreeMap<String, Arc<Member>>,
}

/// A member at a moment.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// The name, which is also its name on the shelf.
    pub name: String,
    /// The labels of the object that describes the member.
    pub labels: BTreeMap<String, String>,
    /// Other facts that filters may use as `cluster.NAME`, such as `region`, `zone` and `provider`.
    pub facts: BTreeMap<String, String>,
    /// Whether the condition `Ready` is True.
    pub ready: bool,
    /// The reason of the first condition that is not True; empty if the member is ready.
    pub reason: String,
    /// When the member was last heard, in milliseconds since 1970: the last good answer or event. `None` for never. While the member
    /// is in sync, the value may be old.
    pub heard: Option<i64>,
    /// Whether its rows are up to date as far as is known: it is reachable, and no type waits to be filled.
    pub in_sync: bool,
    /// The answer of its path `/version`; null if it is not known.
    pub version: Value,
    /// The types on the shelf.
    pub types: Vec<Arc<SyncedType>>,
    /// Whether the values of its Secrets are on the shelf and may be shown.
    pub shows_secrets: bool,
    /// Whether the member itself decides who may read its objects, instead of this server.
    pub judges: bool,
}

impl Member {
    /// Returns the synced type of a resource. Events are one kind in two groups: they may be synced in the other one.
    pub fn synced(&self, group: &str, resource: &str) -> Option<&Arc<SyncedType>> {
        let find = |group: &str| {
            let mut types = self.types.iter();
            types.find(|one| one.group == group && one.resource == resource)
        };
        find(group).or_else(|| find(&twin(group, resource)?.group))
    }
}

/// A type of objects of a member that is on the shelf.
#[derive(Clone, Debug, Default)]
pub struct SyncedType {
    /// The API group, empty for core.
    pub group: String,
    /// The version of the objects on the shelf.
    pub version: String,
    /// The plural in URLs.
    pub resource: String,
    /// The kind.
    pub kind: String,
    /// The name of one, such as `deployment`.
    pub singular: String,
    /// Short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
    /// Other versions that the member serves.
    pub others: Vec<OtherVersion>,
    /// The definition of a custom kind: the whole CustomResourceDefinition as the member has it. Columns and schemas come from
    /// it. `None` for built-in kinds and for kinds of aggregated servers.
    pub definition: Option<Arc<Value>>,
}

/// A version that is not on the shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// The version, such as `v1beta1`.
    pub name: String,
    /// Where its objects come from.
    pub source: VersionSource,
}

/// Where the objects of a version come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSource {
    /// From the shelf, with another `apiVersion`: the definition has no conversion.
    Shelf,
    /// From the member itself, which converts them.
    Member,
}
