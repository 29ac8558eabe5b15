//! The escalation check: a user cannot grant rights they do not have.

use crate::policy::{Policy, Scope};
use crate::rule::{Rule, quoted};
use ahash::AHashMap;
use bareboat_api::Str;
use bareboat_api::kind::User;
use std::collections::BTreeSet;

/// The maximum number of single rights that a set of rules may be broken into; the check rejects
/// larger sets. A few kilobytes of lists multiply to millions of rights, and each right is compared
/// with all rules of the user.
const MOST_RIGHTS: usize = 20_000;
/// The maximum number of words that one check compares. It takes some ten milliseconds.
const MOST_STEPS: usize = 10_000_000;

/// The reason why a user may not grant a set of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct GrantError {
    text: String,
}

impl Policy {
    /// Checks that a user has all the rights in `rules`, in a namespace or in the cluster.
    pub fn check_grant(
        &self,
        user: &User,
        scope: Scope<'_>,
        rules: &[Rule],
    ) -> Result<(), GrantError> {
        let held = self.rules_for(user, scope.namespace());
        let missing = held.missing;
        let uncovered = match uncovered(&held.rules, rules) {
            // Some of the rights may be in rules that were not looked at.
            Ok(left) if held.is_cut && !left.is_empty() => Err(TooMany::Steps),
            other => other,
        };
        let uncovered = uncovered.map_err(|too_many| GrantError {
            text: match too_many {
                TooMany::Rights => format!(
                    "the rules grant more than {MOST_RIGHTS} single rights, which is too many to check: \
                     use fewer, or wildcards"
                ),
                TooMany::Steps => "the rules of the role and those of the user are too many to compare: use fewer, \
                                   or wildcards"
                    .to_owned(),
            },
        })?;
        if uncovered.is_empty() {
            return Ok(());
        }
        let lines: BTreeSet<String> = compact(uncovered).iter().map(Rule::to_string).collect();
        let lines: Vec<String> = lines.into_iter().collect();
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            bareboat_api::field::go_quote(&user.name),
            quoted(&user.groups),
            lines.join("\n")
        );
        if !missing.is_empty() {
            text.push_str("; resolution errors: [");
            text.push_str(&missing.join(" "));
            text.push(']');
        }
        Err(GrantError { text })
    }
}

/// Why a check is refused.
enum TooMany {
    /// The rules break into too many single rights.
    Rights,
    /// Comparing them with the rules of the user takes too long.
    Steps,
}

/// Returns the single rights in `wanted` that no rule in `own` covers.
fn uncovered(own: &[Rule], wanted: &[Rule]) -> Result<Vec<Rule>, TooMany> {
    let (mut rights, mut steps) = (0, 0);
    let mut left = Vec::new();
    for rule in wanted {
        // A rule that is covered as a whole need not be broken up.
        if held(own, rule.size(), &mut steps, |own| covers_whole(own, rule))? {
            continue;
        }
        rights += count(rule);
        if rights > MOST_RIGHTS {
            return Err(TooMany::Rights);
        }
        for single in singles(rule) {
            if !held(own, 1, &mut steps, |own| covers(own, &single))? {
                left.push(single.to_rule());
            }
        }
    }
    Ok(left)
}

/// Returns whether a condition holds for one of the rules, and counts the words that are compared.
fn held(
    own: &[Rule],
    size: usize,
    steps: &mut usize,
    covers: impl Fn(&Rule) -> bool,
) -> Result<bool, TooMany> {
    for rule in own {
        *steps = steps.saturating_add(rule.size().saturating_mul(size));
        if *steps > MOST_STEPS {
            return Err(TooMany::Steps);
        }
        if covers(rule) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether the rules in `own` together cover every right of `wanted`; false if the comparison takes too long.
pub(crate) fn all_covered(own: &[Rule], wanted: &Rule) -> bool {
    uncovered(own, std::slice::from_ref(wanted)).is_ok_and(|left| left.is_empty())
}

/// A single right: one verb on one resource (of one name, or of all names), or one verb on one URL.
#[derive(Clone, Copy, Debug)]
enum Single<'a> {
    Resource {
        verb: &'a Str,
        group: &'a Str,
        resource: &'a Str,
        name: Option<&'a Str>,
    },
    Url {
        verb: &'a Str,
        url: &'a Str,
    },
}

impl Single<'_> {
    fn to_rule(self) -> Rule {
        match self {
            Single::Resource {
                verb,
                group,
                resource,
                name,
            } => Rule {
                verbs: vec![verb.clone()],
                api_groups: vec![group.clone()],
                resources: vec![resource.clone()],
                resource_names: name.into_iter().cloned().collect(),
                non_resource_urls: Vec::new(),
            },
            Single::Url { verb, url } => Rule {
                verbs: vec![verb.clone()],
                non_resource_urls: vec![url.clone()],
                ..Rule::default()
            },
        }
    }
}

