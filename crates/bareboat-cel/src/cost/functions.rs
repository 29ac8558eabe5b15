//! Cost estimates of calls, by function.
//!
//! Upstream: apiserver pkg/cel/library/cost.go, EstimateCallCost, and cel-go ext/sets.go and
//! ext/lists.go.

use bareboat_api::Str;

use super::estimate::Estimator;
use super::size::{CostEstimate, Size};
use super::{AUTHORIZATION, LIST, PER_CHARACTER, PER_PATTERN_CHARACTER};
use crate::syntax::ast::{Expr, Literal, operator};
use crate::types::Type;

/// The type and size of an argument.
pub(super) struct Argument<'e> {
    pub(super) path: Vec<Str>,
    pub(super) ty: Type,
    pub(super) size: Option<Size>,
    pub(super) expr: Option<&'e Expr>,
}

/// The cost of a call and the size of its result.
pub(super) struct CallEstimate {
    pub(super) cost: CostEstimate,
    pub(super) size: Option<Size>,
}

impl CallEstimate {
    fn cost(cost: CostEstimate) -> Option<CallEstimate> {
        Some(CallEstimate { cost, size: None })
    }

    fn sized(cost: CostEstimate, size: Size) -> Option<CallEstimate> {
        Some(CallEstimate {
            cost,
            size: Some(size),
        })
    }
}

/// The assumed maximum pattern length of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// The maximum length of a format name.
const FORMAT_NAME: u64 = 64;

impl Estimator<'_> {
    fn size_of(&self, argument: &Argument<'_>) -> Size {
        argument
            .size
            .or_else(|| {
                let max = match argument.path.is_empty() {
                    true => None,
                    false => self.hints.max_size(&argument.path),
                };
                max.map(|max| Size { min: 0, max })
            })
            .unwrap_or(Size::UNKNOWN)
    }

    /// Returns the elements of a list as an argument.
    fn element_of(&self, list: &Argument<'_>) -> Option<Argument<'static>> {
        let ty = match &list.ty {
            Type::List(element) => (**element).clone(),
            Type::Map(entry) => entry.0.clone(),
            Type::Opaque(opaque) => opaque.params.first()?.clone(),
            _ => return None,
        };
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".into());
        }
        Some(Argument {
            path,
            ty,
            size: None,
            expr: None,
        })
    }
}

fn integer(argument: &Argument<'_>) -> Option<i64> {
    match argument.expr {
        Some(Expr::Literal(Literal::Int(value))) => Some(*value),
        _ => None,
    }
}

