//! What views ask of members: the table of members, and requests that a member answers itself.

use crate::Fleet;
use crate::credentials::Access;
use bareboat_api::Status;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_server::reply::Response;
use bareboat_server::{Places, Upstream, UpstreamTrust};
use bareboat_views::{Fleet as FleetTable, LiveRequest, Members};
use http::HeaderName;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a member may take to begin an answer.
const PATIENCE: Duration = Duration::from_secs(30);
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
    fn fleet(&self) -> Arc<FleetTable> {
        self.parts.table.fleet()
    }

    fn now(&self) -> i64 {
        self.parts.table.now()
    }

    fn forward(&self, request: LiveRequest) -> BoxFuture<'static, Result<Response, Status>> {
        let live = self
            .parts
            .table
            .get(&request.member)
            .and_then(|state| state.live());
        Box::pin(async move {
            let member = &request.member;
            let live = live.ok_or_else(|| {
                Status::unavailable(format!("the member {member} cannot be reached"))
            })?;
            let headers = live.headers(&request.user)?;
            let answer = request
                .calls
                .forward_with(&live.upstream, &request.target, request.request, &headers)
                .await;
            answer.map_err(|mut status| {
                status.message = format!("the member {member}: {}", status.message);
                status
            })
        })
    }
}
