//! A role prepared for decisions: its rules, indexed by resource.

use crate::policy::Request;
use crate::rule::Rule;
use ahash::RandomState;
use bareboat_api::HashedMap;
use smallvec::SmallVec;

/// Roles with fewer rules than this are searched linearly.
const FEW: usize = 6;

/// The rules of one role.
#[derive(Debug)]
pub(crate) struct Role {
    rules: Vec<Rule>,
    /// The rules that may match a resource, by the hash of group and resource. Absent for short
    /// roles.
    exact: Option<HashedMap<SmallVec<[u16; 4]>>>,
    /// The rules that the index cannot find: those with wildcards or URLs.
    open: Vec<u16>,
}

impl Role {
    pub(crate) fn new(rules: Vec<Rule>, hasher: &RandomState) -> Role {
        let indexable = rules.len() >= FEW && rules.len() <= usize::from(u16::MAX);
        if !indexable {
            return Role {
                rules,
                exact: None,
                open: Vec::new(),
            };
        }
        let mut exact: HashedMap<SmallVec<[u16; 4]>> = HashedMap::default();
        let mut open = Vec::new();
        for (index, rule) in (0u16..).zip(&rules) {
            let wild = |list: &[bareboat_api::Str]| list.iter().any(|entry| entry.contains('*'));
            if rule.is_about_urls() || wild(&rule.api_groups) || wild(&rule.resources) {
                open.push(index);
                continue;
            }
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
                    let found = exact
                        .entry(hasher.hash_one((group.as_str(), resource, part)))
                        .or_default();
                    if found.last() != Some(&index) {
                        found.push(index);
                    }
                }
            }
        }
        Role {
            rules,
            exact: Some(exact),
            open,
        }
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns whether a rule of this role allows the request, whose key is [`resource_key`].
    pub(crate) fn allows(&self, request: &Request<'_>, key: Option<u64>) -> bool {
        let Some(exact) = &self.exact else {
            return self.rules.iter().any(|rule| request.matches(rule));
        };
        let matches = |index: &u16| request.matches(&self.rules[usize::from(*index)]);
        let found = key.and_then(|key| exact.get(&key));
        found.is_some_and(|found| found.iter().any(matches)) || self.open.iter().any(matches)
    }
}

/// Returns the hash of the resource of a request, by which roles find their rules; `None` for URLs.
pub(crate) fn resource_key(request: &Request<'_>, hasher: &RandomState) -> Option<u64> {
    match request {
        Request::Resource {
            group,
            resource,
            subresource,
            ..
        } => Some(hasher.hash_one((*group, *resource, *subresource))),
        Request::Url { .. } => None,
    }
}
