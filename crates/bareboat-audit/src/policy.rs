//! Policies (`audit.k8s.io/v1`): which requests are audited, and how much of them. The first rule that matches decides; a
//! request that no rule matches is not audited.

mod parse;

use crate::{Level, Stages};
use bareboat_api::kind::User;

pub use parse::PolicyError;

/// Which requests are audited, and how much of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// One rule. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rule {
    verdict: Verdict,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    urls: Vec<String>,
}

/// Resources of one group.
#[derive(Clone, Debug, Default, PartialEq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

/// What a policy decides about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The audit level: how much of the request is recorded.
    pub level: Level,
    /// The stages that make no event.
    pub omit: Stages,
    /// Whether managed fields are left out of objects.
    pub omit_managed_fields: bool,
}

/// A request, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The authenticated user, not an impersonated one; `None` if authentication failed.
    pub user: Option<&'a User>,
    /// The verb, such as `create`; the HTTP method in lower case for other paths.
    pub verb: &'a str,
    /// The resource or path of the request.
    pub target: Target<'a>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// An API resource, or an object of it.
    Resource {
        /// The API group; empty for the core group.
        group: &'a str,
        /// The resource, such as `pods`.
        resource: &'a str,
        /// The subresource, or empty.
        subresource: &'a str,
        /// The namespace, or empty.
        namespace: &'a str,
        /// The name, or empty.
        name: &'a str,
    },
    /// A path that is no resource.
    Path(&'a str),
}

impl Policy {
    /// Returns the verdict of the first rule that matches the request; without one, nothing is audited.
    pub fn decide(&self, request: &Attributes<'_>) -> Verdict {
        let rule = self.rules.iter().find(|rule| rule.matches(request));
        rule.map_or_else(Verdict::default, |rule| rule.verdict)
    }
}

fn has(list: &[String], text: &str) -> bool {
    list.iter().any(|one| one == text)
}

impl Rule {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        let of_user = |list: &[String], fits: &dyn Fn(&User) -> bool| {
            list.is_empty() || request.user.is_some_and(fits)
        };
        if !of_user(&self.users, &|user| has(&self.users, &user.name))
            || !of_user(&self.user_groups, &|user| {
                self.user_groups.iter().any(|group| user.is_in(group))
            })
            || !(self.verbs.is_empty() || has(&self.verbs, request.verb))
        {
            return false;
        }
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        match request.target {
            Target::Resource { namespace, .. } if of_resources => {
                (self.namespaces.is_empty() || has(&self.namespaces, namespace))
                    && (self.resources.is_empty()
                        || self.resources.iter().any(|it| it.matches(request.target)))
            }
            Target::Path(path) if !self.urls.is_empty() => {
                self.urls.iter().any(|url| url_matches(url, path))
            }
            _ => !of_resources && self.urls.is_empty(),
        }
    }
}

impl GroupResources {
    fn matches(&self, target: Target<'_>) -> bool {
        let Target::Resource {
            group,
            resource,
            subresource,
            name,
            ..
        } = target
        else {
            return false;
        };
        if self.group != group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.names.is_empty() || has(&self.names, name);
        named
            && self.resources.iter().any(|pattern| {
                match (pattern.as_str(), pattern.split_once('/')) {
                    ("*", _) => true,
                    (plain, None) => plain == resource && subresource.is_empty(),
                    // Also the resource itself.
                    (_, Some((of, "*"))) => of == resource,
                    (_, Some(("*", part))) => part == subresource,
                    (_, Some((of, part))) => of == resource && part == subresource,
                }
            })
    }
}

/// Returns whether a path matches a pattern: `*`, the path itself, or its beginning followed by `*`.
fn url_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests;
