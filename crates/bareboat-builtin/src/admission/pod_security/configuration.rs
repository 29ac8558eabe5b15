//! `PodSecurityConfiguration`: what namespaces without labels get, and who is exempt.

use super::policy::{LevelVersion, Policy};
use bareboat_api::names::{is_dns1123_label, is_dns1123_subdomain};
use bareboat_api::{FieldError, FieldPath, Value};
use std::fmt;

/// The group of the configuration; its versions are the same.
const GROUP: &str = "pod-security.admission.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// The defaults of namespaces, and exemptions. Without a configuration everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurityConfiguration {
    pub(super) defaults: Policy,
    pub(super) usernames: Vec<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) runtime_classes: Vec<String>,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSecurityConfigurationError(String);

impl fmt::Display for PodSecurityConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PodSecurityConfigurationError {}

impl PodSecurityConfiguration {
    /// Reads and checks a configuration.
    pub fn parse(value: &Value) -> Result<Self, PodSecurityConfigurationError> {
        let fail = |why: String| Err(PodSecurityConfigurationError(why));
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
        let (version, kind) = (text("apiVersion"), text("kind"));
        let known = version
            .strip_prefix(GROUP)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|version| VERSIONS.contains(&version));
        if !known || kind != "PodSecurityConfiguration" {
            return fail(format!(
                "it must be of kind PodSecurityConfiguration and apiVersion {GROUP}/v1, not {kind:?} and {version:?}"
            ));
        }
        only(value, "", &["apiVersion", "kind", "defaults", "exemptions"])?;
        let mut wrong = Vec::new();
        let defaults = FieldPath::new("defaults");
        let exemptions = FieldPath::new("exemptions");
        let modes = ["enforce", "warn", "audit"];
        let members = modes.map(|mode| [mode.to_owned(), format!("{mode}-version")]);
        let members: Vec<&str> = members.iter().flatten().map(String::as_str).collect();
        only_in(value, "defaults", &members)?;
        only_in(
            value,
            "exemptions",
            &["usernames", "namespaces", "runtimeClasses"],
        )?;
        let [enforce, warn, audit] = modes.map(|mode| default(value, mode, &defaults, &mut wrong));
        let dns = |valid: fn(&str) -> bool, why: &'static str| {
            move |name: &str| (!valid(name)).then(|| why.to_owned())
        };
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
        let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        let mut list = |member: &str, problem: &dyn Fn(&str) -> Option<String>| {
            names(value, member, &exemptions, problem, &mut wrong)
        };
        let configuration = PodSecurityConfiguration {
            defaults: Policy {
                enforce,
                audit,
                warn,
            },
            namespaces: list("namespaces", &dns(is_dns1123_label, label)),
            runtime_classes: list("runtimeClasses", &dns(is_dns1123_subdomain, subdomain)),
            usernames: list("usernames", &|name: &str| {
                name.is_empty()
                    .then(|| "username must not be empty".to_owned())
            }),
        };
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        match wrong.is_empty() {
            true => Ok(configuration),
            false => fail(wrong.join(", ")),
        }
    }
}

/// Reads the default level and version of a mode.
fn default(
    value: &Value,
    mode: &str,
    place: &FieldPath,
    wrong: &mut Vec<FieldError>,
) -> LevelVersion {
    let text = |key: &str, unset: &'static str| {
        let found = value.at(&["defaults", key]).and_then(Value::as_str);
        found
            .filter(|text| !text.is_empty())
            .unwrap_or(unset)
            .to_owned()
    };
    let with_version = format!("{mode}-version");
    let (level, version) = (text(mode, "privileged"), text(&with_version, "latest"));
    let mut read = LevelVersion::default();
    match LevelVersion::parse(&level, "latest") {
        Ok(parsed) => read.level = parsed.level,
        Err(why) => wrong.push(FieldError::invalid(place.child(mode), level.as_str(), why)),
    }
    match LevelVersion::parse("privileged", &version) {
        Ok(parsed) => read.version = parsed.version,
        Err(why) => {
            let place = place.child(&with_version);
            wrong.push(FieldError::invalid(place, version.as_str(), why));
        }
    }
    read
}

