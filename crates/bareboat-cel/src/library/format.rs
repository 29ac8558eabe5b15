//! Kubernetes' named formats and their error messages.

use std::sync::LazyLock;

use regex::Regex;

use super::{Decl, no_such_overload, url};
use crate::value::time::{parse_date, parse_timestamp};
use crate::value::{Special, Val};

/// A named format.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    key: &'static str,
    /// The pattern length that costs assume.
    pub(crate) pattern_size: u64,
    validate: fn(&str) -> Vec<String>,
}

static FORMATS: [Format; 13] = [
    Format {
        name: "DNS1123Label",
        key: "dns1123Label",
        pattern_size: 30,
        validate: |s| label(s, false),
    },
    Format {
        name: "DNS1123Subdomain",
        key: "dns1123Subdomain",
        pattern_size: 60,
        validate: |s| subdomain(s, false),
    },
    Format {
        name: "DNS1035Label",
        key: "dns1035Label",
        pattern_size: 30,
        validate: |s| label_1035(s, false),
    },
    Format {
        name: "QualifiedName",
        key: "qualifiedName",
        pattern_size: 60,
        validate: qualified_name,
    },
    Format {
        name: "DNS1123LabelPrefix",
        key: "dns1123LabelPrefix",
        pattern_size: 30,
        validate: |s| label(s, true),
    },
    Format {
        name: "DNS1123SubdomainPrefix",
        key: "dns1123SubdomainPrefix",
        pattern_size: 60,
        validate: |s| subdomain(s, true),
    },
    Format {
        name: "DNS1035LabelPrefix",
        key: "dns1035LabelPrefix",
        pattern_size: 30,
        validate: |s| label_1035(s, true),
    },
    Format {
        name: "LabelValue",
        key: "labelValue",
        pattern_size: 40,
        validate: label_value,
    },
    Format {
        name: "URI",
        key: "uri",
        pattern_size: 1103,
        validate: |s| url::parse(s).err().into_iter().collect(),
    },
    Format {
        name: "uuid",
        key: "uuid",
        pattern_size: 70,
        validate: |s| unless(is_uuid(s), "does not match the UUID format"),
    },
    Format {
        name: "byte",
        key: "byte",
        pattern_size: 84,
        validate: |s| unless(is_base64(s), "invalid base64"),
    },
    Format {
        name: "date",
        key: "date",
        pattern_size: 71,
        validate: |s| unless(parse_date(s).is_some(), "invalid date"),
    },
    Format {
        name: "datetime",
        key: "datetime",
        pattern_size: 71,
        validate: |s| unless(parse_timestamp(s).is_some(), "invalid datetime"),
    },
];

fn constant<'a>(key: &str) -> Val<'a> {
    let format = FORMATS.iter().find(|format| format.key == key);
    Val::special(Special::Format(
        format.expect("the table has all keys used here"),
    ))
}

macro_rules! constant {
    ($name:literal, $key:literal) => {
        Decl {
            name: $name,
            call: |_, _| Ok(constant($key)),
            overloads: &[($name, "-> format")],
        }
    };
}

pub(super) const FUNCTIONS: &[Decl] = &[
    constant!("format.dns1123Label", "dns1123Label"),
    constant!("format.dns1123Subdomain", "dns1123Subdomain"),
    constant!("format.dns1035Label", "dns1035Label"),
    constant!("format.qualifiedName", "qualifiedName"),
    constant!("format.dns1123LabelPrefix", "dns1123LabelPrefix"),
    constant!("format.dns1123SubdomainPrefix", "dns1123SubdomainPrefix"),
    constant!("format.dns1035LabelPrefix", "dns1035LabelPrefix"),
    constant!("format.labelValue", "labelValue"),
    constant!("format.uri", "uri"),
    constant!("format.uuid", "uuid"),
    constant!("format.byte", "byte"),
    constant!("format.date", "date"),
    constant!("format.datetime", "datetime"),
    Decl {
        name: "format.named",
        call: |_, args| match args {
            [Val::String(name)] => {
                let found = FORMATS.iter().find(|format| format.key == name.as_str());
                Ok(match found {
                    Some(format) => Val::some(Val::special(Special::Format(format))),
                    None => Val::Optional(None),
                })
            }
            _ => no_such_overload(),
        },
        overloads: &[("format-named", "string -> optional(format)")],
    },
    Decl {
        name: "validate",
        call: |_, args| match args {
            [format, Val::String(text)] => match format.as_special() {
                Some(Special::Format(format)) => {
                    let errors = (format.validate)(text.as_str());
                    Ok(if errors.is_empty() {
                        Val::Optional(None)
                    } else {
                        Val::some(Val::strings(errors))
                    })
                }
                _ => no_such_overload(),
            },
            _ => no_such_overload(),
        },
        overloads: &[(
            "format-validate",
            ".format, string -> optional(list(string))",
        )],
    },
];

