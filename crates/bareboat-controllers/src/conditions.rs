//! Conditions in the status of an object.

use bareboat_api::Value;

/// A condition, without its transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    /// `True`, `False` or `Unknown`.
    status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    pub(crate) fn new(
        kind: &'static str,
        holds: bool,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Condition {
        Condition {
            kind,
            status: if holds { "True" } else { "False" },
            reason,
            message: message.into(),
        }
    }

    /// A condition that could not be checked.
    pub(crate) fn unknown(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Condition {
        Condition {
            status: "Unknown",
            ..Condition::new(kind, false, reason, message)
        }
    }

    /// Whether its status is `True`.
    pub(crate) fn holds(&self) -> bool {
        self.status == "True"
    }

    /// Sets the condition in a list. The transition time changes only if the status changes. Returns whether anything
    /// changed.
    pub(crate) fn set(&self, conditions: &mut Vec<Value>, now: &str) -> bool {
        let found = conditions
            .iter()
            .position(|known| known.get("type").and_then(Value::as_str) == Some(self.kind));
        let index = found.unwrap_or_else(|| {
            conditions.push(Value::object());
            conditions.len() - 1
        });
        let status = self.status;
        let map = conditions[index].make_object();
        let flipped = map.get_str("status") != Some(status);
        let mut changed = flipped;
        for (key, text) in [
            ("type", self.kind),
            ("status", status),
            ("reason", self.reason),
            ("message", &self.message),
        ] {
            if map.get_str(key) != Some(text) {
                map.insert(key, Value::string(text));
                changed = true;
            }
        }
        if flipped {
            map.insert("lastTransitionTime", Value::string(now));
        }
        changed
    }
}

/// The current time in the format of object timestamps.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut list = Vec::new();
        assert!(Condition::new("A", true, "R", "m").set(&mut list, "1"));
        assert!(!Condition::new("A", true, "R", "m").set(&mut list, "2"));
        assert!(Condition::new("A", true, "R", "n").set(&mut list, "3"));
        assert_eq!(
            list[0]
                .as_object()
                .and_then(|map| map.get_str("lastTransitionTime")),
            Some("1")
        );
        assert!(Condition::new("A", false, "R", "n").set(&mut list, "4"));
        assert_eq!(
            list[0]
                .as_object()
                .and_then(|map| map.get_str("lastTransitionTime")),
            Some("4")
        );
    }
}
