//! Merges two lists of tolerations and drops those that another one covers.
// Upstream: pkg/util/tolerations, MergeTolerations.

use crate::reach::Reach;
use bareboat_api::Value;
use std::collections::{HashMap, HashSet};

/// Key, effect and value of a toleration. No value covers all values.
type Scope<'a> = (&'a str, &'a str, Option<&'a str>);

/// How long a taint is tolerated: forever, or some seconds.
type Limit = (bool, i64);
const FOR_EVER: Limit = (true, 0);

/// Returns all tolerations that no other one covers, in order. Of equal ones the first remains.
pub(super) fn merged(own: Vec<Value>, more: &[Value]) -> Vec<Value> {
    let all: Vec<Value> = own.into_iter().chain(more.iter().cloned()).collect();
    let texts: Vec<String> = all.iter().map(Value::to_string).collect();
    let later = Later::of(&all, &texts);
    let mut longest: HashMap<Scope<'_>, Limit> = HashMap::new();
    let mut kept: HashSet<&str> = HashSet::new();
    let mut merged = Vec::with_capacity(all.len());
    for (index, (toleration, text)) in all.iter().zip(&texts).enumerate() {
        let needed = seconds(toleration);
        let lies_in = |scope: Scope<'_>| {
            let before = longest.get(&scope).copied();
            let behind = later.longest(scope, index, text);
            before.max(behind).is_some_and(|limit| limit >= needed)
        };
        let scopes = scopes_around(toleration).into_iter().flatten();
        if kept.contains(text.as_str()) || scopes.into_iter().any(lies_in) {
            continue;
        }
        if let Some(scope) = scope_of(toleration) {
            let longest = longest.entry(scope).or_insert((false, i64::MIN));
            *longest = limit_of(toleration).max(*longest);
        }
        kept.insert(text);
        merged.push(toleration.clone());
    }
    merged
}

/// For each scope, its tolerations by index, with the longest limits from that index on.
struct Later<'a>(HashMap<Scope<'a>, Vec<(usize, Longest<'a>)>>);

/// The longest limit and its toleration, and the longest limit of all different tolerations.
#[derive(Clone, Copy)]
struct Longest<'a> {
    limit: Limit,
    text: &'a str,
    second: Option<Limit>,
}

impl<'a> Longest<'a> {
    /// Returns a copy that includes one more toleration.
    fn with(self, limit: Limit, text: &'a str) -> Longest<'a> {
        if text == self.text {
            return self;
        }
        if limit > self.limit {
            let second = Some(self.limit);
            return Longest {
                limit,
                text,
                second,
            };
        }
        let second = self.second.max(Some(limit));
        Longest { second, ..self }
    }

    /// Returns the longest limit among tolerations that differ from the given one.
    fn besides(self, text: &str) -> Option<Limit> {
        match self.text == text {
            true => self.second,
            false => Some(self.limit),
        }
    }
}

impl<'a> Later<'a> {
    fn of(all: &'a [Value], texts: &'a [String]) -> Later<'a> {
        let mut places: HashMap<Scope<'a>, Vec<(usize, Longest<'a>)>> = HashMap::new();
        for (index, (toleration, text)) in all.iter().zip(texts).enumerate().rev() {
            if let Some(scope) = scope_of(toleration) {
                let places = places.entry(scope).or_default();
                let limit = limit_of(toleration);
                let alone = Longest {
                    limit,
                    text,
                    second: None,
                };
                let longest = places.last().map(|(_, longest)| longest.with(limit, text));
                places.push((index, longest.unwrap_or(alone)));
            }
        }
        // The loop ran from the last toleration to the first.
        places.values_mut().for_each(|places| places.reverse());
        Later(places)
    }

    /// Returns the longest limit among later tolerations that differ from the one at `index`.
    fn longest(&self, scope: Scope<'_>, index: usize, text: &str) -> Option<Limit> {
        let places = self.0.get(&scope)?;
        let next = places.partition_point(|(place, _)| *place <= index);
        places.get(next)?.1.besides(text)
    }
}

