//! What views ask of members: the table of members, and requests that a member answers itself.

use crate::Fleet;
use crate::credentials::Access;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Status, Value, value};
use bareboat_server::reply::Response;
use bareboat_server::request::body::RequestBody;
use bareboat_server::{Places, Upstream, UpstreamTrust};
use bareboat_views::{Fleet as FleetTable, LiveRequest, Members, Place, Review, read_answer};
use http::HeaderName;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a member may take to begin an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a question about rights may take.
const REVIEW: Duration = Duration::from_secs(5);
/// Where a user's rights are asked for.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// The largest answer about rights.
const LARGEST_REVIEW: usize = 64 << 10;
/// The group that may do everything. It is not passed on: the hub's administrators are not those of members.
const MASTERS: &str = "system:masters";

/// The live side of a member.
#[derive(Clone)]
pub(crate) struct Live {
    upstream: Upstream,
    authorization: Option<String>,
    /// Whether members of `system:masters` are passed on as such.
    allows_masters: bool,
    digest: [u8; 32],
}

impl Live {
    pub(crate) fn new(access: &Access, allows_masters: bool) -> Result<Live, String> {
        let outbound = access.outbound()?;
        let trust = match (&outbound.authorities, outbound.insecure) {
            (_, true) => UpstreamTrust::Anything,
            (Some(pem), false) => UpstreamTrust::Bundle(pem.clone()),
            (None, false) => UpstreamTrust::System,
        };
        let places = Arc::<Places>::default();
        Ok(Live {
            upstream: Upstream::new(
                &outbound.url,
                &trust,
                outbound.identity.as_ref(),
                PATIENCE,
                &places,
            ),
            authorization: outbound.token.map(|token| format!("Bearer {token}")),
            allows_masters,
            digest: access.digest(),
        })
    }

    /// Returns whether this reaches a member in the same way.
    pub(crate) fn is_for(&self, access: &Access, allows_masters: bool) -> bool {
        self.allows_masters == allows_masters && self.digest == access.digest()
    }

    /// Returns the headers that tell the member who asks.
    fn headers(&self, user: &User) -> Result<Vec<(HeaderName, String)>, Status> {
        let mut headers = Vec::new();
        if let Some(authorization) = &self.authorization {
            headers.push((http::header::AUTHORIZATION, authorization.clone()));
        }
        if user.is_in(MASTERS) && !self.allows_masters {
            return Err(Status::new(
                403,
                "Forbidden",
                "members of system:masters are not passed on to members of the fleet; act as another user, or set the annotation fleet.bareboat.dev/masters: \"true\" on the PediaCluster",
            ));
        }
        if !is_exact(user) {
            return Err(Status::new(
                403,
                "Forbidden",
                "the user is not passed on to members of the fleet: the name is empty, or the name, the uid, a group or an attribute begins or ends with a blank, which headers lose",
            ));
        }
        let name = HeaderName::from_static;
        headers.push((name("impersonate-user"), user.name.to_string()));
        for group in user.groups.iter().filter(|group| !is_implied(group)) {
            headers.push((name("impersonate-group"), group.to_string()));
        }
        if !user.uid.is_empty() {
            headers.push((name("impersonate-uid"), user.uid.to_string()));
        }
        for (key, values) in &user.extra {
            let header = format!("impersonate-extra-{}", escaped_key(key));
            let header = HeaderName::try_from(header)
                .map_err(|_| Status::internal("an attribute of the user cannot be sent"))?;
            for value in values {
                headers.push((header.clone(), value.clone()));
            }
        }
        Ok(headers)
    }
}