/// Estimates functions that differ per overload.
pub(super) fn of_overload(
    estimator: &Estimator<'_>,
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> Option<CallEstimate> {
    let list_call = |factor: f64, size: Size| {
        let cost = size.factor(factor).add(CostEstimate::fixed(1 + LIST));
        CallEstimate::sized(cost, size)
    };
    let self_compare = |list: &Argument<'_>, texts: bool| {
        let size = estimator.size_of(list);
        let factor = if texts { 2.0 + PER_CHARACTER } else { 2.0 };
        list_call(factor, size.multiply(size))
    };
    match (overload, target, args) {
        (
            "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list",
            _,
            [a, b],
        ) => {
            let factor = if overload == "list_sets_equivalent_list" {
                2.0
            } else {
                1.0
            };
            let pairs = estimator.size_of(a).multiply(estimator.size_of(b));
            CallEstimate::cost(pairs.factor(factor).add(CostEstimate::fixed(1)))
        }
        ("list_slice", Some(target), [start, end]) => {
            let size = estimator.size_of(target);
            let start = integer(start).map_or(0, |start| start.max(0) as u64);
            let end = integer(end).map_or(size.max, |end| end.max(0) as u64);
            list_call(1.0, Size::fixed(end.wrapping_sub(start)))
        }
        ("lists_range", None, [count]) => {
            let count = integer(count).map_or(u64::MAX, |count| count.max(0) as u64);
            list_call(1.0, Size::fixed(count))
        }
        ("list_reverse", Some(target), []) => list_call(1.0, estimator.size_of(target)),
        ("list_flatten" | "list_flatten_int", Some(target), args) => {
            let depth = match args {
                [] => 1,
                [depth, ..] => integer(depth).map_or(u64::MAX, |depth| depth.max(0) as u64),
            };
            list_call(depth as f64, estimator.size_of(target))
        }
        ("list_distinct", Some(target), []) => self_compare(target, false),
        (_, Some(target), []) if overload.ends_with("_sort") => self_compare(
            target,
            overload == "list_string_sort" || overload == "list_bytes_sort",
        ),
        (_, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => {
            let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
            self_compare(keys, texts)
        }
        _ => None,
    }
}

/// Estimates functions of Kubernetes' libraries.
pub(super) fn of_function(
    estimator: &Estimator<'_>,
    name: &str,
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> Option<CallEstimate> {
    let read = |argument: &Argument<'_>| estimator.size_of(argument).factor(PER_CHARACTER);
    match (name, target, args) {
        ("check", _, _) => CallEstimate::cost(CostEstimate::fixed(AUTHORIZATION)),
        ("fieldSelector" | "labelSelector", _, [selector]) => {
            let size = estimator.size_of(selector);
            let requirements = size.factor(0.5).factor(50.0);
            let cost = CostEstimate::fixed(LIST)
                .add(size.factor(PER_CHARACTER))
                .add(requirements);
            CallEstimate::cost(cost)
        }
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
            let Some(element) = estimator.element_of(target) else {
                return CallEstimate::cost(read(target));
            };
            let mut each = CostEstimate::fixed(1);
            if matches!(element.ty, Type::String | Type::Bytes) {
                each = each.add(read(&element));
            }
            CallEstimate::cost(estimator.size_of(target).cost(each))
        }
        ("url" | "jsonpatch.escapeKey", _, [text]) => {
            CallEstimate::sized(read(text), estimator.size_of(text))
        }
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
            CallEstimate::sized(read(target), estimator.size_of(target))
        }
        ("replace", Some(target), [from, to, ..]) => {
            let size = estimator.size_of(target);
            let result = replaced(size, estimator.size_of(from), estimator.size_of(to));
            CallEstimate::sized(size.factor(2.0 * PER_CHARACTER), result)
        }
        ("split", Some(target), args) => {
            let size = estimator.size_of(target);
            let max = args
                .get(1)
                .and_then(integer)
                .map_or(size.max, |max| max as u64);
            CallEstimate::sized(size.factor(2.0 * PER_CHARACTER), Size { min: 0, max })
        }
        ("join", Some(target), args) => {
            let count = estimator.size_of(target);
            let mut size = match estimator.element_of(target) {
                Some(element) => count.multiply(estimator.size_of(&element)),
                None => Size::fixed(0),
            };
            if let Some(separator) = args.first() {
                let between = Size {
                    min: count.min.saturating_sub(1),
                    max: count.max.saturating_sub(1),
                };
                size = size.add(estimator.size_of(separator).multiply(between));
            }
            CallEstimate::sized(size.factor(PER_CHARACTER), size)
        }
        ("find" | "findAll", Some(target), [pattern, ..]) => {
            let size = estimator.size_of(target);
            let cost = size
                .add(Size::fixed(1))
                .factor(PER_CHARACTER)
                .multiply(estimator.size_of(pattern).factor(PER_PATTERN_CHARACTER));
            let result = Size {
                min: 0,
                max: size.max,
            };
            CallEstimate::sized(cost, result)
        }
        ("ip", _, _) if overload == "cidr_ip" => CallEstimate::cost(CostEstimate::fixed(1)),
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
            [text, ..],
        ) => CallEstimate::cost(read(text)),
        ("ip.isCanonical", _, [text, ..]) => {
            CallEstimate::cost(estimator.size_of(text).factor(2.0 * PER_CHARACTER))
        }
        ("containsIP" | "containsCIDR", _, [other, ..]) => {
            let address = Size { min: 4, max: 16 };
            let mut cost = address.add(address).factor(PER_CHARACTER);
            if name == "containsCIDR" {
                cost = cost
                    .add(address.factor(PER_CHARACTER))
                    .add(CostEstimate::fixed(1));
            }
            if overload == "cidr_contains_ip_string" || overload == "cidr_contains_cidr_string" {
                cost = cost.add(read(other));
            }
            CallEstimate::cost(cost)
        }
        ("validate", _, [text, ..]) => {
            CallEstimate::cost(read(text).factor(FORMAT_PATTERN * PER_PATTERN_CHARACTER))
        }
        (operator::EQUALS, _, [a, b]) if a.ty.is_exactly(&b.ty) => equality(&a.ty, b.size),
        _ if is_nominal(name) => CallEstimate::cost(CostEstimate::fixed(1)),
        _ => None,
    }
}

