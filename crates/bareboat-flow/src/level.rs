//! A PriorityLevelConfiguration: how many requests of a level run at once, and whether others wait or are refused.

use bareboat_api::{Str, Value};

/// The maximum number of queues. More would use memory without adding fairness.
const MOST_QUEUES: i64 = 4096;
/// The maximum number of queues that a flow may use.
const MOST_CARDS: i64 = 32;

/// A priority level in the form that is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSpec {
    /// The name of the priority level.
    pub name: Str,
    /// The uid of the object; empty for a built-in level that is not stored.
    pub uid: Str,
    /// Whether requests of this level always run at once.
    pub exempt: bool,
    /// The share of the server's seats.
    pub shares: u32,
    /// How many percent of its seats other levels may borrow.
    pub lendable_percent: u32,
    /// How many percent of its seats this level may borrow in addition; `None` for no limit.
    pub borrowing_percent: Option<u32>,
    /// The queues. Without them, a request that cannot run at once is refused.
    pub queuing: Option<Queuing>,
}

/// The queues of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queuing {
    /// The number of queues.
    pub queues: u32,
    /// How many of them a flow may use.
    pub hand_size: u32,
    /// How many requests may wait in one queue.
    pub length_limit: u32,
}

impl LevelSpec {
    /// Reads a PriorityLevelConfiguration. Absent members have their defaults; numbers out of range are clamped.
    pub fn from_value(object: &Value) -> LevelSpec {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or("");
        let exempt = text(&["spec", "type"]) == "Exempt";
        let place = if exempt { "exempt" } else { "limited" };
        let number = |key: &str| object.at(&["spec", place, key]).and_then(Value::as_i64);
        let clamp = |value: i64, least: i64, most: i64| value.clamp(least, most) as u32;
        let response = object.at(&["spec", "limited", "limitResponse"]);
        let queues = response.filter(|response| {
            let ty = response.get("type").and_then(Value::as_str);
            !exempt && ty == Some("Queue")
        });
        let queuing = queues.map(|response| {
            let number = |key: &str, default: i64| {
                let found = response.at(&["queuing", key]).and_then(Value::as_i64);
                found.unwrap_or(default)
            };
            let queues = clamp(number("queues", 64), 1, MOST_QUEUES);
            Queuing {
                queues,
                hand_size: clamp(number("handSize", 8), 1, MOST_CARDS).min(queues),
                length_limit: clamp(number("queueLengthLimit", 50), 1, i64::from(u16::MAX)),
            }
        });
        LevelSpec {
            name: Str::new(text(&["metadata", "name"])),
            uid: Str::new(text(&["metadata", "uid"])),
            exempt,
            shares: clamp(
                number("nominalConcurrencyShares").unwrap_or(if exempt { 0 } else { 30 }),
                0,
                i64::from(i32::MAX),
            ),
            lendable_percent: clamp(number("lendablePercent").unwrap_or(0), 0, 100),
            borrowing_percent: number("borrowingLimitPercent")
                .map(|percent| clamp(percent, 0, i64::from(i32::MAX))),
            queuing,
        }
    }
}
