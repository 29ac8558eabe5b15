//! A FlowSchema: which requests it matches, and how it distinguishes flows.

use bareboat_api::kind::User;
use bareboat_api::{Str, Value};

const ACCOUNT: &str = "system:serviceaccount:";

/// The parts of a request that the classifier reads.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// A request for a resource.
    Resource {
        /// The verb.
        verb: &'a str,
        /// The API group; empty for core.
        group: &'a str,
        /// The resource, such as `pods`.
        resource: &'a str,
        /// The subresource, if any.
        subresource: &'a str,
        /// The namespace; empty for the cluster.
        namespace: &'a str,
    },
    /// A request for any other path.
    Url {
        /// The verb.
        verb: &'a str,
        /// The path of the URL.
        path: &'a str,
    },
}

impl<'a> Request<'a> {
    /// The namespace; empty for the cluster and for paths.
    pub fn namespace(&self) -> &'a str {
        match self {
            Request::Resource { namespace, .. } => namespace,
            Request::Url { .. } => "",
        }
    }
}

/// How a schema distinguishes flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinguisher {
    /// All requests are one flow.
    #[default]
    None,
    /// Each user is a flow.
    ByUser,
    /// Each namespace is a flow.
    ByNamespace,
}

impl Distinguisher {
    /// Returns the text that distinguishes the flow of a request from others.
    pub fn of<'a>(self, user: &'a User, request: &Request<'a>) -> &'a str {
        match self {
            Distinguisher::None => "",
            Distinguisher::ByUser => &user.name,
            Distinguisher::ByNamespace => request.namespace(),
        }
    }
}

/// A compiled FlowSchema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The name of the flow schema.
    pub name: Str,
    /// The uid of the object; empty for a built-in schema that is not stored.
    pub uid: Str,
    /// Schemas with lower numbers are tried first.
    pub precedence: i64,
    /// The name of the priority level.
    pub level: Str,
    /// What distinguishes the flows of the schema: the user, the namespace, or nothing.
    pub distinguisher: Distinguisher,
    pub(crate) rules: Vec<Rule>,
}

/// Some subjects and what they ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    urls: Vec<UrlRule>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    Everybody,
    User(Str),
    Group(Str),
    /// All service accounts of a namespace.
    Accounts(Str),
}

#[derive(Clone, Debug, PartialEq)]
struct ResourceRule {
    verbs: Names,
    groups: Names,
    resources: Names,
    namespaces: Names,
    cluster: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct UrlRule {
    verbs: Names,
    urls: Names,
}

/// A list of names, or all of them.
#[derive(Clone, Debug, PartialEq)]
enum Names {
    All,
    These(Vec<Str>),
}

impl Names {
    fn of(value: &Value, key: &str) -> Names {
        let list = value.get(key).and_then(Value::as_array).unwrap_or(&[]);
        match list {
            [only] if only.as_str() == Some("*") => Names::All,
            _ => Names::These(
                list.iter()
                    .filter_map(Value::as_str)
                    .map(Str::new)
                    .collect(),
            ),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::These(names) => names.iter().any(|one| one == name),
        }
    }
}

impl Schema {
    /// Reads a FlowSchema. Absent members have their defaults.
    pub fn from_value(object: &Value) -> Schema {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or("");
        let rules = object.at(&["spec", "rules"]).and_then(Value::as_array);
        Schema {
            name: Str::new(text(&["metadata", "name"])),
            uid: Str::new(text(&["metadata", "uid"])),
            precedence: object
                .at(&["spec", "matchingPrecedence"])
                .and_then(Value::as_i64)
                .unwrap_or(1000),
            level: Str::new(text(&["spec", "priorityLevelConfiguration", "name"])),
            distinguisher: match text(&["spec", "distinguisherMethod", "type"]) {
                "ByUser" => Distinguisher::ByUser,
                "ByNamespace" => Distinguisher::ByNamespace,
                _ => Distinguisher::None,
            },
            rules: rules.unwrap_or(&[]).iter().map(Rule::from_value).collect(),
        }
    }

