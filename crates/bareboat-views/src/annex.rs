//! Requests to the prefix: what they are about, and who answers them.

use crate::documents::Documents;
use crate::members::{LiveRequest, Member, Place};
use crate::relay;
use crate::rights::{Rights, member_info, proxy_info};
use crate::search;
use crate::selection::no_such_cluster;
use crate::spelling::Spelled;
use crate::target::{Target, What, member_path};
use crate::types::{Source, source};
use crate::views::{Authorization, Call, Form, Views};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Str, value};
use bareboat_server::discovery::entity_tag;
use bareboat_server::reply::{self, Body, Response};
use bareboat_server::request::info::RequestInfo;
use bareboat_server::request::negotiate::{Agreed, Media, Transform};
use bareboat_server::request::query::Query;
use bareboat_server::{Annex, Claim, Visit, server};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::Arc;

/// The header that asks the member itself.
const FORWARD: &str = "x-clusterpedia-forward";
/// The media type of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Serves the paths of the views.
#[derive(Clone, Debug)]
pub struct ViewsAnnex(pub Arc<Views>);

impl Annex for ViewsAnnex {
    fn claim(
        &self,
        method: &Method,
        info: &RequestInfo,
        query: &Query,
        headers: &HeaderMap,
    ) -> Option<Claim> {
        let target = Target::parse(method, info, query)?;
        let mut claim = claim(&target, info, query, headers);
        if let Target::View {
            member,
            what: What::Resource(inner),
        } = &target
            && !is_forwarded(inner, query, headers)
            && (self.has_judges(member.as_deref()) || self.is_elsewhere())
        {
            // The member decides, and the annex asks it; or the server that has the members decides.
            (claim.authorizes, claim.judged) = (true, false);
        }
        if self.0.settings.authorization == Authorization::Path {
            let verb = claim.info.verb.clone();
            claim.info = info.clone();
            claim.info.verb = match verb.as_str() {
                "list" | "watch" => Str::const_new("get"),
                _ => verb,
            };
            claim.authorizes = false;
        }
        Some(claim)
    }

    fn answer(&self, visit: Visit) -> BoxFuture<'static, Result<Response, Status>> {
        let views = self.0.clone();
        match views.members.place() {
            Place::Here => Box::pin(answer(views, visit)),
            place @ Place::There(_) => Box::pin(relay::relay(place, visit)),
            Place::Nowhere(_) => Box::pin(async move {
                views.members.known().await;
                match views.members.place() {
                    Place::Here => answer(views, visit).await,
                    place => relay::relay(place, visit).await,
                }
            }),
        }
    }
}

impl ViewsAnnex {
    /// Returns whether another server answers, and authorizes. This one does not know the members.
    fn is_elsewhere(&self) -> bool {
        matches!(self.0.members.place(), Place::There(_))
    }

    /// Returns whether a member, or any of them, decides itself who reads its objects.
    fn has_judges(&self, member: Option<&str>) -> bool {
        let fleet = self.0.members.fleet();
        match member {
            Some(name) => fleet.members.get(name).is_some_and(|member| member.judges),
            None => fleet.members.values().any(|member| member.judges),
        }
    }
}

/// Returns whether a request goes to the member itself.
fn is_forwarded(info: &RequestInfo, query: &Query, headers: &HeaderMap) -> bool {
    let reads = matches!(info.verb.as_str(), "get" | "list" | "watch");
    let header = headers.get(FORWARD).is_some_and(|value| value == "true");
    let label = || {
        let selector = query.get("labelSelector").unwrap_or("");
        selector.contains("search.clusterpedia.io/forward")
            && Spelled::read(query).is_ok_and(|spelled| spelled.forward)
    };
    !reads || !info.subresource.is_empty() || header || label()
}

