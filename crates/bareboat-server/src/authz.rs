//! Authorization: who may do what.
//!
//! No verb runs without an [`Authorized`], and only this room makes one.

use crate::request::info::RequestInfo;
use bareboat_api::Status;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::status::GroupResource;
use std::ops::Deref;

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// What, and to what.
    pub info: &'a RequestInfo,
}

/// What an authorizer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow,
    /// Not by this authorizer; the text says why, if there is more to say.
    NoOpinion(String),
}

/// Decides who may do what.
pub trait Authorizer: Send + Sync {
    /// Decides about one request.
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision>;
}

/// Lets members of `system:masters` do everything and nobody else anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let decision = if is_master(attributes.user) {
            Decision::Allow
        } else {
            Decision::NoOpinion(String::new())
        };
        Box::pin(std::future::ready(decision))
    }
}

/// Lets everybody do everything: for servers that sit behind something that has checked already.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize<'a>(&'a self, _attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(Decision::Allow))
    }
}

/// Something that was authorized. Only this room can make one.
pub struct Authorized<T>(T);

impl<T> Authorized<T> {
    /// What was authorized.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Authorized<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

fn is_master(user: &User) -> bool {
    user.is_in("system:masters")
}

/// Asks the authorizer about a request, and seals what it approves of.
pub(crate) async fn authorize<T>(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
    asked: T,
) -> Result<Authorized<T>, Status> {
    // The group that bypasses everything, whoever authorizes the others.
    if is_master(user) {
        return Ok(Authorized(asked));
    }
    match authorizer.authorize(Attributes { user, info }).await {
        Decision::Allow => Ok(Authorized(asked)),
        Decision::NoOpinion(why) => Err(refusal(user, info, &why)),
    }
}

/// Asks about something a request turned out to need beyond what it was authorized for.
pub(crate) async fn also(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
) -> Result<(), Status> {
    authorize(authorizer, user, info, ()).await.map(|_| ())
}

fn refusal(user: &User, info: &RequestInfo, why: &str) -> Status {
    let who = bareboat_api::field::go_quote(&user.name);
    let tail = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    if !info.is_resource {
        let text = format!(
            "User {who} cannot {} path \"{}\"{tail}",
            info.verb, info.path
        );
        let nothing = GroupResource {
            group: "",
            resource: "",
        };
        return Status::forbidden(nothing, "", text);
    }
    let resource = if info.subresource.is_empty() {
        info.resource.to_string()
    } else {
        format!("{}/{}", info.resource, info.subresource)
    };
    let place = if info.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", info.namespace)
    };
    let text = format!(
        "User {who} cannot {} resource \"{resource}\" in API group \"{}\" {place}{tail}",
        info.verb, info.group
    );
    let what = GroupResource {
        group: &info.group,
        resource: &info.resource,
    };
    Status::forbidden(what, &info.name, text)
}
