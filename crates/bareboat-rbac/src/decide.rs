//! Decisions: whether a request is allowed, and why.

use crate::rule::Rule;

/// What a user wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Something about objects of the API.
    Resource {
        /// The verb, such as `get` or `deletecollection`.
        verb: &'a str,
        /// The API group; empty for core.
        group: &'a str,
        /// The resource, such as `pods`.
        resource: &'a str,
        /// The subresource; empty for the object itself.
        subresource: &'a str,
        /// The namespace; empty for cluster scope or all namespaces.
        namespace: &'a str,
        /// The name of the object; empty for collections.
        name: &'a str,
    },
    /// A path that is not a resource.
    Url {
        /// The verb: the HTTP method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl<'a> Request<'a> {
    /// Whether a rule allows this.
    pub(crate) fn matches(&self, rule: &Rule) -> bool {
        match self {
            Request::Resource {
                verb,
                group,
                resource,
                subresource,
                name,
                ..
            } => {
                rule.has_verb(verb)
                    && rule.has_group(group)
                    && rule.has_resource(resource, subresource)
                    && rule.has_name(name)
            }
            Request::Url { verb, path } => rule.has_verb(verb) && rule.has_url(path),
        }
    }

    /// The namespace whose bindings count beside those of the cluster; empty for none.
    pub(crate) fn namespace(&self) -> &'a str {
        match self {
            Request::Resource { namespace, .. } => namespace,
            Request::Url { .. } => "",
        }
    }
}

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Which binding allows it, or which roles could not be found; empty if there is nothing to say.
    pub reason: String,
}

/// Several errors as one text: a lone one as it is, more of them in brackets, each once.
pub(crate) fn joined(errors: &[String]) -> String {
    let mut seen = ahash::AHashSet::new();
    let unique: Vec<&str> = errors
        .iter()
        .map(String::as_str)
        .filter(|error| seen.insert(*error))
        .collect();
    match unique.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}