fn count(rule: &Rule) -> usize {
    let resources = rule
        .api_groups
        .len()
        .saturating_mul(rule.resources.len())
        .saturating_mul(rule.verbs.len())
        .saturating_mul(rule.resource_names.len().max(1));
    resources.saturating_add(
        rule.non_resource_urls
            .len()
            .saturating_mul(rule.verbs.len()),
    )
}

fn singles(rule: &Rule) -> Vec<Single<'_>> {
    let mut all = Vec::with_capacity(count(rule));
    let names: Vec<Option<&Str>> = match rule.resource_names.as_slice() {
        [] => vec![None],
        some => some.iter().map(Some).collect(),
    };
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                all.extend(names.iter().map(|name| Single::Resource {
                    verb,
                    group,
                    resource,
                    name: *name,
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        all.extend(rule.verbs.iter().map(|verb| Single::Url { verb, url }));
    }
    all
}

fn has(list: &[Str], wanted: &Str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

fn covers_resource(own: &[Str], wanted: &Str) -> bool {
    if has(own, wanted) {
        return true;
    }
    let Some((_, part)) = wanted.split_once('/') else {
        return false;
    };
    own.iter()
        .any(|entry| entry.strip_prefix("*/") == Some(part))
}

fn covers_url(own: &[Str], wanted: &Str) -> bool {
    own.iter().any(|entry| {
        entry == wanted || (entry.ends_with('*') && wanted.starts_with(entry.trim_end_matches('*')))
    })
}

fn covers_name(own: &[Str], wanted: Option<&Str>) -> bool {
    own.is_empty() || wanted.is_some_and(|name| own.contains(name))
}

fn covers(own: &Rule, wanted: &Single<'_>) -> bool {
    match wanted {
        Single::Resource {
            verb,
            group,
            resource,
            name,
        } => {
            has(&own.verbs, verb)
                && has(&own.api_groups, group)
                && covers_resource(&own.resources, resource)
                && covers_name(&own.resource_names, *name)
        }
        Single::Url { verb, url } => {
            has(&own.verbs, verb) && covers_url(&own.non_resource_urls, url)
        }
    }
}

/// Returns whether one rule covers every right of another.
fn covers_whole(own: &Rule, wanted: &Rule) -> bool {
    let names = match wanted.resource_names.as_slice() {
        [] => own.resource_names.is_empty(),
        some => some
            .iter()
            .all(|name| covers_name(&own.resource_names, Some(name))),
    };
    names
        && wanted.verbs.iter().all(|verb| has(&own.verbs, verb))
        && wanted
            .api_groups
            .iter()
            .all(|group| has(&own.api_groups, group))
        && wanted
            .resources
            .iter()
            .all(|resource| covers_resource(&own.resources, resource))
        && wanted
            .non_resource_urls
            .iter()
            .all(|url| covers_url(&own.non_resource_urls, url))
}

/// Joins single rights on the same resource that differ only in the verb.
fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut joined: Vec<Rule> = Vec::with_capacity(rules.len());
    let mut places: AHashMap<(Str, Str, Option<Str>), usize> = AHashMap::new();
    for rule in rules {
        if rule.is_about_urls() {
            joined.push(rule);
            continue;
        }
        let key = (
            rule.api_groups.first().cloned().unwrap_or_default(),
            rule.resources.first().cloned().unwrap_or_default(),
            rule.resource_names.first().cloned(),
        );
        match places.get(&key) {
            Some(place) => joined[*place].verbs.extend(rule.verbs),
            None => {
                places.insert(key, joined.len());
                joined.push(rule);
            }
        }
    }
    joined
}
