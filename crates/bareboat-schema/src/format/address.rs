//! Formats of addresses: hosts, networks, mail, URIs.

use super::letters::{is_letter, is_letter_or_symbol};
use std::net::Ipv6Addr;

/// Returns whether a text is an absolute URI or an absolute path, as in an HTTP request line.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let (rest, _query) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        // An opaque URI such as `mailto:`.
        return !scheme.is_empty();
    }
    let authority = if scheme.is_empty() && rest.starts_with("///") {
        None
    } else {
        rest.strip_prefix("//")
    };
    match authority {
        Some(authority) => {
            let end = authority.find('/').unwrap_or(authority.len());
            is_authority(&authority[..end]) && has_good_escapes(&authority[end..])
        }
        None => has_good_escapes(rest),
    }
}

/// Splits off the scheme without its colon, empty if there is none; `None` if the text begins with
/// a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index > 0 => return Some((&text[..index], &text[index + 1..])),
            b':' => return None,
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", text),
    };
    let good_user = user
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte));
    if !good_user || !has_good_escapes(user) {
        return false;
    }
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        let address = address.split_once("%25").map_or(address, |(head, _)| head);
        return address.parse::<Ipv6Addr>().is_ok() && is_port(port);
    }
    let (name, port) = match host.rfind(':') {
        Some(at) => (&host[..at], &host[at..]),
        None => (host, ""),
    };
    is_port(port)
        && has_good_escapes(name)
        && name.bytes().all(|byte| {
            !byte.is_ascii()
                || byte.is_ascii_alphanumeric()
                || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte)
        })
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_good_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(index, byte)| {
        *byte != b'%'
            || bytes
                .get(index + 1..index + 3)
                .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Returns whether a text is a mail address, optionally with a name and angle brackets.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim();
    if let Some(inner) = text.strip_suffix('>') {
        let Some((name, address)) = inner.split_once('<') else {
            return false;
        };
        return is_display_name(name.trim()) && is_bare_address(address.trim());
    }
    is_bare_address(text)
}

fn is_display_name(name: &str) -> bool {
    if let Some(quoted) = name
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        return is_quoted(quoted);
    }
    name.chars()
        .all(|character| !character.is_control() && !"()<>[]:;@\\,\"".contains(character))
}

fn is_bare_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let local_ok = match local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(quoted) => is_quoted(quoted),
        None => is_dot_atom(local),
    };
    let domain_ok = match domain
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(literal) => {
            let address = literal.strip_prefix("IPv6:").unwrap_or(literal);
            address.parse::<std::net::IpAddr>().is_ok()
        }
        None => is_dot_atom(domain),
    };
    local_ok && domain_ok
}

fn is_quoted(text: &str) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return false,
            '\\' => {}
            '"' => return false,
            control if control.is_control() => return false,
            _ => {}
        }
    }
    true
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| {
        !atom.is_empty()
            && atom.chars().all(|character| {
                !character.is_ascii()
                    || character.is_ascii_alphanumeric()
                    || "!#$%&'*+-/=?^_`{|}~".contains(character)
            })
    })
}

/// Returns whether a text has letters, digits and symbols of any script, in labels of at most 63
/// bytes.
pub(super) fn is_hostname(text: &str) -> bool {
    if text.is_empty() || text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        None => is_lone_label(text),
        Some((labels, top)) => labels.split('.').all(is_inner_label) && is_top_level(top),
    }
}

/// Returns whether a name without dots has at most one hyphen, right after its first character.
fn is_lone_label(text: &str) -> bool {
    let mut characters = text.chars();
    if !characters.next().is_some_and(is_host_character) {
        return false;
    }
    let rest = characters.as_str();
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    rest.chars().count() <= 62 && rest.chars().all(is_host_character)
}

fn is_inner_label(label: &str) -> bool {
    label.chars().next().is_some_and(is_host_character)
        && label.chars().last().is_some_and(is_host_character)
        && label
            .chars()
            .all(|character| character == '-' || is_host_character(character))
}

fn is_top_level(label: &str) -> bool {
    let count = label.chars().count();
    (2..=63).contains(&count)
        && label
            .chars()
            .all(|character| character.is_ascii_alphabetic() || is_letter(character))
}

fn is_host_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || is_letter_or_symbol(character)
}

/// Returns whether a text is four decimal bytes, or an IPv6 address that ends in them; leading
/// zeros are tolerated.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && is_ip(text)
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn is_ip(text: &str) -> bool {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().is_ok();
    }
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part.trim_start_matches('0').len() <= 3
                && part.parse::<u64>().is_ok_and(|number| number <= 255)
        })
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = if address.contains(':') { 128 } else { 32 };
    let digits = !bits.is_empty() && bits.len() <= 4 && bits.bytes().all(|b| b.is_ascii_digit());
    digits && bits.parse::<u32>().is_ok_and(|bits| bits <= most) && is_ip(address)
}

/// Returns whether a text is 6, 8 or 20 bytes in pairs with colons or hyphens, or in fours with
/// dots.
pub(super) fn is_mac(text: &str) -> bool {
    let all_hex = |part: &str, length| part.len() == length && super::text::is_hex(part);
    for separator in [':', '-'] {
        if text.contains(separator) {
            let parts: Vec<&str> = text.split(separator).collect();
            return matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|part| all_hex(part, 2));
        }
    }
    let parts: Vec<&str> = text.split('.').collect();
    matches!(parts.len(), 3 | 4 | 10) && parts.iter().all(|part| all_hex(part, 4))
}