fn is_nominal(name: &str) -> bool {
    matches!(
        name,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

/// Estimates a comparison of two values of one of Kubernetes' own types.
fn equality(ty: &Type, size: Option<Size>) -> Option<CallEstimate> {
    let up_to = |max: u64| CostEstimate { min: 1, max }.factor(PER_CHARACTER);
    match ty.name() {
        "kubernetes.NamedFormat" => CallEstimate::cost(up_to(FORMAT_NAME)),
        "kubernetes.URL" => CallEstimate::cost(up_to(size.map_or(1, |size| size.max))),
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => {
            CallEstimate::cost(CostEstimate::fixed(1))
        }
        name if name.starts_with("kubernetes.authorization.") => {
            CallEstimate::cost(CostEstimate::fixed(1))
        }
        _ => None,
    }
}

/// Returns the maximum length of a text after a replacement.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let (mut count, mut kept) = (Size::fixed(0), Size::fixed(0));
    if from.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if to.max <= from.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / from.min as f64).ceil() as u64;
    }
    if from.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if from.max <= to.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / from.max as f64).ceil() as u64;
    }
    count.multiply(to).add(kept)
}

/// Estimates functions of the core.
pub(super) fn of_core(
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> CallEstimate {
    let size = |argument: &Argument<'_>| argument.size.unwrap_or(Size::UNKNOWN);
    let read = |argument: &Argument<'_>| size(argument).factor(PER_CHARACTER);
    let estimate = match (overload, target, args) {
        ("string_format", Some(target), _) => CallEstimate::cost(read(target)),
        ("string_to_bytes", _, [text]) => {
            let result = Size {
                min: size(text).min,
                max: size(text).max.wrapping_mul(4),
            };
            CallEstimate::sized(read(text), result)
        }
        ("bytes_to_string", _, [bytes]) => {
            let result = Size {
                min: size(bytes).min / 4,
                max: size(bytes).max,
            };
            CallEstimate::sized(read(bytes), result)
        }
        ("strings_quote", _, [text]) => {
            let result = Size {
                min: size(text).min.wrapping_add(2),
                max: size(text).max.wrapping_mul(2).wrapping_add(2),
            };
            CallEstimate::sized(read(text), result)
        }
        ("starts_with_string" | "ends_with_string", _, [part]) => CallEstimate::cost(read(part)),
        ("in_list", _, [_, list]) => CallEstimate::cost(size(list).factor(1.0)),
        ("matches_string", Some(target), [pattern]) => {
            let text = size(target).add(Size::fixed(1)).factor(PER_CHARACTER);
            CallEstimate::cost(text.multiply(size(pattern).factor(PER_PATTERN_CHARACTER)))
        }
        ("contains_string", Some(target), [part]) => {
            CallEstimate::cost(read(target).multiply(read(part)))
        }
        ("add_list", _, [a, b]) => {
            CallEstimate::sized(CostEstimate::fixed(1), size(a).add(size(b)))
        }
        ("add_string" | "add_bytes", _, [a, b]) => {
            let joined = size(a).add(size(b));
            CallEstimate::sized(joined.factor(PER_CHARACTER), joined)
        }
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals",
            _,
            [a, b],
        ) => {
            let max = size(a).max.min(size(b).max);
            let compared = Size {
                min: u64::from(max > 0),
                max,
            };
            CallEstimate::cost(compared.factor(PER_CHARACTER))
        }
        _ => None,
    };
    estimate.unwrap_or(CallEstimate {
        cost: CostEstimate::fixed(1),
        size: None,
    })
}
