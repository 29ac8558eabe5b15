//! Which types of a member are synced: rules of its PediaCluster, matched against what the member serves.

use crate::discovery::{ApiResource, Discovered};
use crate::options::SyncOptions;
use bareboat_api::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The group and the plural of a type, which are the same in all its versions.
pub(crate) type TypeKey = (String, String);

/// The group and plural of CustomResourceDefinitions.
pub(crate) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// The group and plural of namespaces.
pub(crate) const NAMESPACES: (&str, &str) = ("", "namespaces");

/// Types by a text: `deployments.apps`, `*.apps`, `pods` of the core group, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypePattern {
    resource: String,
    group: Option<String>,
}

impl TypePattern {
    pub(crate) fn parse(text: &str) -> TypePattern {
        let text = text.trim().to_lowercase();
        match text.split_once('.') {
            Some((resource, group)) => TypePattern {
                resource: resource.to_owned(),
                group: Some(group.to_owned()),
            },
            None if text == "*" => TypePattern {
                resource: text,
                group: None,
            },
            None => TypePattern {
                resource: text,
                group: Some(String::new()),
            },
        }
    }

    pub(crate) fn matches(&self, resource: &ApiResource) -> bool {
        self.group
            .as_ref()
            .is_none_or(|group| *group == resource.group)
            && (self.resource == "*" || resource.is_called(&self.resource))
    }
}

/// One element of `syncResources`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    group: String,
    versions: Vec<String>,
    resources: Vec<String>,
}

impl Rule {
    /// Reads a list of rules.
    pub(crate) fn read_all(list: Option<&Value>) -> Vec<Rule> {
        let list = list.and_then(Value::as_array).unwrap_or_default();
        let texts = |rule: &Value, key: &str| -> Vec<String> {
            let list = rule.get(key).and_then(Value::as_array).unwrap_or_default();
            list.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let rules = list.iter().map(|rule| {
            let group = rule.get("group").and_then(Value::as_str);
            let mut resources = texts(rule, "resources");
            // Events of an object are events; they are synced as such.
            if !texts(rule, "eventsInvolvedResources").is_empty() {
                resources.push("\u{0}events".to_owned());
            }
            Rule {
                group: group.unwrap_or("").to_owned(),
                versions: texts(rule, "versions"),
                resources,
            }
        });
        rules.collect()
    }

    fn names(&self, resource: &ApiResource) -> bool {
        self.resources.iter().any(|name| resource.is_called(name))
    }

    /// Returns whether the rule means a type, and whether it names it.
    fn matches(&self, resource: &ApiResource) -> Option<Named> {
        // Events are one kind in two groups.
        let of_events = is_events(resource) && EVENT_GROUPS.contains(&self.group.as_str());
        let in_group = self.group == "*" || self.group == resource.group || of_events;
        if in_group {
            let named = self.names(resource);
            if named && self.group != "*" {
                return Some(Named::Yes);
            }
            if named
                || self.resources.iter().any(|name| name == "*")
                || (self.group == "*" && self.resources.is_empty())
            {
                return Some(Named::ByWildcard);
            }
        }
        let events = self.resources.iter().any(|name| name == "\u{0}events");
        (events && is_events(resource)).then_some(Named::Yes)
    }
}

/// How a rule means a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    ByWildcard,
    Yes,
}

/// The groups that have events.
const EVENT_GROUPS: [&str; 2] = ["", "events.k8s.io"];

fn is_events(resource: &ApiResource) -> bool {
    resource.resource == "events" && EVENT_GROUPS.contains(&resource.group.as_str())
}

/// Types that are noise: they are synced only if a rule names them.
fn must_be_named(resource: &ApiResource) -> bool {
    is_events(resource)
        || (resource.resource == "leases" && resource.group == "coordination.k8s.io")
}

/// What a member is to sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) rules: Vec<Rule>,
    pub(crate) all_custom: bool,
    pub(crate) options: Arc<SyncOptions>,
}

/// The definitions of a member's custom kinds.
pub(crate) type Definitions = BTreeMap<TypeKey, Arc<Value>>;

/// A type to sync.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) resource: ApiResource,
    /// The same kind in another group, if a rule names that one.
    pub(crate) alias: Option<ApiResource>,
    /// Other versions that the member serves.
    pub(crate) others: Vec<String>,
    pub(crate) definition: Option<Arc<Value>>,
    /// Whether views show it.
    pub(crate) shown: bool,
    /// Whether a rule names it, so that settings about confidential data hold for it.
    pub(crate) named: bool,
}

impl Chosen {
    pub(crate) fn key(&self) -> TypeKey {
        self.resource.key()
    }
}

impl Wanted {
    /// Returns whether a type is synced because the sync itself needs it, whatever rules say.
    pub(crate) fn needs(&self, key: &TypeKey) -> bool {
        let selects = self.options.namespace_selector.is_some();
        let key = (key.0.as_str(), key.1.as_str());
        key == DEFINITIONS || selects && key == NAMESPACES
    }

    /// Returns whether a type is to be synced, judged by its names alone.
    pub(crate) fn wants(&self, resource: &ApiResource, is_custom: bool) -> bool {
        self.named(resource, is_custom).is_some()
    }

