//! Columns of pods: ready containers, restarts, and a one-word status.

use super::{NONE, condition_is_true, or, since, text_or};
use crate::reach::Reach;
use bareboat_api::kind::{Column, Now};
use bareboat_api::{Value, value};
use std::collections::HashSet;

/// Returns the table columns of Pod.
pub(crate) fn pods() -> Vec<Column> {
    vec![
        Column::string("Ready", |pod, _| {
            let summary = Summary::of(pod);
            format!("{}/{}", summary.ready, summary.containers).into()
        }),
        Column::string("Status", |pod, _| Summary::of(pod).reason.into()),
        Column::string("Restarts", |pod, now| Summary::of(pod).restarts(now)),
        Column::age(),
        Column::string("IP", |pod, _| {
            let first = pod.list(&["status", "podIPs"]).first();
            or(first.map_or("", |ip| ip.text(&["ip"])), NONE)
        })
        .wide(),
        text_or("Node", &["spec", "nodeName"], NONE).wide(),
        text_or("Nominated Node", &["status", "nominatedNodeName"], NONE).wide(),
        Column::string("Readiness Gates", |pod, _| readiness_gates(pod)).wide(),
    ]
}

/// Returns the row condition `Completed` of a finished pod. Clients may hide such rows.
pub(crate) fn pod_is_done(pod: &Value) -> Option<Value> {
    let phase = pod.text(&["status", "phase"]);
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(value!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// The values of a pod's cells.
struct Summary {
    ready: usize,
    containers: usize,
    reason: String,
    restart_count: i64,
    last_restart: String,
}

/// Number of restarts, and the time of the last one.
#[derive(Default)]
struct Restarts {
    count: i64,
    last: String,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status.int(&["restartCount"]).unwrap_or(0);
        // Timestamps have a fixed length, so their text sorts by time.
        let finished = status.text(&["lastState", "terminated", "finishedAt"]);
        if finished > self.last.as_str() {
            self.last = finished.to_owned();
        }
    }
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let mut summary = Summary {
            ready: 0,
            containers: pod.list(&["spec", "containers"]).len(),
            reason: or_phase(pod),
            restart_count: 0,
            last_restart: String::new(),
        };
        if pod.list(&["status", "conditions"]).iter().any(|condition| {
            condition.text(&["type"]) == "PodScheduled"
                && condition.text(&["reason"]) == "SchedulingGated"
        }) {
            summary.reason = "SchedulingGated".to_owned();
        }
        let (all, sidecars, initializing) = summary.init_containers(pod);
        let restarts = if !initializing || condition_is_true(pod, "Initialized") {
            summary.main_containers(pod, sidecars)
        } else {
            all
        };
        summary.restart_count = restarts.count;
        summary.last_restart = restarts.last;
        if pod.has(&["metadata", "deletionTimestamp"]) {
            if pod.text(&["status", "reason"]) == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(pod.text(&["status", "phase"]), "Succeeded" | "Failed") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Reads init container statuses up to the first unfinished one. Returns the restarts of those, of the sidecars
    /// among them, and whether one was unfinished. Counts sidecars, and sets the reason.
    fn init_containers(&mut self, pod: &Value) -> (Restarts, Restarts, bool) {
        let declared = pod.list(&["spec", "initContainers"]);
        let sidecar_names: HashSet<&str> = declared
            .iter()
            .filter(|container| container.text(&["restartPolicy"]) == "Always")
            .map(|container| container.text(&["name"]))
            .collect();
        self.containers += sidecar_names.len();
        let (mut all, mut sidecars) = (Restarts::default(), Restarts::default());
        for (index, status) in pod
            .list(&["status", "initContainerStatuses"])
            .iter()
            .enumerate()
        {
            all.add(status);
            let sidecar = sidecar_names.contains(status.text(&["name"]));
            if sidecar {
                sidecars.add(status);
            }
            let terminated = status.at(&["state", "terminated"]);
            let waiting = status.text(&["state", "waiting", "reason"]);
            if terminated.is_some_and(|state| state.int(&["exitCode"]).unwrap_or(0) == 0) {
                continue;
            }
            if sidecar && status.flag(&["started"]) {
                self.ready += usize::from(status.flag(&["ready"]));
                continue;
            }
            self.reason = match terminated {
                Some(state) => format!("Init:{}", exit_text(state)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{index}/{}", declared.len()),
            };
            return (all, sidecars, true);
        }
        (all, sidecars, false)
    }

    /// Reads the containers from last to first, so that the reason of the first one wins.
    fn main_containers(&mut self, pod: &Value, mut restarts: Restarts) -> Restarts {
        let mut running = false;
        let mut failure = String::new();
        for status in pod.list(&["status", "containerStatuses"]).iter().rev() {
            restarts.add(status);
            let waiting = status.text(&["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(state) = status.at(&["state", "terminated"]) {
                self.reason = exit_text(state);
                if state.int(&["exitCode"]).unwrap_or(0) != 0 {
                    failure.clone_from(&self.reason);
                }
            } else if status.flag(&["ready"]) && status.has(&["state", "running"]) {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && condition_is_true(pod, "Ready") {
                self.reason = "Running".to_owned();
            } else if !failure.is_empty() {
                self.reason = failure;
            } else if running {
                self.reason = "NotReady".to_owned();
            }
        }
        restarts
    }

    fn restarts(&self, now: Now) -> Value {
        if self.restart_count == 0 || self.last_restart.is_empty() {
            return self.restart_count.to_string().into();
        }
        let ago = since(&self.last_restart, now);
        format!("{} ({ago} ago)", self.restart_count).into()
    }
}

fn or_phase(pod: &Value) -> String {
    match pod.text(&["status", "reason"]) {
        "" => pod.text(&["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

/// Formats why a container ended.
fn exit_text(state: &Value) -> String {
    let reason = state.text(&["reason"]);
    let signal = state.int(&["signal"]).unwrap_or(0);
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", state.int(&["exitCode"]).unwrap_or(0))
    }
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = pod.list(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.into();
    }
    let passing: HashSet<&str> = pod
        .list(&["status", "conditions"])
        .iter()
        .filter(|condition| condition.text(&["status"]) == "True")
        .map(|condition| condition.text(&["type"]))
        .collect();
    let passed = gates
        .iter()
        .filter(|gate| passing.contains(gate.text(&["conditionType"])))
        .count();
    format!("{passed}/{}", gates.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn a_pod_is_summarized_in_one_word() {
        let check = |status: Value, expected: (&str, &str, &str)| {
            let pod = value!({"metadata": {}, "status": (status), "spec": {
                "containers": [{"name": "a"}, {"name": "b"}],
                "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}});
            let summary = Summary::of(&pod);
            let ready = format!("{}/{}", summary.ready, summary.containers);
            let restarts = summary.restarts(Now(1_704_067_260)).to_string();
            assert_eq!(
                (ready.as_str(), summary.reason.as_str(), restarts.as_str()),
                expected
            );
        };
        check(value!({"phase": "Pending"}), ("0/3", "Pending", "\"0\""));
        check(
            value!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 2, "state": {"running": {}},
                "lastState": {"terminated": {"finishedAt": "2024-01-01T00:00:00Z"}}}]}),
            ("0/3", "Init:0/2", "\"2 (60s ago)\""),
        );
        check(
            value!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1}}}]}),
            ("0/3", "Init:ExitCode:1", "\"0\""),
        );
        check(
            value!({"phase": "Running", "containerStatuses": [
                {"name": "a", "ready": true, "state": {"running": {}}, "restartCount": 1},
                {"name": "b", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
            ("1/3", "CrashLoopBackOff", "\"1\""),
        );
        check(
            value!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
                {"name": "a", "state": {"terminated": {"reason": "Completed"}}},
                {"name": "b", "ready": true, "state": {"running": {}}}]}),
            ("1/3", "Running", "\"0\""),
        );
    }
}