/// Reads a list of exempt names.
fn names(
    value: &Value,
    member: &str,
    place: &FieldPath,
    problem: &dyn Fn(&str) -> Option<String>,
    wrong: &mut Vec<FieldError>,
) -> Vec<String> {
    let items = value.at(&["exemptions", member]).and_then(Value::as_array);
    let mut read: Vec<String> = Vec::new();
    for (index, item) in items.unwrap_or(&[]).iter().enumerate() {
        let place = || place.child(member).index(index);
        let name = item.as_str().unwrap_or("");
        if let Some(why) = problem(name) {
            wrong.push(FieldError::invalid(place(), name, why));
        } else if read.iter().any(|known| known == name) {
            wrong.push(FieldError::duplicate(place(), name));
        } else {
            read.push(name.to_owned());
        }
    }
    read
}

/// Checks that a member is an object without unknown members, if it exists.
fn only_in(
    value: &Value,
    member: &str,
    known: &[&str],
) -> Result<(), PodSecurityConfigurationError> {
    match value.get(member) {
        None | Some(Value::Null) => Ok(()),
        Some(inner) => only(inner, member, known),
    }
}

fn only(value: &Value, place: &str, known: &[&str]) -> Result<(), PodSecurityConfigurationError> {
    let fail = |why: String| Err(PodSecurityConfigurationError(why));
    let Some(map) = value.as_object() else {
        return fail(format!("{place} must be an object"));
    };
    match map.keys().find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(key) if place.is_empty() => fail(format!("unknown field {key:?}")),
        Some(key) => fail(format!("unknown field \"{place}.{key}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn parse(mut value: Value) -> Result<PodSecurityConfiguration, String> {
        let map = value.make_object();
        map.insert("apiVersion", format!("{GROUP}/v1").into());
        map.insert("kind", "PodSecurityConfiguration".into());
        PodSecurityConfiguration::parse(&value).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_and_exemptions_are_read() {
        let read = parse(value!({
            "defaults": {"enforce": "baseline", "enforce-version": "v1.30", "audit": "restricted"},
            "exemptions": {"usernames": ["ann"], "namespaces": ["kube-system"], "runtimeClasses": ["gvisor"]},
        }));
        let read = read.unwrap_or_default();
        let policy = read.defaults;
        assert_eq!(policy.enforce.to_string(), "baseline:v1.30");
        assert_eq!(policy.audit.to_string(), "restricted:latest");
        assert_eq!(policy.warn.to_string(), "privileged:latest");
        assert_eq!(read.usernames, ["ann"]);
        assert_eq!(read.namespaces, ["kube-system"]);
        assert_eq!(read.runtime_classes, ["gvisor"]);
        assert_eq!(parse(value!({})), Ok(PodSecurityConfiguration::default()));
    }

    #[test]
    fn problems_are_named() {
        let cases = [
            (
                value!({"defaults": {"enforce": "odd"}}),
                "defaults.enforce: Invalid value: \"odd\": must be one of privileged, baseline, restricted",
            ),
            (
                value!({"defaults": {"warn-version": "1"}}),
                "defaults.warn-version: Invalid value: \"1\": must be \"latest\" or \"v1.x\"",
            ),
            (
                value!({"defaults": {"enforced": ""}}),
                "unknown field \"defaults.enforced\"",
            ),
            (value!({"more": 1}), "unknown field \"more\""),
            (
                value!({"exemptions": {"usernames": ["a", ""]}}),
                "exemptions.usernames[1]: Invalid value: \"\": username must not be empty",
            ),
            (
                value!({"exemptions": {"namespaces": ["a", "a"]}}),
                "exemptions.namespaces[1]: Duplicate value: \"a\"",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(parse(value), Err(expected.to_owned()));
        }
        let other = value!({"apiVersion": "v1", "kind": "PodSecurityConfiguration"});
        assert!(PodSecurityConfiguration::parse(&other).is_err());
    }
}