fn unless(valid: bool, message: &str) -> Vec<String> {
    if valid {
        Vec::new()
    } else {
        vec![message.to_owned()]
    }
}

fn alphanumeric_inside(text: &str, inside: &[u8], upper: bool) -> bool {
    let edge = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || (upper && byte.is_ascii_uppercase())
    };
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            edge(*first)
                && edge(*last)
                && bytes
                    .iter()
                    .all(|byte| edge(*byte) || inside.contains(byte))
        }
        _ => false,
    }
}

/// Replaces the trailing dash of a name prefix, because a suffix follows it.
fn without_trailing_dash(text: &str, prefix: bool) -> String {
    match text.strip_suffix('-') {
        Some(before) if prefix && text.len() > 1 => format!("{before}a"),
        _ => text.to_owned(),
    }
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

fn label(text: &str, prefix: bool) -> Vec<String> {
    let text = without_trailing_dash(text, prefix);
    let mut errors: Vec<String> = too_long(&text, 63).into_iter().collect();
    if !alphanumeric_inside(&text, b"-", false) {
        errors.push("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')".to_owned());
    }
    errors
}

fn is_subdomain(text: &str) -> bool {
    text.split('.')
        .all(|part| alphanumeric_inside(part, b"-", false))
}

fn subdomain(text: &str, prefix: bool) -> Vec<String> {
    let text = without_trailing_dash(text, prefix);
    let mut errors: Vec<String> = too_long(&text, 253).into_iter().collect();
    if !is_subdomain(&text) {
        errors.push("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned());
    }
    errors
}

fn label_1035(text: &str, prefix: bool) -> Vec<String> {
    let text = without_trailing_dash(text, prefix);
    let mut errors: Vec<String> = too_long(&text, 63).into_iter().collect();
    let letter_first = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    if !(letter_first && alphanumeric_inside(&text, b"-", false)) {
        errors.push("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".to_owned());
    }
    errors
}

fn qualified_name(text: &str) -> Vec<String> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let wrong = subdomain(prefix, false);
                errors.extend(
                    wrong
                        .into_iter()
                        .map(|error| format!("prefix part {error}")),
                );
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                FORM
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if let Some(error) = too_long(name, 63) {
        errors.push(format!("name part {error}"));
    }
    if !alphanumeric_inside(name, b"-_.", true) {
        errors.push(format!("name part {FORM}"));
    }
    errors
}

fn label_value(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, 63).into_iter().collect();
    if !(text.is_empty() || alphanumeric_inside(text, b"-_.", true)) {
        errors.push("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned());
    }
    errors
}

fn is_uuid(text: &str) -> bool {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
            .expect("the pattern is a constant that compiles")
    });
    FORM.is_match(text)
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    !text.is_empty()
        && base64::engine::general_purpose::STANDARD
            .decode(text)
            .is_ok()
}

/// Returns whether a text is a valid name of a service account or namespace.
pub(super) fn is_label(text: &str) -> bool {
    label(text, false).is_empty()
}

/// Returns whether a text is a DNS subdomain.
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    subdomain(text, false).is_empty()
}
