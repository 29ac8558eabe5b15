//! The table of checks, by level and version, and their results.

use super::checks::{capabilities, host, profiles, users, volumes};
use super::pod::{Failure, Pod};
use super::policy::{Level, LevelVersion, Version};
use bareboat_api::Value;

type Check = fn(&Pod<'_>) -> Option<Failure>;

/// A check and its history.
struct Entry {
    /// The name of the check, by which it is ordered and overridden.
    id: &'static str,
    level: Level,
    /// The first minor version of each revision, in order.
    revisions: &'static [(u32, Check)],
    /// The check of the baseline that this one replaces.
    overrides: &'static str,
}

const fn baseline(id: &'static str, revisions: &'static [(u32, Check)]) -> Entry {
    Entry {
        id,
        level: Level::Baseline,
        revisions,
        overrides: "",
    }
}

const fn restricted(
    id: &'static str,
    revisions: &'static [(u32, Check)],
    overrides: &'static str,
) -> Entry {
    Entry {
        id,
        level: Level::Restricted,
        revisions,
        overrides,
    }
}

/// All checks in the order of their results: those of the baseline by name, then the others by name.
// Upstream: k8s.io/pod-security-admission/policy.
const CHECKS: [Entry; 19] = [
    baseline("appArmorProfile", &[(0, profiles::app_armor)]),
    baseline("capabilities_baseline", &[(0, capabilities::added)]),
    baseline("hostNamespaces", &[(0, host::namespaces)]),
    baseline("hostPathVolumes", &[(0, volumes::host_paths)]),
    baseline("hostPorts", &[(0, host::ports)]),
    baseline("hostProbesAndHostLifecycle", &[(34, host::probes)]),
    baseline("privileged", &[(0, users::privileged)]),
    baseline(
        "procMount",
        &[(0, volumes::proc_mount), (35, volumes::proc_mount_1_35)],
    ),
    baseline(
        "seLinuxOptions",
        &[(0, profiles::se_linux), (31, profiles::se_linux_1_31)],
    ),
    baseline(
        "seccompProfile_baseline",
        &[
            (0, profiles::seccomp_annotations),
            (19, profiles::seccomp_allowed),
        ],
    ),
    baseline(
        "sysctls",
        &[
            (0, host::sysctls),
            (27, host::sysctls_1_27),
            (29, host::sysctls_1_29),
            (32, host::sysctls_1_32),
        ],
    ),
    baseline("windowsHostProcess", &[(0, host::windows_process)]),
    restricted(
        "allowPrivilegeEscalation",
        &[(8, users::escalation), (25, users::escalation_1_25)],
        "",
    ),
    restricted(
        "capabilities_restricted",
        &[
            (22, capabilities::dropped),
            (25, capabilities::dropped_1_25),
        ],
        "capabilities_baseline",
    ),
    restricted(
        "procMount_restricted",
        &[(35, volumes::proc_mount)],
        "procMount",
    ),
    restricted(
        "restrictedVolumes",
        &[(0, volumes::types)],
        "hostPathVolumes",
    ),
    restricted(
        "runAsNonRoot",
        &[(0, users::non_root), (35, users::non_root_1_35)],
        "",
    ),
    restricted(
        "runAsUser",
        &[(23, users::user), (35, users::user_1_35)],
        "",
    ),
    restricted(
        "seccompProfile_restricted",
        &[
            (19, profiles::seccomp_required),
            (25, profiles::seccomp_required_1_25),
        ],
        "seccompProfile_baseline",
    ),
];

impl Entry {
    /// Returns the revision of a version, if the check exists there.
    fn revision(&self, version: Version) -> Option<Check> {
        let applies = |first: u32| match version {
            Version::Latest => true,
            Version::Minor(minor) => first <= minor,
        };
        let mut revisions = self.revisions.iter().rev();
        let found = revisions.find(|(first, _)| applies(*first));
        found.map(|(_, check)| *check)
    }
}

/// The checks that a pod fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Failure>);

impl Violations {
    /// Checks a pod or a template of pods: an object with metadata and spec.
    pub fn of(pod: &Value, policy: LevelVersion) -> Violations {
        if policy.level == Level::Privileged {
            return Violations::default();
        }
        let pod = Pod::new(pod);
        let applicable = |entry: &&Entry| entry.level <= policy.level;
        let overridden = |id: &str| {
            let mut others = CHECKS.iter().filter(applicable);
            others.any(|other| other.overrides == id && other.revision(policy.version).is_some())
        };
        let failed = CHECKS.iter().filter(applicable).filter_map(|entry| {
            let failure = entry.revision(policy.version)?(&pod)?;
            (entry.level == Level::Restricted || !overridden(entry.id)).then_some(failure)
        });
        Violations(failed.collect())
    }

    /// Returns whether the pod passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns what is forbidden.
    pub fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|failure| failure.reason).collect();
        reasons.join(", ")
    }

    /// Returns what is forbidden, with who sets it.
    pub fn details(&self) -> String {
        let details: Vec<String> = self
            .0
            .iter()
            .map(|Failure { reason, detail }| match detail.is_empty() {
                true => (*reason).to_owned(),
                false => format!("{reason} ({detail})"),
            })
            .collect();
        details.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_in_the_order_of_their_levels_and_names() {
        let order: Vec<_> = CHECKS.iter().map(|entry| (entry.level, entry.id)).collect();
        assert!(order.is_sorted());
        for entry in &CHECKS {
            assert!(entry.revisions.is_sorted_by_key(|(first, _)| *first));
            let known = CHECKS.iter().any(|other| other.id == entry.overrides);
            assert!(known || entry.overrides.is_empty(), "{}", entry.id);
        }
    }
}
