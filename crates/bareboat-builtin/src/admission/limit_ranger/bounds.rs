//! Compares requests and limits with the bounds of a LimitRange; error texts are upstream's.

use crate::reach::Reach;
use crate::resources::Amounts;
use bareboat_api::Value;
use bareboat_api::quantity::Quantity;

/// Requests and limits of a container, pod or claim.
pub(super) struct Asked {
    /// The limit type this is checked against.
    pub(super) by: &'static str,
    pub(super) requests: Amounts,
    pub(super) limits: Amounts,
}

/// The largest amount that fits 64 bits in thousandths.
const MOST_MILLIS: i64 = i64::MAX / 1000;

/// Converts amounts to a common unit: thousandths if all of them fit, whole units otherwise.
fn aligned<const N: usize>(amounts: [Quantity; N]) -> [i64; N] {
    let units = amounts.map(Quantity::units);
    if units.iter().all(|units| *units <= MOST_MILLIS) {
        return amounts.map(Quantity::millis);
    }
    units
}

impl Asked {
    fn each<'a>(
        &'a self,
        limit: &Value,
        member: &str,
        problem: impl Fn(&str, Quantity) -> Option<String> + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        let bounds = Amounts::read(limit.members(&[member]));
        let problems: Vec<String> = bounds
            .iter()
            .filter_map(|(name, bound)| problem(name, bound))
            .collect();
        problems.into_iter()
    }

    /// Returns errors for amounts below the minimum.
    pub(super) fn below<'a>(&'a self, limit: &Value) -> impl Iterator<Item = String> + 'a {
        self.each(limit, "min", |name, bound| {
            let least = format!("minimum {name} usage per {} is {bound}", self.by);
            let Some(request) = self.requests.get(name) else {
                return Some(format!("{least}.  No request is specified"));
            };
            let limit = self.limits.get(name);
            let [asked, most, least_allowed] =
                aligned([request, limit.unwrap_or(Quantity::ZERO), bound]);
            if asked < least_allowed {
                return Some(format!("{least}, but request is {request}"));
            }
            let limit = limit.filter(|_| most < least_allowed)?;
            Some(format!("{least}, but limit is {limit}"))
        })
    }

    /// Returns errors for amounts above the maximum.
    pub(super) fn above<'a>(&'a self, limit: &Value) -> impl Iterator<Item = String> + 'a {
        self.each(limit, "max", |name, bound| {
            let greatest = format!("maximum {name} usage per {} is {bound}", self.by);
            let Some(limit) = self.limits.get(name) else {
                return Some(format!("{greatest}.  No limit is specified"));
            };
            let request = self.requests.get(name);
            let [most, asked, allowed] = aligned([limit, request.unwrap_or(Quantity::ZERO), bound]);
            if most > allowed {
                return Some(format!("{greatest}, but limit is {limit}"));
            }
            let request = request.filter(|_| asked > allowed)?;
            Some(format!("{greatest}, but request is {request}"))
        })
    }

    /// Returns errors for requests above the maximum, for kinds without limits.
    pub(super) fn requests_above<'a>(&'a self, limit: &Value) -> impl Iterator<Item = String> + 'a {
        self.each(limit, "max", |name, bound| {
            let greatest = format!("maximum {name} usage per {} is {bound}", self.by);
            let Some(request) = self.requests.get(name) else {
                return Some(format!("{greatest}.  No request is specified"));
            };
            let [asked, allowed] = aligned([request, bound]);
            (asked > allowed).then(|| format!("{greatest}, but request is {request}"))
        })
    }

    /// Returns errors for limits that exceed the allowed ratio to the request.
    pub(super) fn out_of_proportion<'a>(
        &'a self,
        limit: &Value,
    ) -> impl Iterator<Item = String> + 'a {
        self.each(limit, "maxLimitRequestRatio", |name, bound| {
            let rule = format!(
                "{name} max limit to request ratio per {} is {bound}, but",
                self.by
            );
            let of = |side: &Amounts| side.get(name).unwrap_or(Quantity::ZERO);
            let (request, limit) = (of(&self.requests), of(&self.limits));
            let [asked, most, _] = aligned([request, limit, bound]);
            if asked == 0 {
                return Some(format!("{rule} no request is specified or request is 0"));
            }
            if most == 0 {
                return Some(format!("{rule} no limit is specified or limit is 0"));
            }
            let ratio = most as f64 / asked as f64;
            let exceeded = if bound.units() <= MOST_MILLIS {
                ratio * 1000.0 > bound.millis() as f64
            } else {
                ratio > bound.units() as f64
            };
            exceeded.then(|| format!("{rule} provided ratio is {ratio:.6}"))
        })
    }
}
