//! Authorization: who may do what.
//!
//! No verb runs without an [`Authorized`], and only this room makes one.

use crate::request::info::RequestInfo;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::status::GroupResource;
use bareboat_api::{Status, Value};
use std::ops::Deref;
use std::sync::Arc;

/// What a user wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// What, and to what.
    pub info: &'a RequestInfo,
}

/// What an authorizer says. The text is the reason; it may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed, and no other authorizer is asked.
    Allow(String),
    /// The request is refused, and no other authorizer is asked.
    Deny(String),
    /// This authorizer does not allow the request; another may.
    NoOpinion(String),
}

impl Decision {
    /// An answer without a reason.
    pub fn from_bool(allowed: bool) -> Decision {
        match allowed {
            true => Decision::Allow(String::new()),
            false => Decision::NoOpinion(String::new()),
        }
    }
}

/// What a user may do in a namespace, as far as an authorizer can list it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserRules {
    /// Rules about resources, as a SelfSubjectRulesReview shows them.
    pub resources: Vec<Value>,
    /// Rules about URLs.
    pub urls: Vec<Value>,
    /// Whether the user may have more rights than are listed.
    pub incomplete: bool,
    /// What went wrong; empty if nothing did.
    pub error: String,
}

/// Decides who may do what.
///
/// ```
/// use bareboat_api::kind::BoxFuture;
/// use bareboat_server::authz::{Attributes, Authorizer, Decision};
///
/// /// Everybody may read.
/// struct ReadOnly;
///
/// impl Authorizer for ReadOnly {
///     fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
///         let reads = matches!(attributes.info.verb.as_str(), "get" | "list" | "watch");
///         Box::pin(std::future::ready(Decision::from_bool(reads)))
///     }
/// }
/// ```
pub trait Authorizer: Send + Sync {
    /// Decides about one request. The reason may be left out when the request is allowed.
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision>;

    /// Decides at once, if that needs no waiting. Authorizers that can should do so: it is cheaper.
    fn decide(&self, _attributes: Attributes<'_>) -> Option<Decision> {
        None
    }

    /// Decides, and always gives the reason.
    fn explain<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        self.authorize(attributes)
    }

    /// Lists what a user may do in a namespace; nothing if this authorizer cannot.
    fn rules(&self, _user: &User, _namespace: &str) -> Option<UserRules> {
        None
    }
}

/// Asks several authorizers in order. The first that allows or denies decides.
#[derive(Clone, Default)]
pub struct AuthorizerChain(Vec<Arc<dyn Authorizer>>);

impl AuthorizerChain {
    /// Adds an authorizer, asked after the others.
    pub fn push(&mut self, authorizer: Arc<dyn Authorizer>) {
        self.0.push(authorizer);
    }

    async fn ask<'a>(&'a self, attributes: Attributes<'a>, explain: bool) -> Decision {
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            let decision = match explain {
                true => authorizer.explain(attributes).await,
                false => now_or_later(authorizer.as_ref(), attributes).await,
            };
            match decision {
                Decision::NoOpinion(why) if why.is_empty() => {}
                Decision::NoOpinion(why) => reasons.push(why),
                decided => return decided,
            }
        }
        Decision::NoOpinion(reasons.join("\n"))
    }
}

impl Authorizer for AuthorizerChain {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(self.ask(attributes, false))
    }

    fn decide(&self, attributes: Attributes<'_>) -> Option<Decision> {
        match self.0.as_slice() {
            [only] => only.decide(attributes),
            _ => None,
        }
    }

    fn explain<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(self.ask(attributes, true))
    }

    fn rules(&self, user: &User, namespace: &str) -> Option<UserRules> {
        let mut all = UserRules::default();
        for authorizer in &self.0 {
            match authorizer.rules(user, namespace) {
                Some(rules) => {
                    all.resources.extend(rules.resources);
                    all.urls.extend(rules.urls);
                    all.incomplete |= rules.incomplete;
                    all.error = [all.error, rules.error].concat();
                }
                None => all.incomplete = true,
            }
        }
        Some(all)
    }
}

async fn now_or_later(authorizer: &dyn Authorizer, attributes: Attributes<'_>) -> Decision {
    match authorizer.decide(attributes) {
        Some(decision) => decision,
        None => authorizer.authorize(attributes).await,
    }
}

/// Lets members of `system:masters` do everything and nobody else anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let decision = Decision::from_bool(is_master(attributes.user));
        Box::pin(std::future::ready(decision))
    }

    fn decide(&self, attributes: Attributes<'_>) -> Option<Decision> {
        Some(Decision::from_bool(is_master(attributes.user)))
    }
}

/// Lets everybody do everything: for servers that sit behind something that has checked already.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize<'a>(&'a self, _attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(Decision::from_bool(true)))
    }

    fn decide(&self, _attributes: Attributes<'_>) -> Option<Decision> {
        Some(Decision::from_bool(true))
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

/// Whether a user is in the group that may do everything.
pub fn is_master(user: &User) -> bool {
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
    match now_or_later(authorizer, Attributes { user, info }).await {
        Decision::Allow(_) => Ok(Authorized(asked)),
        Decision::Deny(why) | Decision::NoOpinion(why) => Err(refusal(user, info, &why)),
    }
}

/// Asks the authorizer about something, with the reason whatever it says.
pub(crate) async fn explain(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
) -> Decision {
    if is_master(user) {
        return Decision::from_bool(true);
    }
    authorizer.explain(Attributes { user, info }).await
}

/// Asks about something a request turned out to need beyond what it was authorized for.
pub(crate) async fn also(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
) -> Result<(), Status> {
    authorize(authorizer, user, info, ()).await.map(|_| ())
}

/// A text that cannot be taken for HTML.
fn escaped(text: String) -> String {
    if !text.contains(['&', '<', '>']) {
        return text;
    }
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn refusal(user: &User, info: &RequestInfo, why: &str) -> Status {
    use bareboat_api::field::go_quote;
    let who = go_quote(&user.name);
    let tail = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    if !info.is_resource {
        let path = go_quote(&info.path);
        let text = escaped(format!("User {who} cannot {} path {path}", info.verb)) + &tail;
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
        format!("in the namespace {}", go_quote(&info.namespace))
    };
    let (verb, resource, group) = (&info.verb, go_quote(&resource), go_quote(&info.group));
    let text = format!("User {who} cannot {verb} resource {resource} in API group {group} {place}");
    let text = escaped(text) + &tail;
    let what = GroupResource {
        group: &info.group,
        resource: &info.resource,
    };
    Status::forbidden(what, &info.name, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::Str;

    #[test]
    fn refusals_cannot_be_taken_for_html() {
        let user = User {
            name: Str::new("<b>&ann"),
            ..User::default()
        };
        let info = RequestInfo {
            is_resource: true,
            verb: Str::new("get"),
            group: Str::new("a<b"),
            resource: Str::new("things"),
            name: Str::new("x"),
            namespace: Str::new("n>s"),
            ..RequestInfo::default()
        };
        let status = refusal(&user, &info, "a < b");
        assert_eq!(
            status.message,
            "things.a<b \"x\" is forbidden: User \"&lt;b&gt;&amp;ann\" cannot get resource \"things\" \
             in API group \"a&lt;b\" in the namespace \"n&gt;s\": a < b"
        );
        let info = RequestInfo {
            verb: Str::new("get"),
            path: "/<script>\n".to_owned(),
            ..RequestInfo::default()
        };
        assert_eq!(
            refusal(&user, &info, "").message,
            "forbidden: User \"&lt;b&gt;&amp;ann\" cannot get path \"/&lt;script&gt;\\n\""
        );
    }
}