impl Live {
    /// Asks the member what a user may do there.
    async fn review(&self, review: &Review) -> Result<bool, Status> {
        let info = &review.info;
        let document = value!({
            "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": {
                "verb": (info.verb.as_str()), "group": (info.group.as_str()), "resource": (info.resource.as_str()),
                "subresource": (info.subresource.as_str()), "namespace": (info.namespace.as_str()), "name": (info.name.as_str()),
            }},
        });
        let body = RequestBody::Memory(document.to_json().into());
        let request = http::Request::builder()
            .method(http::Method::POST)
            .uri(REVIEWS)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json")
            .body(body);
        let request = request.map_err(Status::internal)?;
        let headers = self.headers(&review.user)?;
        let answer = review
            .calls
            .forward_with(&self.upstream, REVIEWS, request, &headers);
        let answer = answer.await?;
        let code = answer.status();
        let bytes = read_answer(answer, LARGEST_REVIEW).await?;
        let parsed = bareboat_wire::json::parse(&bytes).map(|parsed| parsed.value);
        let allowed = parsed
            .ok()
            .and_then(|review| review.at(&["status", "allowed"]).cloned());
        match (code.is_success(), allowed) {
            (true, Some(Value::Bool(allowed))) => Ok(allowed),
            (true, _) => Ok(false),
            (false, _) => Err(Status::unavailable(format!(
                "it does not review rights: the answer is {code}"
            ))),
        }
    }
}

/// Returns that a member cannot be reached.
fn unreachable(member: &str) -> Status {
    Status::unavailable(format!(
        "the member {member} cannot be reached; the conditions of its PediaCluster say why"
    ))
}

/// Adds the name of a member to a status.
fn named(member: &str, mut status: Status) -> Status {
    status.message = format!("the member {member}: {}", status.message);
    status
}

/// Returns whether the member would see the same user. Receivers remove blanks at the ends of headers, and would see another one;
/// without a name they would see the account of the fleet.
fn is_exact(user: &User) -> bool {
    let is_trimmed = |text: &str| text.trim_matches([' ', '\t']) == text;
    !user.name.is_empty()
        && is_trimmed(&user.name)
        && is_trimmed(&user.uid)
        && user.groups.iter().all(|group| is_trimmed(group))
        && user.extra.values().flatten().all(|text| is_trimmed(text))
}

/// Groups that every server adds itself.
fn is_implied(group: &str) -> bool {
    matches!(group, "system:authenticated" | "system:unauthenticated")
}

fn escaped_key(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(byte.to_ascii_lowercase() as char),
            false => {
                let _ = write!(out, "%{byte:02x}");
            }
        }
    }
    out
}

impl Members for Fleet {
    fn place(&self) -> Place {
        self.parts.part.place()
    }

    fn known(&self) -> BoxFuture<'static, ()> {
        let part = self.parts.part.clone();
        Box::pin(async move { part.looked().await })
    }

    fn left(&self) -> BoxFuture<'static, ()> {
        let part = self.parts.part.clone();
        Box::pin(async move { part.left().await })
    }

    fn fleet(&self) -> Arc<FleetTable> {
        self.parts.table.fleet()
    }

    fn now(&self) -> i64 {
        self.parts.table.now()
    }

    fn review(&self, review: Review) -> BoxFuture<'static, Result<bool, Status>> {
        let state = self.parts.table.get(&review.member);
        let live = state.and_then(|state| state.live());
        Box::pin(async move {
            let live = live.ok_or_else(|| unreachable(&review.member))?;
            let asking = tokio::time::timeout(REVIEW, live.review(&review));
            let outcome = asking.await.unwrap_or_else(|_| {
                let seconds = REVIEW.as_secs();
                Err(Status::unavailable(format!("no answer within {seconds} s")))
            });
            outcome.map_err(|status| named(&review.member, status))
        })
    }

    fn forward(&self, request: LiveRequest) -> BoxFuture<'static, Result<Response, Status>> {
        let live = self
            .parts
            .table
            .get(&request.member)
            .and_then(|state| state.live());
        Box::pin(async move {
            let member = &request.member;
            let live = live.ok_or_else(|| unreachable(member))?;
            let headers = live.headers(&request.user)?;
            let answer = request
                .calls
                .forward_with(&live.upstream, &request.target, request.request, &headers)
                .await;
            answer.map_err(|status| named(member, status))
        })
    }
}
