//! Conditions in a status: what holds, why, and since when.

use bareboat_api::Value;

/// A condition to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) holds: bool,
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
            holds,
            reason,
            message: message.into(),
        }
    }

    /// Sets it in a list of conditions; its transition time moves only with its truth. Tells whether anything changed.
    pub(crate) fn set(&self, conditions: &mut Vec<Value>, now: &str) -> bool {
        let found = conditions
            .iter()
            .position(|known| known.get("type").and_then(Value::as_str) == Some(self.kind));
        let index = found.unwrap_or_else(|| {
            conditions.push(Value::object());
            conditions.len() - 1
        });
        let status = if self.holds { "True" } else { "False" };
        let map = conditions[index].make_object();
        let turned = map.get_str("status") != Some(status);
        let mut changed = turned;
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
        if turned {
            map.insert("lastTransitionTime", Value::string(now));
        }
        changed
    }
}

/// The time as objects carry it.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_moves_only_with_the_truth() {
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
