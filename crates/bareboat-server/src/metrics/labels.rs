//! The labels of a request: taken from the kind it was routed to, never from its text.

use crate::aggregation::Route;
use crate::kinds::catalog::Table;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use bareboat_api::kind::Kind;
use bareboat_api::{Str, Value};
use http::{HeaderMap, Method, header};
use std::sync::Arc;

/// Health checks are not resources; they are counted under their path.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];
const COMPONENT: &str = "apiserver";

/// The parts of a request's head that determine its labels, read before the request is consumed.
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

/// Labels of a request that another server answered: those of its route, and names that its discovery has.
#[derive(Debug)]
pub(crate) struct RemoteLabels {
    group: Str,
    version: Str,
    resource: Str,
    subresource: Str,
}

impl RemoteLabels {
    /// Returns the labels of a request. Names that discovery does not have are left out.
    pub(crate) fn of(route: &Route, info: &RequestInfo) -> RemoteLabels {
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.map(Str::new).unwrap_or_default()
        };
        let resources = route.resources();
        let found = resources
            .as_deref()
            .unwrap_or(&[])
            .iter()
            .find(|resource| text(resource, "resource") == info.resource);
        let parts = found.and_then(|found| found.get("subresources")?.as_array());
        let part = parts.unwrap_or(&[]).iter();
        let mut part = part.filter(|part| text(part, "subresource") == info.subresource);
        let (group, version) = route.place();
        RemoteLabels {
            group,
            version,
            resource: found
                .map(|found| text(found, "resource"))
                .unwrap_or_default(),
            subresource: part
                .next()
                .map(|part| text(part, "subresource"))
                .unwrap_or_default(),
        }
    }
}

/// The source of labels.
pub(crate) struct Source<'a> {
    pub(super) labels: Labels<'a>,
    /// The deprecation text of the version.
    pub(super) deprecation: Option<&'a Str>,
}

impl<'a> Source<'a> {
    /// Returns the labels of a request; if its resource is not served, only the verb is set. The kind is looked up if the
    /// request did not come so far.
    pub(super) fn of(
        table: &'a Table,
        kind: Option<&'a Arc<Kind>>,
        sight: Sight,
        info: Option<&RequestInfo>,
        remote: Option<&'a RemoteLabels>,
    ) -> Source<'a> {
        if let (Some(remote), Some(info)) = (remote, info) {
            return Source {
                labels: Labels {
                    verb: sight.verb(info),
                    dry_run: sight.dry_run,
                    group: &remote.group,
                    version: &remote.version,
                    resource: &remote.resource,
                    subresource: &remote.subresource,
                    scope: scope(info),
                    component: COMPONENT,
                },
                deprecation: None,
            };
        }
        let routed = info.filter(|info| info.is_resource).and_then(|info| {
            let kind = match kind {
                Some(kind) => kind,
                None => table.find(&info.group, &info.resource)?.kind(),
            };
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
    /// Returns the labels of a request whose resource is not served.
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

    /// Returns the labels that replace these once there are too many label sets.
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

    /// Values in the order of `verb, dry_run, group, version, resource, subresource, scope, component`.
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
