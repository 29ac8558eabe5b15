//! Authorization: decides what a user may do.
//!
//! No verb runs without an [`Authorized`], and only this module makes one.

#[cfg(feature = "outbound")]
mod configured;
#[cfg(feature = "outbound")]
mod review;
#[cfg(feature = "outbound")]
mod webhook;

#[cfg(feature = "outbound")]
pub use bareboat_auth::authorization::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, FailurePolicy,
    WebhookConfiguration,
};
#[cfg(feature = "outbound")]
pub use configured::ConfiguredAuthorizer;
#[cfg(feature = "outbound")]
pub use webhook::WebhookAuthorizer;

use crate::request::info::RequestInfo;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::status::GroupResource;
use bareboat_api::{Status, Str, Value};
use std::ops::Deref;
use std::sync::Arc;

/// The request to authorize.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The authenticated or impersonated user.
    pub user: &'a User,
    /// The verb and the target.
    pub info: &'a RequestInfo,
}

/// The decision of an authorizer. The text is the reason; it may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed; later authorizers are not called.
    Allow(String),
    /// The request is refused; later authorizers are not called.
    Deny(String),
    /// This authorizer does not allow the request; another may.
    NoOpinion(String),
}

impl Decision {
    /// A decision without a reason.
    pub fn from_bool(allowed: bool) -> Decision {
        match allowed {
            true => Decision::Allow(String::new()),
            false => Decision::NoOpinion(String::new()),
        }
    }
}

/// The rules of a user in a namespace, as far as an authorizer can list them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserRules {
    /// Rules about resources, as a SelfSubjectRulesReview shows them.
    pub resources: Vec<Value>,
    /// Rules about URLs.
    pub urls: Vec<Value>,
    /// Whether the user may have more rights than are listed.
    pub incomplete: bool,
    /// An error; empty if there was none.
    pub error: String,
}

/// Decides what users may do.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
/// use bareboat::api::kind::BoxFuture;
/// use bareboat::server::authz::{Attributes, Authorizer, Decision};
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
    /// Decides one request. The reason may be omitted if the request is allowed.
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision>;

    /// Decides immediately if possible; `None` otherwise. This is cheaper than [`Authorizer::authorize`].
    fn decide(&self, _attributes: Attributes<'_>) -> Option<Decision> {
        None
    }

    /// Decides one request for an access review, with a reason if there is one. The default calls `authorize`.
    fn explain<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        self.authorize(attributes)
    }

    /// Lists the rules of a user in a namespace; `None` if this authorizer cannot.
    fn rules(&self, _user: &User, _namespace: &str) -> Option<UserRules> {
        None
    }

    /// Returns whether roles and bindings in the store decide. If so, the server's own controllers write as separate
    /// users whose rights are in roles. With any other authorizer they write as the server itself.
    fn uses_roles(&self) -> bool {
        false
    }

    /// Returns where the objects are stored that decide about a user ([`Kind::store`](bareboat_api::Kind)). If several
    /// servers share the store and another one changed such an object, a write is authorized again before it is stored.
    fn depends_on(&self, _user: &User) -> Vec<Str> {
        Vec::new()
    }
}

/// Calls several authorizers in order. The first that allows or denies decides.
#[derive(Clone, Default)]
pub struct AuthorizerChain(Vec<Arc<dyn Authorizer>>);

bareboat_api::opaque_debug!(AuthorizerChain);

impl AuthorizerChain {
    /// Adds an authorizer, called after the others.
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
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.decide(attributes)? {
                Decision::NoOpinion(why) if why.is_empty() => {}
                Decision::NoOpinion(why) => reasons.push(why),
                decided => return Some(decided),
            }
        }
        Some(Decision::NoOpinion(reasons.join("\n")))
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

    fn uses_roles(&self) -> bool {
        self.0.iter().any(|authorizer| authorizer.uses_roles())
    }

    fn depends_on(&self, user: &User) -> Vec<Str> {
        let all = self.0.iter();
        all.flat_map(|authorizer| authorizer.depends_on(user))
            .collect()
    }
}

async fn now_or_later(authorizer: &dyn Authorizer, attributes: Attributes<'_>) -> Decision {
    match authorizer.decide(attributes) {
        Some(decision) => decision,
        None => authorizer.authorize(attributes).await,
    }
}

/// Allows everything to members of `system:masters`, and nothing to other users.
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

/// Allows everything, for servers behind a gateway that authorizes requests.
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

/// Allows nothing; other authorizers may.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Authorizer for DenyAll {
    fn authorize<'a>(&'a self, _attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(Decision::NoOpinion(
            "Everything is forbidden.".to_owned(),
        )))
    }

    fn decide(&self, _attributes: Attributes<'_>) -> Option<Decision> {
        Some(Decision::NoOpinion("Everything is forbidden.".to_owned()))
    }
}

/// An authorized value. Only this module can make one.
#[derive(Debug)]
pub struct Authorized<T>(T);

impl<T> Authorized<T> {
    /// Returns the authorized value.
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

/// Returns whether a user is in the group that may do everything.
pub fn is_master(user: &User) -> bool {
    user.is_in("system:masters")
}

/// The outcome of an authorization that does not wait.
pub(crate) enum Now<T> {
    /// The request is allowed or refused.
    Decided(Result<Authorized<T>, Status>),
    /// The authorizer has to wait: [`authorize`] decides.
    Later(T),
}

/// Authorizes a request as [`authorize`] does, if the authorizer decides without waiting.
pub(crate) fn authorize_now<T>(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
    asked: T,
) -> Now<T> {
    // The group that bypasses every authorizer.
    if is_master(user) {
        return Now::Decided(Ok(Authorized(asked)));
    }
    match authorizer.decide(Attributes { user, info }) {
        Some(Decision::Allow(_)) => Now::Decided(Ok(Authorized(asked))),
        Some(Decision::Deny(why) | Decision::NoOpinion(why)) => {
            Now::Decided(Err(refusal(user, info, &why)))
        }
        None => Now::Later(asked),
    }
}

/// Authorizes a request; wraps the value if the request is allowed.
pub(crate) async fn authorize<T>(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
    asked: T,
) -> Result<Authorized<T>, Status> {
    // The group that bypasses every authorizer.
    if is_master(user) {
        return Ok(Authorized(asked));
    }
    match now_or_later(authorizer, Attributes { user, info }).await {
        Decision::Allow(_) => Ok(Authorized(asked)),
        Decision::Deny(why) | Decision::NoOpinion(why) => Err(refusal(user, info, &why)),
    }
}

/// Authorizes a request as [`authorize`] does, and always returns the decision with its reason.
pub(crate) async fn authorize_explained<T>(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
    asked: T,
) -> (Decision, Result<Authorized<T>, Status>) {
    let decision = explain(authorizer, user, info).await;
    let outcome = match &decision {
        Decision::Allow(_) => Ok(Authorized(asked)),
        Decision::Deny(why) | Decision::NoOpinion(why) => Err(refusal(user, info, why)),
    };
    (decision, outcome)
}

/// Calls the authorizer, and returns its decision with a reason.
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

/// Authorizes an additional permission that a request turned out to need.
pub(crate) async fn also(
    authorizer: &dyn Authorizer,
    user: &User,
    info: &RequestInfo,
) -> Result<(), Status> {
    authorize(authorizer, user, info, ()).await.map(|_| ())
}

/// Escapes HTML.
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
