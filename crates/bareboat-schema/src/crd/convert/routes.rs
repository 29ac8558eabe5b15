//! Finds the route from one version to another: the shortest one, through the storage version where
//! several are equally short.
//!
//! A version that no pair mentions has the schema of the storage version.

use super::Conversions;
use bareboat_api::Str;
use std::collections::VecDeque;

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    /// A declared pair.
    Pair(usize),
    /// A version with the same schema.
    Same(usize),
}

impl Leg {
    /// Returns the version that the step leads to.
    pub(super) fn to(self, conversions: &Conversions) -> usize {
        match self {
            Leg::Same(to) => to,
            Leg::Pair(at) => {
                let wanted = &conversions.pairs[at].0.to;
                let place = conversions
                    .versions
                    .iter()
                    .position(|it| it.name == *wanted);
                place.expect("a route has known versions only")
            }
        }
    }
}

impl Conversions {
    /// Returns the route between two versions, if there is one.
    pub(super) fn route(&self, from: usize, to: usize) -> Option<Vec<Leg>> {
        let names: Vec<&Str> = self.versions.iter().map(|form| &form.name).collect();
        let pairs: Vec<(&Str, &Str)> = self
            .pairs
            .iter()
            .map(|(pair, _)| (&pair.from, &pair.to))
            .collect();
        route(&names, &pairs, self.storage, from, to)
    }
}

/// Returns the shortest route between two versions over pairs.
pub(super) fn route(
    versions: &[&Str],
    pairs: &[(&Str, &Str)],
    storage: Option<usize>,
    from: usize,
    to: usize,
) -> Option<Vec<Leg>> {
    let place = |name: &Str| versions.iter().position(|known| *known == name);
    let mentioned = |version: usize| {
        let name = versions[version];
        pairs.iter().any(|(from, to)| *from == name || *to == name)
    };
    // The step by which each version was first reached.
    let mut reached: Vec<Option<(usize, Leg)>> = vec![None; versions.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(here) = queue.pop_front() {
        if here == to {
            break;
        }
        let mut next: Vec<(usize, Leg)> = Vec::new();
        for (at, (source, target)) in pairs.iter().enumerate() {
            if *source == versions[here]
                && let Some(target) = place(target)
            {
                next.push((target, Leg::Pair(at)));
            }
        }
        if Some(here) == storage {
            let alike = (0..versions.len()).filter(|other| !mentioned(*other));
            next.extend(alike.map(|other| (other, Leg::Same(other))));
        } else if let Some(storage) = storage.filter(|_| !mentioned(here)) {
            next.push((storage, Leg::Same(storage)));
        }
        next.sort_by_key(|(version, _)| Some(*version) != storage);
        for (version, leg) in next {
            if version != from && reached[version].is_none() {
                reached[version] = Some((here, leg));
                queue.push_back(version);
            }
        }
    }
    let mut legs = Vec::new();
    let mut here = to;
    while here != from {
        let (before, leg) = reached[here]?;
        legs.push(leg);
        here = before;
    }
    legs.reverse();
    Some(legs)
}
