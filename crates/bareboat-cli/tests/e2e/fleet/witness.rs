//! What a hub asked a member for, by the member's audit log.

use crate::kubectl::Kubectl;
use crate::process::eventually;
use serde_json::Value;
use std::collections::BTreeMap;
use tempfile::TempDir;

/// Every request that begins is logged, so a watch counts while it runs.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted, ResponseComplete]\nrules: [{level: Metadata}]\n";

/// The types of [`super::TYPES`] that the tests count.
pub(super) const COUNTED: [&str; 8] = [
    "configmaps",
    "controllerrevisions",
    "daemonsets",
    "deployments",
    "pods",
    "replicasets",
    "secrets",
    "statefulsets",
];

/// How often all objects of each type were asked for, by a list or in a watch, and how often a watch was resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) lists: BTreeMap<String, usize>,
    pub(super) watches: BTreeMap<String, usize>,
}

impl Asked {
    /// What was asked for between an earlier look and this one.
    pub(super) fn since(&self, before: &Asked) -> Asked {
        let difference = |now: &BTreeMap<String, usize>, then: &BTreeMap<String, usize>| {
            let more = now.iter().map(|(name, count)| {
                let then = then.get(name).copied().unwrap_or(0);
                (name.clone(), count - then)
            });
            more.filter(|(_, count)| *count > 0).collect()
        };
        Asked {
            lists: difference(&self.lists, &before.lists),
            watches: difference(&self.watches, &before.watches),
        }
    }
}

/// Every counted type, so many times.
pub(super) fn each(times: usize) -> BTreeMap<String, usize> {
    COUNTED
        .iter()
        .map(|name| ((*name).to_owned(), times))
        .collect()
}

/// No type.
pub(super) fn none() -> BTreeMap<String, usize> {
    BTreeMap::new()
}

/// The audit log of a member, which outlives its processes.
pub(super) struct Witness(TempDir);

impl Witness {
    pub(super) fn new() -> Witness {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("policy.yaml"), POLICY).unwrap();
        Witness(dir)
    }

    /// Starts a member that writes the log.
    pub(super) fn start(&self, more: &[&str]) -> Option<Kubectl> {
        let path = |name: &str| self.0.path().join(name).display().to_string();
        let (policy, log) = (path("policy.yaml"), path("audit.log"));
        let flags = ["--audit-policy-file", &policy, "--audit-log-path", &log];
        Kubectl::start_with(&[&flags, more].concat())
    }

    /// The requests of the hub. kubectl's own do not count.
    fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.path().join("audit.log")).unwrap();
        // A server that was killed may have left half a line.
        let events = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events
            .filter(|event| event["userAgent"] == "bareboat")
            .collect()
    }

    /// The paths and queries of all requests of the hub for a resource.
    pub(super) fn targets(&self, resource: &str) -> Vec<String> {
        let requests = self.requests().into_iter();
        requests
            .filter(|event| event["objectRef"]["resource"] == resource)
            .map(|event| event["requestURI"].as_str().unwrap_or("").to_owned())
            .collect()
    }

    /// What the hub asked for so far.
    pub(super) fn asked(&self) -> Asked {
        let mut asked = Asked::default();
        for event in self.requests() {
            let resource = event["objectRef"]["resource"].as_str().unwrap_or("");
            if !COUNTED.contains(&resource) {
                continue;
            }
            let target = event["requestURI"].as_str().unwrap_or("");
            let counts = match event["verb"].as_str() {
                // The pages of one list count once.
                Some("list") if !target.contains("continue=") => &mut asked.lists,
                Some("watch") if target.contains("sendInitialEvents=") => &mut asked.lists,
                Some("watch") => &mut asked.watches,
                _ => continue,
            };
            *counts.entry(resource.to_owned()).or_default() += 1;
        }
        asked
    }

    /// Waits until each type is watched once more than before, and returns what was asked for since.
    pub(super) fn resumed(&self, before: &Asked) -> Asked {
        eventually("all types are watched again", || {
            let since = self.asked().since(before);
            (since.watches.len() == COUNTED.len()).then_some(since)
        })
    }
}