    fn named(&self, resource: &ApiResource, is_custom: bool) -> Option<Named> {
        if self
            .options
            .exclude
            .iter()
            .any(|pattern| pattern.matches(resource))
        {
            return None;
        }
        let by_rules = self
            .rules
            .iter()
            .filter_map(|rule| rule.matches(resource))
            .max();
        let custom = (self.all_custom && is_custom).then_some(Named::ByWildcard);
        let named = by_rules.max(custom)?;
        (named == Named::Yes || !must_be_named(resource)).then_some(named)
    }

    /// Chooses the types and their versions. Types of groups that may be custom wait until the definitions are known.
    pub(crate) fn choose(
        &self,
        discovered: &Discovered,
        definitions: Option<&Definitions>,
    ) -> Vec<Chosen> {
        let mut versions: BTreeMap<TypeKey, Vec<&ApiResource>> = BTreeMap::new();
        for resource in discovered
            .resources
            .iter()
            .filter(|one| one.can_be_synced())
        {
            versions.entry(resource.key()).or_default().push(resource);
        }
        let has_core_events = versions.contains_key(&(String::new(), "events".to_owned()));
        let mut chosen = Vec::new();
        for (key, served) in versions {
            let definition = definitions.and_then(|all| all.get(&key));
            let is_definitions = (key.0.as_str(), key.1.as_str()) == DEFINITIONS;
            if definitions.is_none() && may_be_custom(&key.0) && !is_definitions {
                continue;
            }
            // One kind in two groups is synced once.
            if key.0 == "events.k8s.io" && has_core_events {
                continue;
            }
            let named = self.named(served[0], definition.is_some());
            if named.is_none() && !self.needs(&key) {
                continue;
            }
            let version = self.version(&served, definition.map(|one| &**one));
            let others = served.iter().filter(|one| one.version != version.version);
            chosen.push(Chosen {
                alias: self.alias(version, discovered),
                others: others.map(|one| one.version.clone()).collect(),
                resource: version.clone(),
                definition: definition.cloned(),
                shown: named.is_some(),
                named: named == Some(Named::Yes),
            });
        }
        chosen
    }

    /// Returns the group under which a rule names a type that is synced in another one: so it may be with events.
    fn alias(&self, synced: &ApiResource, discovered: &Discovered) -> Option<ApiResource> {
        if !is_events(synced) {
            return None;
        }
        let names = |other: &ApiResource| {
            let mut rules = self.rules.iter();
            rules.any(|rule| rule.group == other.group && rule.names(other))
        };
        let mut others = discovered.resources.iter();
        let other = others.find(|one| is_events(one) && one.group != synced.group && names(one));
        other.cloned()
    }

    /// Chooses a version: the preferred one of built-in kinds; of custom kinds the one that a rule names, else the stored one.
    fn version<'r>(
        &self,
        served: &[&'r ApiResource],
        definition: Option<&Value>,
    ) -> &'r ApiResource {
        let Some(definition) = definition else {
            return served[0];
        };
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.matches(served[0]).is_some());
        let mut wanted = rules.flat_map(|rule| &rule.versions);
        let by_rule = wanted.find_map(|name| served.iter().find(|one| one.version == *name));
        let stored = stored_version(definition);
        let stored = || {
            served
                .iter()
                .find(|one| Some(one.version.as_str()) == stored)
        };
        by_rule.or_else(stored).unwrap_or(&served[0])
    }
}

/// Returns whether types of a group may be of CustomResourceDefinitions.
fn may_be_custom(group: &str) -> bool {
    group.contains('.') && (!group.ends_with(".k8s.io") || group.ends_with(".x-k8s.io"))
        || group == "snapshot.storage.k8s.io"
        || group == "gateway.networking.k8s.io"
}

fn stored_version(definition: &Value) -> Option<&str> {
    let versions = definition.at(&["spec", "versions"])?.as_array()?;
    let mut stored = versions
        .iter()
        .filter(|one| one.get("storage") == Some(&Value::Bool(true)));
    stored.next()?.get("name")?.as_str()
}

/// Returns whether the versions of a definition differ in their name alone.
pub(crate) fn converts_nothing(definition: &Value) -> bool {
    let strategy = definition.at(&["spec", "conversion", "strategy"]);
    strategy.and_then(Value::as_str).unwrap_or("None") == "None"
}

/// Returns the key of the type that a definition defines.
pub(crate) fn defined_type(definition: &Value) -> Option<TypeKey> {
    let group = definition.at(&["spec", "group"])?.as_str()?;
    let plural = definition.at(&["spec", "names", "plural"])?.as_str()?;
    Some((group.to_owned(), plural.to_owned()))
}

/// Returns a definition without what differs between members that have the same one.
pub(crate) fn essential(mut definition: Value) -> Value {
    let name = definition
        .at(&["metadata", "name"])
        .cloned()
        .unwrap_or_default();
    let map = definition.make_object();
    map.remove("status");
    let mut metadata = Map::new();
    metadata.insert("name", name);
    map.insert("metadata", Value::Object(metadata));
    definition
}

#[cfg(test)]
mod tests;
