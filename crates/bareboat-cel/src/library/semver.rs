//! Semantic versions.

use std::cmp::Ordering;
use std::fmt;

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::{Special, Val};

/// A semantic version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    numbers: [u64; 3],
    pre: Vec<Identifier>,
    build: Vec<Box<str>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Identifier {
    Number(u64),
    Text(Box<str>),
}

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "semver",
        call: |_, args| Ok(Val::special(Special::Semver(from(args)?))),
        overloads: &[
            ("string_to_semver", "string -> semver"),
            ("string_bool_to_semver", "string, bool -> semver"),
        ],
    },
    Decl {
        name: "isSemver",
        call: |_, args| match args {
            [Val::String(_)] | [Val::String(_), Val::Bool(_)] => Ok(Val::Bool(from(args).is_ok())),
            _ => no_such_overload(),
        },
        overloads: &[
            ("is_semver_string", "string -> bool"),
            ("is_semver_string_bool", "string, bool -> bool"),
        ],
    },
    Decl {
        name: "isGreaterThan",
        call: |_, args| compare(args, |order| Val::Bool(order.is_gt())),
        overloads: &[("semver_is_greater_than", ".semver, semver -> bool")],
    },
    Decl {
        name: "isLessThan",
        call: |_, args| compare(args, |order| Val::Bool(order.is_lt())),
        overloads: &[("semver_is_less_than", ".semver, semver -> bool")],
    },
    Decl {
        name: "compareTo",
        call: |_, args| compare(args, |order| Val::Int(order as i64)),
        overloads: &[("semver_compare_to", ".semver, semver -> int")],
    },
    Decl {
        name: "major",
        call: |_, args| number(args, 0),
        overloads: &[("semver_major", ".semver -> int")],
    },
    Decl {
        name: "minor",
        call: |_, args| number(args, 1),
        overloads: &[("semver_minor", ".semver -> int")],
    },
    Decl {
        name: "patch",
        call: |_, args| number(args, 2),
        overloads: &[("semver_patch", ".semver -> int")],
    },
];

fn from(args: &[Val<'_>]) -> Result<Version, EvalError> {
    let version = match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => parse(text.as_str()),
        [Val::String(text), Val::Bool(true)] => {
            normalize(text.as_str()).and_then(|normal| parse(&normal))
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    version.map_err(EvalError::new)
}

fn of<'v>(value: &'v Val<'_>) -> Result<&'v Version, EvalError> {
    match value.as_special() {
        Some(Special::Semver(version)) => Ok(version),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn compare<'a>(args: &[Val<'a>], answer: fn(Ordering) -> Val<'a>) -> Result<Val<'a>, EvalError> {
    match args {
        [a, b] => Ok(answer(of(a)?.order(of(b)?))),
        _ => no_such_overload(),
    }
}

fn number<'a>(args: &[Val<'a>], index: usize) -> Result<Val<'a>, EvalError> {
    match args {
        [version] => Ok(Val::Int(of(version)?.numbers[index] as i64)),
        _ => no_such_overload(),
    }
}

impl Version {
    /// Compares by precedence; build metadata does not count.
    pub(crate) fn order(&self, other: &Version) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let pairs = self.pre.iter().zip(&other.pre);
                    let differ = pairs.map(|(a, b)| a.order(b)).find(|order| order.is_ne());
                    differ.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
                }
            }
        })
    }
}

impl Identifier {
    fn order(&self, other: &Identifier) -> Ordering {
        match (self, other) {
            (Identifier::Number(a), Identifier::Number(b)) => a.cmp(b),
            (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
            (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
            (Identifier::Text(a), Identifier::Text(b)) => a.cmp(b),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (index, identifier) in self.pre.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build.join("."))?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".into());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".into());
    };
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, pre) = match rest.split_once('-') {
        Some((patch, pre)) => (patch, Some(pre)),
        None => (rest, None),
    };
    let numbers = [
        component(major, "Major")?,
        component(minor, "Minor")?,
        component(patch, "Patch")?,
    ];
    let pre = pre.map_or(Ok(Vec::new()), |pre| {
        pre.split('.').map(identifier).collect::<Result<_, _>>()
    })?;
    let build = build.map_or(Ok(Vec::new()), |build| {
        build.split('.').map(metadata).collect::<Result<_, _>>()
    })?;
    Ok(Version {
        numbers,
        pre,
        build,
    })
}

fn component(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let name = name.to_lowercase();
        return Err(format!(
            "Invalid character(s) found in {name} number {text:?}"
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{name} number must not contain leading zeroes {text:?}"
        ));
    }
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {text:?}: value out of range"))
}

fn is_identifier(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".into());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {text:?}"
            ));
        }
        let number = text.parse().map_err(|_| "value out of range".to_owned())?;
        return Ok(Identifier::Number(number));
    }
    if !is_identifier(text) {
        return Err(format!("Invalid character(s) found in prerelease {text:?}"));
    }
    Ok(Identifier::Text(text.into()))
}

fn metadata(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".into());
    }
    if !is_identifier(text) {
        return Err(format!(
            "Invalid character(s) found in build meta data {text:?}"
        ));
    }
    Ok(text.into())
}

/// Drops a leading `v` and leading zeros and adds missing numbers.
fn normalize(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() <= 1 {
                return part.to_owned();
            }
            let trimmed = part.trim_start_matches('0');
            match trimmed.bytes().next() {
                Some(first) if first.is_ascii_digit() => trimmed.to_owned(),
                _ => format!("0{trimmed}"),
            }
        })
        .collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".into());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}