/// Returns the scope that a toleration covers, or `None` if its operator is unknown.
fn scope_of(toleration: &Value) -> Option<Scope<'_>> {
    let value = match toleration.text(&["operator"]) {
        "Exists" => None,
        "" | "Equal" => Some(toleration.text(&["value"])),
        _ => return None,
    };
    let (key, effect) = (toleration.text(&["key"]), toleration.text(&["effect"]));
    Some((key, effect, value))
}

/// Returns the scopes that can cover a toleration.
fn scopes_around(toleration: &Value) -> [Option<Scope<'_>>; 6] {
    let (key, effect) = (toleration.text(&["key"]), toleration.text(&["effect"]));
    // A scope with a value covers only tolerations with that value.
    let equal = toleration.text(&["operator"]) == "Equal";
    let value = equal.then(|| toleration.text(&["value"]));
    let exact = |effect| value.map(|value| (key, effect, Some(value)));
    [
        Some((key, effect, None)),
        Some((key, "", None)),
        Some(("", effect, None)),
        Some(("", "", None)),
        exact(effect),
        exact(""),
    ]
}

/// Returns for how long a toleration covers other tolerations.
fn limit_of(toleration: &Value) -> Limit {
    match toleration.int(&["tolerationSeconds"]) {
        Some(seconds) if toleration.text(&["effect"]) == "NoExecute" => (false, seconds),
        _ => FOR_EVER,
    }
}

/// Returns for how long a toleration has to be covered.
fn seconds(toleration: &Value) -> Limit {
    match toleration.int(&["tolerationSeconds"]) {
        Some(seconds) => (false, seconds),
        None => FOR_EVER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    /// Returns whether one toleration covers another, by the plain definition.
    fn covers(wide: &Value, narrow: &Value) -> bool {
        if wide == narrow {
            return true;
        }
        let (key, operator) = (wide.text(&["key"]), wide.text(&["operator"]));
        let effect = wide.text(&["effect"]);
        let limit = wide
            .int(&["tolerationSeconds"])
            .filter(|_| effect == "NoExecute");
        let long = |limit| {
            narrow
                .int(&["tolerationSeconds"])
                .is_some_and(|own| own <= limit)
        };
        (narrow.text(&["key"]) == key || key.is_empty() && operator == "Exists")
            && (effect.is_empty() || narrow.text(&["effect"]) == effect)
            && limit.is_none_or(long)
            && match operator {
                "Exists" => true,
                "" | "Equal" => {
                    narrow.text(&["operator"]) == "Equal"
                        && narrow.text(&["value"]) == wide.text(&["value"])
                }
                _ => false,
            }
    }

    /// Merges by comparing each pair.
    fn plainly(all: &[Value]) -> Vec<Value> {
        let mut kept: Vec<Value> = Vec::new();
        for (index, toleration) in all.iter().enumerate() {
            let covered = kept.iter().any(|other| covers(other, toleration))
                || all[index + 1..]
                    .iter()
                    .any(|other| other != toleration && covers(other, toleration));
            if !covered {
                kept.push(toleration.clone());
            }
        }
        kept
    }

    #[test]
    fn merging_equals_comparing_each_pair() {
        let mut all = Vec::new();
        for key in ["", "a", "b"] {
            for operator in ["", "Equal", "Exists", "Else"] {
                for effect in ["", "NoExecute", "NoSchedule"] {
                    for seconds in [Value::Null, value!(1), value!(5)] {
                        let mut toleration =
                            value!({"key": key, "operator": operator, "effect": effect});
                        let members = toleration.make_object();
                        if !seconds.is_null() {
                            members.insert("tolerationSeconds", seconds);
                        }
                        if operator != "Exists" {
                            members.insert("value", value!("v"));
                        }
                        all.push(toleration);
                    }
                }
            }
        }
        let mut dice: u64 = 0x9E37_79B9_7F4A_7C15;
        for round in 0..4_000 {
            let mut list = Vec::new();
            for _ in 0..=round % 7 {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                list.push(all[(dice % all.len() as u64) as usize].clone());
            }
            let half = list.len() / 2;
            let found = merged(list[..half].to_vec(), &list[half..]);
            assert_eq!(found, plainly(&list), "{list:?}");
        }
    }
}