    /// Returns whether a request of a user matches.
    pub fn matches(&self, user: &User, request: &Request<'_>) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.is_about(request) && rule.subjects.iter().any(|who| who.is(user)))
    }
}

impl Rule {
    fn from_value(value: &Value) -> Rule {
        let list = |key: &str| value.get(key).and_then(Value::as_array).unwrap_or(&[]);
        Rule {
            subjects: list("subjects").iter().filter_map(Subject::of).collect(),
            resources: list("resourceRules")
                .iter()
                .map(|rule| ResourceRule {
                    verbs: Names::of(rule, "verbs"),
                    groups: Names::of(rule, "apiGroups"),
                    resources: Names::of(rule, "resources"),
                    namespaces: Names::of(rule, "namespaces"),
                    cluster: rule.get("clusterScope").and_then(Value::as_bool) == Some(true),
                })
                .collect(),
            urls: list("nonResourceRules")
                .iter()
                .map(|rule| UrlRule {
                    verbs: Names::of(rule, "verbs"),
                    urls: Names::of(rule, "nonResourceURLs"),
                })
                .collect(),
        }
    }

    fn is_about(&self, request: &Request<'_>) -> bool {
        match request {
            Request::Resource { .. } => self.resources.iter().any(|rule| rule.matches(request)),
            Request::Url { verb, path } => self
                .urls
                .iter()
                .any(|rule| rule.verbs.has(verb) && rule.has_path(path)),
        }
    }
}

impl ResourceRule {
    fn matches(&self, request: &Request<'_>) -> bool {
        let &Request::Resource {
            verb,
            group,
            resource,
            subresource,
            namespace,
        } = request
        else {
            return false;
        };
        let scope = match namespace {
            "" => self.cluster,
            _ => self.namespaces.has(namespace),
        };
        scope
            && self.verbs.has(verb)
            && self.groups.has(group)
            && self.has_resource(resource, subresource)
    }

    /// A subresource is named as `resource/subresource`.
    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        let Names::These(names) = &self.resources else {
            return true;
        };
        names.iter().any(|name| match subresource {
            "" => name == resource,
            _ => name
                .strip_prefix(resource)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| rest == subresource),
        })
    }
}

impl UrlRule {
    /// A URL of a rule matches itself and everything below it.
    fn has_path(&self, path: &str) -> bool {
        let Names::These(urls) = &self.urls else {
            return true;
        };
        urls.iter().any(|url| {
            let folder = url.trim_end_matches('*').trim_end_matches('/');
            url == path
                || path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

impl Subject {
    fn of(value: &Value) -> Option<Subject> {
        let text = |path: &[&str]| value.at(path).and_then(Value::as_str);
        Some(match text(&["kind"])? {
            "User" => match text(&["user", "name"])? {
                "*" => Subject::Everybody,
                name => Subject::User(Str::new(name)),
            },
            "Group" => match text(&["group", "name"])? {
                "*" => Subject::Everybody,
                name => Subject::Group(Str::new(name)),
            },
            "ServiceAccount" => {
                let namespace = text(&["serviceAccount", "namespace"])?;
                match text(&["serviceAccount", "name"])? {
                    "*" => Subject::Accounts(Str::new(namespace)),
                    name => Subject::User(Str::new(format!("{ACCOUNT}{namespace}:{name}"))),
                }
            }
            _ => return None,
        })
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Subject::Everybody => true,
            Subject::User(name) => *name == user.name,
            Subject::Group(name) => user.groups.contains(name),
            Subject::Accounts(namespace) => account_namespace(&user.name) == Some(namespace),
        }
    }
}

/// Returns the namespace of a service account, given its user name.
pub(crate) fn account_namespace(user: &str) -> Option<&str> {
    Some(user.strip_prefix(ACCOUNT)?.split_once(':')?.0)
}