/// Returns what a request is about.
fn claim(target: &Target, outer: &RequestInfo, query: &Query, headers: &HeaderMap) -> Claim {
    let document = || Claim {
        info: RequestInfo {
            is_resource: false,
            path: outer.path.clone(),
            verb: Str::const_new("get"),
            ..RequestInfo::default()
        },
        authorizes: false,
        streams: false,
        judged: true,
    };
    let (member, what) = match target {
        // The annex checks the collection and every type of it.
        Target::Collection(_) => {
            return Claim {
                info: outer.clone(),
                authorizes: true,
                streams: false,
                judged: false,
            };
        }
        Target::View { member, what } => (member, what),
    };
    let What::Resource(info) = what else {
        return document();
    };
    if is_forwarded(info, query, headers) {
        let streams = info.verb == "watch"
            || !matches!(info.subresource.as_str(), "" | "status" | "scale")
            || headers.contains_key(header::UPGRADE);
        return Claim {
            info: RequestInfo {
                path: outer.path.clone(),
                ..proxy_info(member.as_deref().unwrap_or(""), &info.verb)
            },
            authorizes: member.is_none(),
            streams,
            judged: true,
        };
    }
    let mut seen = RequestInfo::clone(info);
    seen.path.clone_from(&outer.path);
    if seen.verb == "get" {
        return Claim {
            info: seen,
            authorizes: member.is_none(),
            streams: false,
            judged: true,
        };
    }
    // The annex checks all namespaces; a stream is judged by the first one.
    if let Ok(spelled) = Spelled::read(query) {
        let first = search::namespaces(&spelled, &info.namespace)
            .into_iter()
            .next();
        seen.namespace = first.map(Str::from).unwrap_or_default();
    }
    seen.name = Str::default();
    let visible = query
        .get("visible")
        .is_some_and(bareboat_server::request::options::is_true);
    Claim {
        streams: seen.verb == "watch",
        info: seen,
        authorizes: true,
        judged: !visible,
    }
}

async fn answer(views: Arc<Views>, visit: Visit) -> Result<Response, Status> {
    let Visit {
        question,
        request,
        calls,
        ..
    } = visit;
    let query = &question.query;
    let outer = RequestInfo::parse(request.method(), request.uri().path(), query);
    let outer = outer.map_err(|_| Status::bad_request("the path cannot be decoded"))?;
    let target = Target::parse(request.method(), &outer, query);
    let target = target.ok_or_else(Status::no_such_route)?;
    let call = Call {
        fleet: views.members.fleet(),
        now: views.members.now(),
        headers: request.headers().clone(),
        rights: Rights {
            user: question.user.clone(),
            access: question.access.clone(),
            by_path: views.settings.authorization == Authorization::Path,
            views: views.clone(),
            calls: calls.clone(),
        },
        views,
        question,
        calls,
    };
    let (member, what) = match target {
        Target::Collection(name) if name.is_empty() => return call.collections().await,
        Target::Collection(name) => return call.collection(&name).await,
        Target::View { member, what } => (member, what),
    };
    let member = match member {
        None => None,
        Some(name) => Some(
            call.fleet
                .members
                .get(&name)
                .cloned()
                .ok_or_else(no_such_cluster)?,
        ),
    };
    let member = member.as_ref();
    match what {
        What::Resource(info) => call.resource(member, &outer, &info, request).await,
        What::OpenApi => match member {
            Some(member) => call.live(member, &outer, request).await,
            None => Err(Status::no_such_route()),
        },
        What::Nothing => Err(Status::no_such_route()),
        _ if !matches!(*request.method(), Method::GET | Method::HEAD) => {
            Err(Status::method_not_allowed())
        }
        What::Root => Ok(reply::json(
            StatusCode::OK,
            &value!({"paths": ["/api", "/apis", "/version"]}),
        )),
        What::Version => Ok(reply::json(
            StatusCode::OK,
            &match member {
                Some(member) if !member.version.is_null() => member.version.clone(),
                _ => server::current_version(),
            },
        )),
        What::Discovery(path) => call.discovery(member, &path),
    }
}

