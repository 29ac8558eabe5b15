//! The conditions of a member, with Clusterpedia's types and reasons.

use bareboat_api::{Map, Value};

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// `True`, `False` or `Unknown`.
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    pub(crate) fn new(holds: bool, reason: &'static str, message: impl Into<String>) -> Condition {
        Condition {
            status: if holds { "True" } else { "False" },
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn unknown(reason: &'static str, message: impl Into<String>) -> Condition {
        Condition {
            status: "Unknown",
            ..Condition::new(false, reason, message)
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.status == "True"
    }
}

/// The conditions that decide whether a member is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) validated: Condition,
    pub(crate) running: Condition,
    pub(crate) healthy: Condition,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            validated: Condition::unknown("Pending", ""),
            running: Condition::new(false, "WaitInit", "the sync has not begun"),
            healthy: Condition::unknown("MonitorStop", "the health of the member is not known yet"),
        }
    }
}

impl Conditions {
    /// The conditions by type, in the order in which they are judged.
    pub(crate) fn all(&self) -> [(&'static str, &Condition); 3] {
        [
            ("Validated", &self.validated),
            ("SynchroRunning", &self.running),
            ("ClusterHealthy", &self.healthy),
        ]
    }

    /// The sync does not run for now.
    pub(crate) fn pause(&mut self, why: &str) {
        if self.running.reason == "Running" {
            self.running = Condition::new(false, "Pending", why);
        }
    }

    /// The condition `Ready`, which follows from the others.
    pub(crate) fn ready(&self) -> Condition {
        let all = self.all();
        let failing = all.iter().find(|(_, condition)| !condition.holds());
        match failing {
            None => Condition::new(true, "Ready", ""),
            Some((kind, condition)) => {
                let (status, reason) = (condition.status, condition.reason);
                let message = format!("{kind} condition is {status}, reason is {reason}");
                Condition::new(false, "NotReady", message)
            }
        }
    }

    /// Why the member is not ready, in one word; empty if it is. A sync that waits for the member is not the cause.
    pub(crate) fn failing_reason(&self) -> &'static str {
        let causes = [&self.validated, &self.healthy, &self.running];
        let failing = causes.iter().find(|condition| !condition.holds());
        failing.map_or("", |condition| condition.reason)
    }

    /// Writes all conditions into a list. Transition times change only with the status.
    pub(crate) fn write(&self, list: &mut Vec<Value>, now: &str) {
        let ready = self.ready();
        for (kind, condition) in self.all().into_iter().chain([("Ready", &ready)]) {
            set(list, kind, condition, now);
        }
    }
}

/// Sets one condition in a list.
pub(crate) fn set(list: &mut Vec<Value>, kind: &str, condition: &Condition, now: &str) {
    let found = list
        .iter()
        .position(|known| known.get("type").and_then(Value::as_str) == Some(kind));
    let index = found.unwrap_or_else(|| {
        list.push(Value::Object(Map::new()));
        list.len() - 1
    });
    let map = list[index].make_object();
    if map.get_str("status") != Some(condition.status) {
        map.insert("lastTransitionTime", Value::string(now));
    }
    for (key, text) in [
        ("type", kind),
        ("status", condition.status),
        ("reason", condition.reason),
        ("message", condition.message.as_str()),
    ] {
        map.insert(key, Value::string(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_names_the_first_condition_that_does_not_hold() {
        let mut conditions = Conditions {
            validated: Condition::new(true, "Validated", ""),
            running: Condition::new(true, "Running", ""),
            healthy: Condition::new(true, "Healthy", ""),
        };
        assert_eq!(conditions.ready(), Condition::new(true, "Ready", ""));
        conditions.healthy = Condition::new(false, "NotReachable", "x");
        conditions.running = Condition::new(false, "Pending", "x");
        assert_eq!(
            conditions.ready().message,
            "SynchroRunning condition is False, reason is Pending"
        );
        assert_eq!(conditions.failing_reason(), "NotReachable");
    }

    #[test]
    fn times_change_with_the_status_only() {
        let mut list = Vec::new();
        let mut conditions = Conditions::default();
        conditions.write(&mut list, "1");
        conditions.running = Condition::new(false, "InitialFailed", "");
        conditions.write(&mut list, "2");
        let time = |list: &[Value], at: usize| list[at].get("lastTransitionTime").cloned();
        assert_eq!(list.len(), 4);
        assert_eq!(time(&list, 1), Some(Value::string("1")));
        conditions.running = Condition::new(true, "Running", "");
        conditions.write(&mut list, "3");
        assert_eq!(time(&list, 1), Some(Value::string("3")));
    }
}
