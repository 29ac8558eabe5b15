//! URLs, parsed like request URIs in Go's `net/url`.

use std::sync::Arc;

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::{Entries, MapVal, Special, Val};

/// A parsed URL.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub(crate) text: Arc<str>,
    scheme: String,
    host: String,
    path: String,
    /// The path as written.
    raw_path: String,
    query: String,
}

macro_rules! getter {
    ($name:literal, $id:literal, $of:expr) => {
        Decl {
            name: $name,
            call: |_, args| match args.first().and_then(Val::as_special) {
                Some(Special::Url(url)) => Ok(Val::text($of(url))),
                _ => no_such_overload(),
            },
            overloads: &[($id, ".url -> string")],
        }
    };
}

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "url",
        call: |_, args| match args {
            [Val::String(text)] => match parse(text.as_str()) {
                Ok(url) => Ok(Val::special(Special::Url(url))),
                Err(why) => Err(EvalError::new(format!(
                    "URL parse error during conversion from string: {why}"
                ))),
            },
            _ => no_such_overload(),
        },
        overloads: &[("string_to_url", "string -> url")],
    },
    Decl {
        name: "isURL",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::Bool(parse(text.as_str()).is_ok())),
            _ => no_such_overload(),
        },
        overloads: &[("is_url_string", "string -> bool")],
    },
    getter!("getScheme", "url_get_scheme", |url: &Url| url
        .scheme
        .clone()),
    getter!("getHost", "url_get_host", |url: &Url| url.host.clone()),
    getter!("getHostname", "url_get_hostname", Url::hostname),
    getter!("getPort", "url_get_port", Url::port),
    getter!("getEscapedPath", "url_get_escaped_path", Url::escaped_path),
    Decl {
        name: "getQuery",
        call: |_, args| match args.first().and_then(Val::as_special) {
            Some(Special::Url(url)) => url.query(),
            _ => no_such_overload(),
        },
        overloads: &[("url_get_query", ".url -> map(string, list(string))")],
    },
];

impl Url {
    fn split_port(&self) -> (&str, &str) {
        if let Some(bracket) = self.host.rfind(']') {
            let host = self.host.get(1..bracket).unwrap_or_default();
            let port = self.host[bracket + 1..].strip_prefix(':').unwrap_or("");
            return (host, port);
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }

    fn hostname(&self) -> String {
        self.split_port().0.to_owned()
    }

    /// Returns the path as written if it is properly escaped, otherwise escapes it.
    fn escaped_path(&self) -> String {
        let valid = self
            .raw_path
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]%/".contains(&byte));
        if valid {
            self.raw_path.clone()
        } else {
            escape_path(&self.path)
        }
    }

    fn port(&self) -> String {
        self.split_port().1.to_owned()
    }

    fn query<'a>(&self) -> Result<Val<'a>, EvalError> {
        let mut keys: Vec<(String, Vec<Val<'a>>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            // Go drops pairs it cannot parse.
            if pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (unescape(key, true), unescape(value, true)) else {
                continue;
            };
            match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(Val::text(value)),
                None => keys.push((key, vec![Val::text(value)])),
            }
        }
        let mut entries = Entries::default();
        for (key, values) in keys {
            entries.insert(Val::text(key), Val::list(values))?;
        }
        Ok(Val::Map(MapVal::Values(Arc::new(entries))))
    }
}

/// Parses an absolute URL or an absolute path.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let fail = |why: &str| format!("parse {text:?}: {why}");
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err(format!(
            "parse {text:?}: net/url: invalid control character in URL"
        ));
    }
    if text.is_empty() {
        return Err(fail("empty url"));
    }
    if text == "*" {
        return Ok(Url {
            text: text.into(),
            scheme: String::new(),
            host: String::new(),
            path: text.into(),
            raw_path: text.into(),
            query: String::new(),
        });
    }
    // Request URIs have no fragments: upstream looks for the host before the fragment.
    if let Some((_, after)) = text.split_once("://") {
        let authority = after.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('#') {
            return Err(fail("invalid character \"#\" in host name"));
        }
    }
    let (before_fragment, _) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, rest) = split_scheme(before_fragment).map_err(fail)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        if scheme.is_empty() {
            return Err(fail("invalid URI for request"));
        }
        // An opaque URL, such as `mailto:a@b`.
        return Ok(Url {
            text: text.into(),
            scheme,
            host: String::new(),
            path: String::new(),
            raw_path: String::new(),
            query: query.into(),
        });
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
            let slash = after.find('/').unwrap_or(after.len());
            after.split_at(slash)
        }
        _ => ("", rest),
    };
    let host = host(authority).map_err(|why| fail(&why))?;
    let raw_path = path.to_owned();
    let path = unescape(path, false)
        .ok_or_else(|| fail(&format!("invalid URL escape {:?}", bad_escape(path))))?;
    Ok(Url {
        text: text.into(),
        scheme,
        host,
        path,
        raw_path,
        query: query.into(),
    })
}

fn split_scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme"),
            b':' => return Ok((text[..at].to_lowercase(), &text[at + 1..])),
            _ => break,
        }
    }
    Ok((String::new(), text))
}

fn host(authority: &str) -> Result<String, String> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if let Some((user, _)) = authority.rsplit_once('@') {
        let valid = user
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte));
        if !valid {
            return Err("net/url: invalid userinfo".into());
        }
    }
    let port = if host.starts_with('[') {
        let close = host.rfind(']').ok_or("missing ']' in host")?;
        let address = host[1..close].split("%25").next().unwrap_or_default();
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            if address.parse::<std::net::Ipv4Addr>().is_ok() {
                return Err("invalid IP-literal".into());
            }
            let why = super::ip::reason(address);
            return Err(format!("invalid host: ParseAddr({address:?}): {why}"));
        }
        &host[close + 1..]
    } else {
        host.find(':').map_or("", |colon| &host[colon..])
    };
    let valid_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !valid_port {
        return Err(format!("invalid port {port:?} after host"));
    }
    let refused = |c: char| c.is_ascii() && " \"<>\\^`{|}".contains(c);
    if let Some(character) = host.chars().find(|c| refused(*c)) {
        return Err(format!(
            "invalid character {:?} in host name",
            character.to_string()
        ));
    }
    unescape(host, false).ok_or_else(|| format!("invalid URL escape {:?}", bad_escape(host)))
}

fn bad_escape(text: &str) -> &str {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        rest = &rest[at..];
        let hex = rest.get(1..3);
        if !hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            let end = rest
                .char_indices()
                .nth(3)
                .map_or(rest.len(), |(end, _)| end);
            return &rest[..end];
        }
        rest = &rest[1..];
    }
    ""
}

fn unescape(text: &str, query: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let hex = std::str::from_utf8(bytes.get(at + 1..at + 3)?).ok()?;
                if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return None;
                }
                out.push(u8::from_str_radix(hex, 16).ok()?);
                at += 3;
                continue;
            }
            b'+' if query => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn escape_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