impl Call {
    async fn resource(
        &self,
        member: Option<&Arc<Member>>,
        outer: &RequestInfo,
        info: &RequestInfo,
        request: http::Request<bareboat_server::request::body::RequestBody>,
    ) -> Result<Response, Status> {
        let query = &self.question.query;
        if is_forwarded(info, query, &self.headers) {
            let reads = matches!(info.verb.as_str(), "get" | "list" | "watch");
            return match member {
                Some(member) => self.live(member, outer, request).await,
                None if reads => Err(Status::bad_request(
                    "please specify the cluster name when a request is forwarded",
                )),
                None => Err(Status::method_not_allowed()),
            };
        }
        if let Some(member) = member
            && self.must_ask(member, info)
        {
            self.rights.check(&member_info(&member.name)).await?;
            self.rights
                .check(&proxy_info(&member.name, &info.verb))
                .await?;
            return self.live(member, outer, request).await;
        }
        match info.verb.as_str() {
            "get" => self.get(member, info).await,
            "list" => self.list(member, info).await,
            "watch" => self.watch(member, info).await,
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// Returns whether only the member can answer: it converts versions, or its versions are no numbers.
    fn must_ask(&self, member: &Member, info: &RequestInfo) -> bool {
        let synced = member.synced(&info.group, &info.resource);
        let source = synced.and_then(|synced| source(synced, &info.group, &info.version));
        let live = source == Some(Source::Live);
        let version = self.question.query.given("resourceVersion");
        let odd = info.verb == "watch" && version.is_some_and(|text| text.parse::<u64>().is_err());
        live || odd
    }

    /// Sends the request to the member.
    async fn live(
        &self,
        member: &Arc<Member>,
        outer: &RequestInfo,
        request: http::Request<bareboat_server::request::body::RequestBody>,
    ) -> Result<Response, Status> {
        let live = LiveRequest {
            member: member.name.clone(),
            user: self.question.user.clone(),
            target: target(outer, &self.question.query),
            request,
            calls: self.calls.clone(),
        };
        self.calls.leave();
        self.views.members.forward(live).await
    }

    fn discovery(&self, member: Option<&Arc<Member>>, path: &[String]) -> Result<Response, Status> {
        let documents = Documents::of(&self.fleet, member);
        if path.len() == 1 && wants_aggregated(&self.headers) {
            let document = documents.aggregated(path[0] == "api");
            return Ok(tagged(&self.headers, document.to_json()));
        }
        let host = self.headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
        let document = documents.legacy(path, host);
        let document = document.ok_or_else(Status::no_such_route)?;
        let agreed = self.negotiate(Form::Object).unwrap_or(Agreed {
            media: Media::Json,
            transform: Transform::Whole,
            pretty: false,
        });
        Ok(reply::value(StatusCode::OK, agreed, &document))
    }
}

/// Returns a document of discovery, or that the client has it already.
fn tagged(headers: &HeaderMap, document: Vec<u8>) -> Response {
    let tag = entity_tag(&document);
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    let is_known = known.any(|one| one.trim().trim_start_matches("W/") == tag || one.trim() == "*");
    let mut response = http::Response::new(match is_known {
        true => Body::empty(),
        false => Body::full(document),
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    let value = HeaderValue::from_static;
    if !is_known {
        headers.insert(header::CONTENT_TYPE, value(AGGREGATED));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, value("Accept"));
    // What a view shows changes with its members.
    headers.insert(header::CACHE_CONTROL, value("no-cache, private"));
    response
}

/// Returns whether a client prefers aggregated discovery.
fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter();
    let mut accepts = accepts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    // Clients name the newest form first, then older ones.
    accepts.any(|clause| {
        let clause = clause.replace(' ', "");
        clause.contains("as=APIGroupDiscoveryList")
            && clause.contains("g=apidiscovery.k8s.io")
            && clause.split(';').any(|part| part == "v=v2")
    })
}

/// Returns the path and query of a request in its member. Keys of searches in the label selector are removed.
fn target(outer: &RequestInfo, query: &Query) -> String {
    let mut target = member_path(outer);
    let mut sign = '?';
    for (name, value) in query.iter() {
        let mut value = value.to_owned();
        if name == "labelSelector"
            && let Ok(spelled) = Spelled::read(query)
        {
            value = spelled.label_text;
            if value.is_empty() {
                continue;
            }
        }
        target.push(sign);
        sign = '&';
        escape(name, &mut target);
        target.push('=');
        escape(&value, &mut target);
    }
    target
}

/// Escapes a text for a path or a query.
pub(crate) fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}
