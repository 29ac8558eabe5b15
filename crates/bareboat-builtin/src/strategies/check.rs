//! Checks that many kinds share, with upstream's error texts.

pub(crate) use bareboat_api::FieldErrors as Errors;

use crate::reach::Reach as _;
use bareboat_api::{FieldError, FieldPath, Value, names};

pub(super) const IMMUTABLE: &str = "field is immutable";
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Builds a path of members from the object's root.
pub(super) fn path(members: &[&str]) -> FieldPath {
    members
        .iter()
        .fold(FieldPath::root(), |path, member| path.child(member))
}

/// Checks that a text is not empty.
pub(super) fn required(text: &str, path: FieldPath, wrong: &mut Errors) -> bool {
    if text.is_empty() {
        wrong.push(FieldError::required(path, ""));
        return false;
    }
    true
}

/// Checks that a text is one of `allowed`.
pub(super) fn one_of(text: &str, allowed: &[&str], path: FieldPath, wrong: &mut Errors) {
    if !allowed.contains(&text) {
        wrong.push(FieldError::not_supported(path, text, allowed));
    }
}

/// Checks that a text is not empty and one of `allowed`.
pub(super) fn required_one_of(text: &str, allowed: &[&str], path: FieldPath, wrong: &mut Errors) {
    if required(text, path.clone(), wrong) {
        one_of(text, allowed, path, wrong);
    }
}

/// Checks that an integer, if present, is not negative.
pub(super) fn not_negative(number: Option<i64>, path: FieldPath, wrong: &mut Errors) {
    if let Some(number) = number.filter(|number| *number < 0) {
        wrong.push(FieldError::invalid(path, number, NOT_NEGATIVE));
    }
}

/// Checks that an integer, if present, is within bounds.
pub(super) fn between(
    number: Option<i64>,
    (low, high): (i64, i64),
    path: FieldPath,
    wrong: &mut Errors,
) {
    if let Some(number) = number.filter(|number| !(low..=high).contains(number)) {
        let detail = format!("must be between {low} and {high}, inclusive");
        wrong.push(FieldError::invalid(path, number, detail));
    }
}

/// Checks a port number.
pub(super) fn port(number: i64, path: FieldPath, wrong: &mut Errors) {
    between(Some(number), (1, 65535), path, wrong);
}

/// Checks a port name or number.
pub(super) fn port_or_name(value: Option<&Value>, path: FieldPath, wrong: &mut Errors) {
    match value {
        Some(Value::Int(number)) => port(*number, path, wrong),
        Some(Value::String(name)) => {
            for message in port_name(name) {
                wrong.push(FieldError::invalid(path.clone(), name.clone(), message));
            }
        }
        _ => port(0, path, wrong),
    }
}

/// Returns what is wrong with a port name.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        wrong.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// Checks a name with the given rule.
pub(super) fn name(text: &str, rule: fn(&str) -> Vec<String>, path: FieldPath, wrong: &mut Errors) {
    for message in rule(text) {
        wrong.push(FieldError::invalid(path.clone(), text, message));
    }
}

/// Checks a required DNS label.
pub(super) fn required_label(text: &str, path: FieldPath, wrong: &mut Errors) {
    if required(text, path.clone(), wrong) {
        name(text, names::dns1123_label, path, wrong);
    }
}

/// Checks that a member did not change.
pub(super) fn immutable(
    new: Option<&Value>,
    old: Option<&Value>,
    path: FieldPath,
    wrong: &mut Errors,
) {
    let unset = |value: Option<&Value>| value.is_none_or(Value::is_null);
    let same = match (new, old) {
        (Some(new), Some(old)) => new == old,
        _ => unset(new) && unset(old),
    };
    if !same {
        let shown = new.cloned().unwrap_or(Value::Null);
        wrong.push(FieldError::invalid(path, shown, IMMUTABLE));
    }
}

/// Checks a non-negative integer or a percentage.
pub(super) fn number_or_percent(value: Option<&Value>, path: FieldPath, wrong: &mut Errors) {
    match value {
        Some(Value::Int(number)) => not_negative(Some(*number), path, wrong),
        Some(Value::String(text)) if percent(text).is_none() => {
            wrong.push(FieldError::invalid(
                path,
                text.clone(),
                names::with_regex(
                    "a valid percent string must be a numeric string followed by an ending '%'",
                    "[0-9]+%",
                    &["1%", "93%"],
                ),
            ));
        }
        _ => {}
    }
}

/// Parses the number before a percent sign.
pub(super) fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Returns whether a text is an IPv4 address with leading zeros.
fn has_leading_zeros(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let plain: Option<Vec<u8>> = parts
        .iter()
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => Some(0),
            digits => digits.parse().ok(),
        })
        .collect();
    parts.len() == 4
        && plain.is_some()
        && parts
            .iter()
            .any(|part| part.len() > 1 && part.starts_with('0'))
}

/// Checks an IP address.
pub(super) fn ip(text: &str, path: FieldPath, wrong: &mut Errors) {
    if text.parse::<std::net::IpAddr>().is_err() {
        if has_leading_zeros(text) {
            return wrong.push(FieldError::invalid(path, text, "must not have leading 0s"));
        }
        wrong.push(FieldError::invalid(
            path,
            text,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ));
    }
}

/// Checks that an endpoint address is not loopback, link-local, multicast or unspecified.
pub(super) fn reachable(
    address: std::net::IpAddr,
    text: &str,
    place: &FieldPath,
    wrong: &mut Errors,
) {
    // An IPv4 address in the form of an IPv6 address leads to the same place.
    let address = address.to_canonical();
    let link_local = match address {
        std::net::IpAddr::V4(address) => address.is_link_local(),
        std::net::IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let multicast = match address {
        std::net::IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        std::net::IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    };
    let detail = if address.is_unspecified() {
        format!("may not be unspecified ({text})")
    } else if address.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if link_local {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else if multicast {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
    } else {
        return;
    };
    wrong.push(FieldError::invalid(place.clone(), text, detail));
}

/// Error text for invalid CIDRs.
pub(super) const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Returns whether the address of a CIDR is its first address.
pub(super) fn starts_at_its_address(address: std::net::IpAddr, length: u8) -> bool {
    let rest = |bits: u128, width: u32| {
        let host = width - u32::from(length);
        host < 128 && bits & ((1u128 << host) - 1) == 0 || host == 128 && bits == 0
    };
    match address {
        std::net::IpAddr::V4(address) => rest(u128::from(u32::from(address)), 32),
        std::net::IpAddr::V6(address) => rest(u128::from(address), 128),
    }
}

/// Parses a CIDR into address and prefix length.
pub(super) fn cidr(text: &str) -> Option<(std::net::IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    let limit = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = length.parse().ok().filter(|length| *length <= limit)?;
    Some((address, length))
}

/// Checks a condition with its time and reason.
pub(super) fn condition(condition: &Value, place: &FieldPath, wrong: &mut Errors) {
    let ty = condition.text(&["type"]);
    name(ty, names::qualified_name, place.child("type"), wrong);
    one_of(
        condition.text(&["status"]),
        &["False", "True", "Unknown"],
        place.child("status"),
        wrong,
    );
    not_negative(
        condition.int(&["observedGeneration"]),
        place.child("observedGeneration"),
        wrong,
    );
    for member in ["lastTransitionTime", "reason"] {
        required(condition.text(&[member]), place.child(member), wrong);
    }
}
