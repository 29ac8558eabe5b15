//! A role prepared for decisions: its rules, and which of them may concern a resource.

use crate::decide::Request;
use crate::rule::Rule;
use ahash::RandomState;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Roles with fewer rules than this are read from top to bottom.
const FEW: usize = 6;

/// The rules of one role.
#[derive(Debug)]
pub(crate) struct Role {
    rules: Vec<Rule>,
    /// By the hash of group and resource, the rules that may match it. Absent for short roles.
    exact: Option<HashMap<u64, SmallVec<[u16; 6]>, RandomState>>,
    /// The rules that an exact lookup cannot find: those with wildcards or URLs.
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
        let mut exact: HashMap<u64, SmallVec<[u16; 6]>, RandomState> = HashMap::default();
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

    /// Whether a rule of this role allows the request.
    pub(crate) fn allows(&self, request: &Request<'_>, hasher: &RandomState) -> bool {
        let Some(exact) = &self.exact else {
            return self.rules.iter().any(|rule| request.matches(rule));
        };
        let matches = |index: &u16| request.matches(&self.rules[usize::from(*index)]);
        if let Request::Resource {
            group,
            resource,
            subresource,
            ..
        } = request
            && let Some(found) = exact.get(&hasher.hash_one((*group, *resource, *subresource)))
            && found.iter().any(matches)
        {
            return true;
        }
        self.open.iter().any(matches)
    }
}
