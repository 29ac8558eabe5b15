//! The labels of a request: from what it was routed to, never from what it says.

use crate::kinds::catalog::Table;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use bareboat_api::Str;
use http::{HeaderMap, Method, header};

/// Health checks are no resources; they are counted under their path.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];
const COMPONENT: &str = "apiserver";

/// What of the head of a request decides its labels, read before the request is taken apart.
#[derive(Clone, Copy)]
pub(crate) struct Sight {
    method: &'static str,
    dry_run: &'static str,
}

impl Sight {
    /// Reads the head of a request.
    pub(crate) fn of(method: &Method, headers: &HeaderMap, query: Option<&Query>) -> Sight {
        let apply = || {
            headers
                .get(header::CONTENT_TYPE)
                .is_some_and(|media| media == "application/apply-patch+yaml")
        };
        Sight {
            method: match *method {
                Method::GET | Method::HEAD => "GET",
                Method::POST => "POST",
                Method::PUT => "PUT",
                Method::PATCH if apply() => "APPLY",
                Method::PATCH => "PATCH",
                Method::DELETE => "DELETE",
                _ => "other",
            },
            dry_run: query.map_or("", dry_run),
        }
    }

    fn verb(self, info: &RequestInfo) -> &'static str {
        if matches!(
            info.subresource.as_str(),
            "log" | "exec" | "portforward" | "attach" | "proxy"
        ) {
            return "CONNECT";
        }
        match (self.method, info.verb.as_str()) {
            ("GET", "list") => "LIST",
            ("GET", "watch") => "WATCH",
            (method, _) => method,
        }
    }
}

fn dry_run(query: &Query) -> &'static str {
    let mut given = query.all("dryRun").peekable();
    if given.peek().is_none() {
        ""
    } else if given.all(|value| value == "All") {
        "All"
    } else {
        "invalid"
    }
}

/// The labels of a request. The texts are borrowed from the table of kinds, or are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Labels<'a> {
    pub(super) verb: &'static str,
    pub(super) dry_run: &'static str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    pub(super) scope: &'static str,
    pub(super) component: &'static str,
}

/// What the labels were taken from.
pub(crate) struct Source<'a> {
    pub(super) labels: Labels<'a>,
    /// What the version says about its deprecation.
    pub(super) deprecation: Option<&'a Str>,
}

impl<'a> Source<'a> {
    /// The labels of a request; what is not served has none but its verb.
    pub(super) fn of(table: &'a Table, sight: Sight, info: Option<&RequestInfo>) -> Source<'a> {
        let routed = info.filter(|info| info.is_resource).and_then(|info| {
            let kind = table.find(&info.group, &info.resource)?.kind();
            let version = kind
                .versions
                .iter()
                .find(|version| version.served && version.name == info.version)?;
            let subresource = match info.subresource.as_str() {
                "" => "",
                name => version.subresource(name)?.name.as_str(),
            };
            Some(Source {
                labels: Labels {
                    verb: sight.verb(info),
                    dry_run: sight.dry_run,
                    group: &kind.group,
                    version: &version.name,
                    resource: &kind.names.plural,
                    subresource,
                    scope: scope(info),
                    component: COMPONENT,
                },
                deprecation: version.deprecation.as_ref(),
            })
        });
        routed.unwrap_or_else(|| Source {
            labels: Labels::unrouted(sight, info),
            deprecation: None,
        })
    }
}

impl<'a> Labels<'a> {
    /// The labels of a request that reached nothing that is served.
    pub(super) fn unrouted(sight: Sight, info: Option<&RequestInfo>) -> Labels<'a> {
        let health = info
            .filter(|info| !info.is_resource)
            .and_then(|info| HEALTH.into_iter().find(|path| *path == info.path));
        Labels {
            verb: sight.method,
            dry_run: "",
            group: "",
            version: "",
            resource: "",
            subresource: health.unwrap_or(""),
            scope: "",
            component: if health.is_some() { "" } else { COMPONENT },
        }
    }

    /// The labels that stand in for these once there are too many label sets.
    pub(super) fn overflow(self) -> Labels<'static> {
        Labels {
            group: "",
            version: "",
            resource: "other",
            subresource: "",
            verb: self.verb,
            dry_run: self.dry_run,
            scope: self.scope,
            component: self.component,
        }
    }

    /// Values in the order of `verb, group, version, resource, subresource, scope, component`.
    pub(super) fn values(&self) -> [&str; 7] {
        [
            self.verb,
            self.group,
            self.version,
            self.resource,
            self.subresource,
            self.scope,
            self.component,
        ]
    }

    /// The same with `dry_run` second.
    pub(super) fn values_with_dry_run(&self) -> [&str; 8] {
        let [verb, rest @ ..] = self.values();
        let [group, version, resource, subresource, scope, component] = rest;
        [
            verb,
            self.dry_run,
            group,
            version,
            resource,
            subresource,
            scope,
            component,
        ]
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    if info.verb == "create" || !info.is_collection() {
        "resource"
    } else if !info.namespace.is_empty() {
        "namespace"
    } else {
        "cluster"
    }
}
