//! The policies of a namespace: levels and versions to enforce, to audit and to warn about, from its labels.

use bareboat_api::{FieldError, FieldPath};
use std::fmt;

/// The prefix of labels and audit annotations.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much a pod may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Everything.
    #[default]
    Privileged,
    /// Nothing with known ways to escalate privileges.
    Baseline,
    /// What hardened workloads do.
    Restricted,
}

impl Level {
    /// Returns the name used in labels.
    pub fn name(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }

    fn parse(text: &str) -> Result<Level, &'static str> {
        match text {
            "privileged" => Ok(Level::Privileged),
            "baseline" => Ok(Level::Baseline),
            "restricted" => Ok(Level::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

/// The version of Kubernetes whose checks apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// The checks of this server.
    #[default]
    Latest,
    /// Those of `v1.N`.
    Minor(u32),
}

impl Version {
    fn parse(text: &str) -> Result<Version, &'static str> {
        let wrong = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Version::Latest);
        }
        let minor = text.strip_prefix("v1.").ok_or(wrong)?;
        let plain = minor.bytes().all(|byte| byte.is_ascii_digit())
            && (minor == "0" || !minor.starts_with('0'));
        match minor.parse() {
            Ok(minor) if plain => Ok(Version::Minor(minor)),
            _ => Err(wrong),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Latest => f.write_str("latest"),
            Version::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// A level and its version, such as `restricted:v1.30`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LevelVersion {
    /// The level.
    pub level: Level,
    /// The version of its checks.
    pub version: Version,
}

impl LevelVersion {
    /// Parses a level and a version.
    pub fn parse(level: &str, version: &str) -> Result<LevelVersion, &'static str> {
        Ok(LevelVersion {
            level: Level::parse(level)?,
            version: Version::parse(version)?,
        })
    }

    fn is_equivalent(&self, other: &LevelVersion) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.name(), self.version)
    }
}

/// What a namespace enforces, audits and warns about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) audit: LevelVersion,
    pub(super) warn: LevelVersion,
}

impl Policy {
    /// Returns whether every pod is allowed, without a remark.
    pub(super) fn is_privileged(&self) -> bool {
        let levels = [self.enforce.level, self.audit.level, self.warn.level];
        levels.iter().all(|level| *level == Level::Privileged)
    }

    pub(super) fn is_equivalent(&self, other: &Policy) -> bool {
        self.enforce.is_equivalent(&other.enforce)
            && self.audit.is_equivalent(&other.audit)
            && self.warn.is_equivalent(&other.warn)
    }

    /// Reads the labels of a namespace, and the problems in them. A level to enforce that cannot be read counts as
    /// restricted, one to audit or to warn about as privileged; a version that cannot be read counts as the latest.
    pub(super) fn of_labels<'a>(
        label: impl Fn(&str) -> Option<&'a str>,
        defaults: &Policy,
    ) -> (Policy, Vec<FieldError>) {
        let mut policy = *defaults;
        let mut wrong = Vec::new();
        let mut note = |mode: &str, value: &str, why: &'static str| {
            let place = FieldPath::new("metadata").child("labels");
            let place = place.key(&format!("{PREFIX}{mode}"));
            wrong.push(FieldError::invalid(place, value, why));
        };
        let mut read = |mode: &str, of: &mut LevelVersion, unreadable: Level| {
            let level = label(&format!("{PREFIX}{mode}"));
            let parsed = level.map(|level| Level::parse(level).map_err(|why| (level, why)));
            if let Some(Err((level, why))) = parsed {
                note(mode, level, why);
            }
            if let Some(parsed) = parsed {
                of.level = parsed.unwrap_or(unreadable);
            }
            let mode = format!("{mode}-version");
            let version = label(&format!("{PREFIX}{mode}"));
            if let Some(version) = version {
                let parsed = Version::parse(version);
                if let Err(why) = parsed {
                    note(&mode, version, why);
                }
                of.version = parsed.unwrap_or_default();
            }
            (parsed.map(|parsed| parsed.is_ok()), version.is_some())
        };
        let (enforced, _) = read("enforce", &mut policy.enforce, Level::Restricted);
        read("audit", &mut policy.audit, Level::Privileged);
        let (warned, with_version) = read("warn", &mut policy.warn, Level::Privileged);
        // Who enforces more than is warned about is warned about that, too.
        if warned.is_none() && enforced == Some(true) && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !with_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(labels: &[(&str, &str)]) -> (String, Vec<String>) {
        let find = |name: &str| {
            let short = name.strip_prefix(PREFIX)?;
            labels.iter().find(|(key, _)| *key == short).map(|it| it.1)
        };
        let (policy, wrong) = Policy::of_labels(find, &Policy::default());
        let text = format!("{} {} {}", policy.enforce, policy.audit, policy.warn);
        (text, wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn labels_set_levels_and_versions() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[], "privileged:latest privileged:latest privileged:latest"),
            (
                &[("enforce", "restricted")],
                "restricted:latest privileged:latest restricted:latest",
            ),
            (
                &[("enforce", "baseline"), ("enforce-version", "v1.20")],
                "baseline:v1.20 privileged:latest baseline:v1.20",
            ),
            (
                &[("enforce", "baseline"), ("warn", "privileged")],
                "baseline:latest privileged:latest privileged:latest",
            ),
            (
                &[
                    ("enforce", "baseline"),
                    ("warn", "restricted"),
                    ("warn-version", "v1.0"),
                ],
                "baseline:latest privileged:latest restricted:v1.0",
            ),
            (
                &[("enforce", "restricted"), ("warn-version", "v1.9")],
                "restricted:latest privileged:latest restricted:v1.9",
            ),
            (
                &[("enforce", "odd"), ("audit", "odd"), ("warn", "odd")],
                "restricted:latest privileged:latest privileged:latest",
            ),
            (
                &[("enforce", "odd")],
                "restricted:latest privileged:latest privileged:latest",
            ),
        ];
        for (labels, expected) in cases {
            assert_eq!(policy(labels).0, expected, "{labels:?}");
        }
    }

    #[test]
    fn problems_are_named() {
        let (_, wrong) = policy(&[("enforce", "Odd"), ("warn-version", "1.20")]);
        assert_eq!(
            wrong,
            [
                "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"Odd\": must be one of privileged, baseline, restricted",
                "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.20\": must be \"latest\" or \"v1.x\"",
            ]
        );
        for version in [
            "v1.",
            "v2.0",
            "v1.01",
            "v1.-1",
            "v1.1.1",
            "v1.99999999999999999999",
            "",
        ] {
            assert!(Version::parse(version).is_err(), "{version}");
        }
    }
}
