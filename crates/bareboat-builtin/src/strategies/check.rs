//! The checks many kinds share, in upstream's words.

use crate::reach::Reach as _;
use bareboat_api::{FieldError, FieldPath, Value, names};

/// The most errors one write is told: a hostile body must not cost more memory than it has bytes.
const MAX_ERRORS: usize = 1000;
/// The most bytes of values and details in all errors. Some errors show a whole list, and one list can have many.
const MAX_SHOWN: usize = 4 << 20;

/// What is wrong with an object, up to a limit.
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<FieldError>,
    shown: usize,
}

impl Errors {
    /// One more error, unless there are enough.
    pub(super) fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.shown += error.detail.len() + error.value.as_ref().map_or(0, size);
            self.list.push(error);
        }
    }

    /// Whether the limit is reached. Callers that would clone a lot for an error check this first.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_ERRORS || self.shown >= MAX_SHOWN
    }

    /// More errors, as far as there is room.
    pub(super) fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        errors.into_iter().for_each(|error| self.push(error));
    }

    /// Whether nothing is wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The list itself, for checks that are not of this crate.
    pub(super) fn list(&mut self) -> &mut Vec<FieldError> {
        &mut self.list
    }

    /// All errors.
    pub(super) fn into_list(self) -> Vec<FieldError> {
        self.list
    }
}

/// About how many bytes a value has.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 2 + size(item)).sum(),
        Value::Object(members) => {
            let sizes = members
                .iter()
                .map(|(key, member)| key.len() + 4 + size(member));
            sizes.sum()
        }
        _ => 4,
    }
}

pub(super) const IMMUTABLE: &str = "field is immutable";
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// A path of members from the object's root.
pub(super) fn path(members: &[&str]) -> FieldPath {
    members
        .iter()
        .fold(FieldPath::root(), |path, member| path.child(member))
}

/// A text that must not be empty.
pub(super) fn required(text: &str, path: FieldPath, wrong: &mut Errors) -> bool {
    if text.is_empty() {
        wrong.push(FieldError::required(path, ""));
        return false;
    }
    true
}

/// A text that must be one of some.
pub(super) fn one_of(text: &str, allowed: &[&str], path: FieldPath, wrong: &mut Errors) {
    if !allowed.contains(&text) {
        wrong.push(FieldError::not_supported(path, text, allowed));
    }
}

/// A text that must be given and one of some.
pub(super) fn required_one_of(text: &str, allowed: &[&str], path: FieldPath, wrong: &mut Errors) {
    if required(text, path.clone(), wrong) {
        one_of(text, allowed, path, wrong);
    }
}

/// An integer that must not be below zero, where there is one.
pub(super) fn not_negative(number: Option<i64>, path: FieldPath, wrong: &mut Errors) {
    if let Some(number) = number.filter(|number| *number < 0) {
        wrong.push(FieldError::invalid(path, number, NOT_NEGATIVE));
    }
}

/// An integer that must lie between two others, where there is one.
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

/// A port number.
pub(super) fn port(number: i64, path: FieldPath, wrong: &mut Errors) {
    between(Some(number), (1, 65535), path, wrong);
}

/// The name of a port, or its number.
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

/// Complaints about the name of a port.
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

/// A name judged by one of the rules for names.
pub(super) fn name(text: &str, rule: fn(&str) -> Vec<String>, path: FieldPath, wrong: &mut Errors) {
    for message in rule(text) {
        wrong.push(FieldError::invalid(path.clone(), text, message));
    }
}

/// A DNS label that must be given.
pub(super) fn required_label(text: &str, path: FieldPath, wrong: &mut Errors) {
    if required(text, path.clone(), wrong) {
        name(text, names::dns1123_label, path, wrong);
    }
}

/// A member that may not change.
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

/// An integer that must not be below zero, or a percentage.
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

/// The number before a percent sign.
pub(super) fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Whether a text would be an IPv4 address if it were written without leading zeros.
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

/// An IP address.
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

/// Traffic may not be led to the server itself or to everybody.
pub(super) fn reachable(
    address: std::net::IpAddr,
    text: &str,
    place: &FieldPath,
    wrong: &mut Errors,
) {
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

/// What a range of addresses looks like.
pub(super) const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Whether a range is written with the first of its addresses.
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

/// A range of IP addresses; gives its address and length.
pub(super) fn cidr(text: &str) -> Option<(std::net::IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    let limit = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = length.parse().ok().filter(|length| *length <= limit)?;
    Some((address, length))
}

/// A condition that tells when and why it became what it is.
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
