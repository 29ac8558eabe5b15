//! Reads policies. Unknown or contradictory members are errors that name the field: otherwise a policy could record less than
//! its author intended, unnoticed.

use super::{GroupResources, Policy, Rule, Verdict};
use crate::{Level, Stage, Stages};
use bareboat_api::{Map, Value};
use std::fmt;

/// The maximum number of rules of a policy: each request is compared with all of them.
const MOST_RULES: usize = 1000;

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

type Result<T> = std::result::Result<T, PolicyError>;

fn wrong<T>(path: &str, why: impl fmt::Display) -> Result<T> {
    Err(PolicyError(format!("{path}: {why}")))
}

impl Policy {
    /// Reads a policy from its file.
    pub fn parse(text: &[u8]) -> Result<Policy> {
        let parsed = match bareboat_wire::yaml::parse(text) {
            Ok(parsed) => parsed,
            Err(error) => return wrong("policy", error),
        };
        if let Some(twice) = parsed.duplicates.first() {
            return wrong("policy", twice);
        }
        Policy::from_value(&parsed.value)
    }

    /// Reads a policy.
    pub fn from_value(value: &Value) -> Result<Policy> {
        let policy = object(value, "policy")?;
        known(
            policy,
            "",
            &[
                "apiVersion",
                "kind",
                "metadata",
                "omitManagedFields",
                "omitStages",
                "rules",
            ],
        )?;
        for (key, wanted) in [("apiVersion", "audit.k8s.io/v1"), ("kind", "Policy")] {
            if policy.get_str(key) != Some(wanted) {
                return wrong(key, format_args!("must be {wanted}"));
            }
        }
        let base = Verdict {
            level: Level::None,
            omit: stages(policy, "")?,
            omit_managed_fields: boolean(policy, "", "omitManagedFields")?.unwrap_or(false),
        };
        let rules = match policy.get("rules") {
            Some(Value::Array(rules)) if !rules.is_empty() => rules,
            _ => return wrong("rules", "must have at least one rule"),
        };
        if rules.len() > MOST_RULES {
            return wrong("rules", format_args!("at most {MOST_RULES} are allowed"));
        }
        let rules = rules.iter().enumerate();
        let rules: Result<Vec<Rule>> = rules
            .map(|(at, one)| rule(one, &format!("rules[{at}]"), base))
            .collect();
        Ok(Policy { rules: rules? })
    }
}

fn rule(value: &Value, path: &str, base: Verdict) -> Result<Rule> {
    let map = object(value, path)?;
    known(
        map,
        path,
        &[
            "level",
            "namespaces",
            "nonResourceURLs",
            "omitManagedFields",
            "omitStages",
            "resources",
            "userGroups",
            "users",
            "verbs",
        ],
    )?;
    let level = map.get_str("level").unwrap_or_default();
    let Some(level) = Level::ALL.into_iter().find(|known| known.name() == level) else {
        let names = "None, Metadata, Request or RequestResponse";
        return wrong(&format!("{path}.level"), format_args!("must be {names}"));
    };
    let verdict = Verdict {
        level,
        omit: base.omit.or(stages(map, path)?),
        omit_managed_fields: boolean(map, path, "omitManagedFields")?
            .unwrap_or(base.omit_managed_fields),
    };
    let mut resources = Vec::new();
    for (at, one) in list(map, path, "resources")?.iter().enumerate() {
        resources.push(group_resources(one, &format!("{path}.resources[{at}]"))?);
    }
    let rule = Rule {
        verdict,
        users: texts(map, path, "users")?,
        user_groups: texts(map, path, "userGroups")?,
        verbs: texts(map, path, "verbs")?,
        resources,
        namespaces: texts(map, path, "namespaces")?,
        urls: texts(map, path, "nonResourceURLs")?,
    };
    let of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if of_resources && !rule.urls.is_empty() {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        return wrong(&format!("{path}.nonResourceURLs"), why);
    }
    for url in rule.urls.iter().filter(|url| *url != "*") {
        let path = format!("{path}.nonResourceURLs");
        if !url.starts_with('/') {
            return wrong(&path, format_args!("{url} must begin with a / character"));
        }
        if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
            let why = format!("{url}: a wildcard is only allowed as the last character");
            return wrong(&path, why);
        }
    }
    Ok(rule)
}

fn group_resources(value: &Value, path: &str) -> Result<GroupResources> {
    let map = object(value, path)?;
    known(map, path, &["group", "resourceNames", "resources"])?;
    let found = GroupResources {
        group: match map.get("group") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(group)) => group.to_string(),
            Some(_) => return wrong(&format!("{path}.group"), "must be a text"),
        },
        resources: texts(map, path, "resources")?,
        names: texts(map, path, "resourceNames")?,
    };
    if found.group.contains('/') {
        let path = format!("{path}.group");
        return wrong(&path, "must be a group such as apps, without a version");
    }
    if !found.names.is_empty() && found.resources.is_empty() {
        let path = format!("{path}.resourceNames");
        return wrong(&path, "using resourceNames requires at least one resource");
    }
    Ok(found)
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map> {
    match value.as_object() {
        Some(map) => Ok(map),
        None => wrong(path, "must be an object"),
    }
}

fn known(map: &Map, path: &str, keys: &[&str]) -> Result<()> {
    match map.keys().find(|key| !keys.contains(key)) {
        Some(key) if path.is_empty() => wrong(key, "unknown field"),
        Some(key) => wrong(&format!("{path}.{key}"), "unknown field"),
        None => Ok(()),
    }
}

fn list<'a>(map: &'a Map, path: &str, key: &str) -> Result<&'a [Value]> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => wrong(&format!("{path}.{key}"), "must be a list"),
    }
}

fn texts(map: &Map, path: &str, key: &str) -> Result<Vec<String>> {
    let texts = list(map, path, key)?.iter().map(|one| match one.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => wrong(&format!("{path}.{key}"), "must be a list of texts"),
    });
    texts.collect()
}

fn boolean(map: &Map, path: &str, key: &str) -> Result<Option<bool>> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_bool() {
            Some(value) => Ok(Some(value)),
            None => wrong(&format!("{path}.{key}"), "must be true or false"),
        },
    }
}

fn stages(map: &Map, path: &str) -> Result<Stages> {
    let mut stages = Stages::default();
    for name in texts(map, path, "omitStages")? {
        match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
            Some(stage) => stages = stages.with(stage),
            None => {
                return wrong(
                    &format!("{path}.omitStages"),
                    format_args!("{name} is no stage"),
                );
            }
        }
    }
    Ok(stages)
}
