//! One rule of a role: parsing and matching.

use bareboat_api::field::go_quote;
use bareboat_api::{Map, Str, Value};
use std::fmt;

/// A rule: verbs on resources, or verbs on URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The verbs; `*` matches all.
    pub verbs: Vec<Str>,
    /// The API groups; `*` matches all.
    pub api_groups: Vec<Str>,
    /// The resources, such as `pods`, `pods/log` or `*/scale`; `*` matches all.
    pub resources: Vec<Str>,
    /// The names of the objects; an empty list matches all.
    pub resource_names: Vec<Str>,
    /// The URLs that are not resources; `*` at the end matches any rest.
    pub non_resource_urls: Vec<Str>,
}

impl Rule {
    /// Parses a rule of a role.
    pub fn from_value(value: &Value) -> Rule {
        let list = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_array)
                .unwrap_or(&[])
                .iter()
                .filter_map(Value::as_str)
                .map(Str::new)
                .collect::<Vec<Str>>()
        };
        Rule {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// Returns the number of words in the rule.
    pub(crate) fn size(&self) -> usize {
        self.verbs.len()
            + self.api_groups.len()
            + self.resources.len()
            + self.resource_names.len()
            + self.non_resource_urls.len()
    }

    /// Parses the rules of a role.
    pub fn list(role: &Value) -> Vec<Rule> {
        role.get("rules")
            .and_then(Value::as_array)
            .unwrap_or(&[])
            .iter()
            .map(Rule::from_value)
            .collect()
    }

    /// Returns the rule as in a role; empty members are left out, except for verbs.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("verbs", self.verbs.iter().cloned().collect::<Value>());
        let members = [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ];
        for (key, list) in members {
            if !list.is_empty() {
                map.insert(key, list.iter().cloned().collect::<Value>());
            }
        }
        Value::Object(map)
    }

    /// Returns whether the rule has URLs instead of resources.
    pub fn is_about_urls(&self) -> bool {
        !self.non_resource_urls.is_empty()
    }

    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        has_or_all(&self.verbs, verb)
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        has_or_all(&self.api_groups, group)
    }

    pub(crate) fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources
            .iter()
            .any(|rule| resource_matches(rule, resource, subresource))
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == name)
    }

    pub(crate) fn has_url(&self, url: &str) -> bool {
        self.non_resource_urls
            .iter()
            .any(|rule| url_matches(rule, url))
    }
}

/// Prints a rule as in escalation errors.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        f.write_str("{")?;
        let mut first = true;
        for (name, list) in members {
            if list.is_empty() {
                continue;
            }
            if !first {
                f.write_str(", ")?;
            }
            first = false;
            write!(f, "{name}:{}", quoted(list))?;
        }
        f.write_str("}")
    }
}

/// Prints a list of strings like Go's `%q`.
pub(crate) fn quoted(list: &[Str]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has_or_all(list: &[Str], wanted: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

/// Returns whether the resource of a rule matches that of a request.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    let Some((parent, part)) = rule.split_once('/') else {
        return false;
    };
    part == subresource && (parent == "*" || parent == resource)
}

/// Returns whether the URL of a rule matches that of a request. All stars at the end count as one.
pub(crate) fn url_matches(rule: &str, url: &str) -> bool {
    if rule == "*" || rule == url {
        return true;
    }
    rule.ends_with('*') && url.starts_with(rule.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_does_not_cover_its_subresources() {
        assert!(resource_matches("pods", "pods", ""));
        assert!(!resource_matches("pods", "pods", "log"));
        assert!(resource_matches("pods/log", "pods", "log"));
        assert!(resource_matches("*/log", "pods", "log"));
        assert!(!resource_matches("*/log", "pods", ""));
        assert!(!resource_matches("pods/*", "pods", "log"));
        assert!(!resource_matches("*/*", "pods", "log"));
        assert!(resource_matches("*", "pods", "log"));
    }

    #[test]
    fn a_star_at_the_end_of_a_url_matches_any_rest() {
        assert!(url_matches("/a/**", "/a/b/c"));
        assert!(url_matches("/a/*", "/a/"));
        assert!(!url_matches("/a/*", "/a"));
        assert!(!url_matches("/a", "/a/b"));
        assert!(url_matches("*", "/anything"));
    }
}
