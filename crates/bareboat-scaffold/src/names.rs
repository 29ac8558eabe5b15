//! Names of projects, kinds, groups and versions: what is accepted, and what is made from them.

/// A name that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{what} {name:?}: {rule}")]
pub struct NameError {
    /// What it would name.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// What such names must be.
    pub rule: &'static str,
}

/// A kind of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindNames {
    /// Such as `Boat`.
    pub kind: String,
    /// Such as `boats`.
    pub plural: String,
    /// All versions, the first one added first.
    pub versions: Vec<String>,
}

impl KindNames {
    /// Returns the singular name, which also names files and modules.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }
}

/// Words that cannot name a module in Rust, a package in Go or a module in Python.
const KEYWORDS: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "case",
    "chan",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "dyn",
    "elif",
    "else",
    "enum",
    "except",
    "extern",
    "fallthrough",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "gen",
    "global",
    "go",
    "goto",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "macro",
    "map",
    "match",
    "mod",
    "move",
    "mut",
    "nonlocal",
    "not",
    "or",
    "override",
    "package",
    "pass",
    "priv",
    "pub",
    "raise",
    "range",
    "ref",
    "return",
    "select",
    "self",
    "serve",
    "static",
    "struct",
    "super",
    "switch",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "var",
    "virtual",
    "where",
    "while",
    "with",
    "yield",
    "lib",
    "main",
];

/// Checks the name of a kind and returns it with its plural.
pub fn kind(name: &str, plural: Option<&str>, version: &str) -> Result<KindNames, NameError> {
    let wrong = |what, name: &str, rule| {
        let name = name.to_owned();
        Err(NameError { what, name, rule })
    };
    let mut letters = name.chars();
    let starts = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_uppercase());
    if !starts || name.len() > 63 || !letters.all(|letter| letter.is_ascii_alphanumeric()) {
        return wrong(
            "kind",
            name,
            "a kind begins with a capital letter and has letters and digits, such as Boat",
        );
    }
    if KEYWORDS.contains(&name.to_lowercase().as_str()) {
        return wrong(
            "kind",
            name,
            "its files would be named by a word that programs cannot use; choose a longer name",
        );
    }
    let plural = match plural {
        Some(plural) => plural.to_owned(),
        None => plural_of(&name.to_lowercase()),
    };
    if !is_label(&plural) || plural.contains('-') {
        return wrong(
            "plural",
            &plural,
            "a plural has small letters and digits, such as boats",
        );
    }
    let versions = vec![self::version(version)?.to_owned()];
    Ok(KindNames {
        kind: name.to_owned(),
        plural,
        versions,
    })
}

/// Checks a version: `v1`, `v2beta1`.
pub fn version(name: &str) -> Result<&str, NameError> {
    let digits =
        |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let valid = name.strip_prefix('v').is_some_and(|rest| {
        let stages = ["alpha", "beta"]
            .iter()
            .find_map(|stage| rest.split_once(stage));
        match stages {
            Some((major, minor)) => digits(major) && digits(minor),
            None => digits(rest),
        }
    });
    match valid {
        true => Ok(name),
        false => Err(NameError {
            what: "version",
            name: name.to_owned(),
            rule: "a version is v1, v1alpha1, v2beta3 and so on",
        }),
    }
}

/// Checks a group: a DNS name with a dot.
pub fn group(name: &str) -> Result<&str, NameError> {
    match name.contains('.') && name.len() <= 253 && name.split('.').all(is_label) {
        true => Ok(name),
        false => Err(NameError {
            what: "group",
            name: name.to_owned(),
            rule: "a group is a DNS name that you own, such as boats.example.com",
        }),
    }
}

/// Checks the name of a project: a DNS label that begins with a letter.
pub fn project(name: &str) -> Result<&str, NameError> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    match begins && is_label(name) && !KEYWORDS.contains(&name) {
        true => Ok(name),
        false => Err(NameError {
            what: "project",
            name: name.to_owned(),
            rule: "a project has small letters, digits and dashes, and begins with a letter",
        }),
    }
}

/// Checks the name of a subresource.
pub fn subresource(name: &str) -> Result<&str, NameError> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    match begins && is_label(name) && name != "status" && !KEYWORDS.contains(&name) {
        true => Ok(name),
        false => Err(NameError {
            what: "subresource",
            name: name.to_owned(),
            rule: "a subresource has small letters, digits and dashes; status is there already",
        }),
    }
}

fn is_label(text: &str) -> bool {
    let inside =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The plural of an English noun, for the common cases.
fn plural_of(noun: &str) -> String {
    let vowel_before = |suffix: &str| {
        let stem = noun.strip_suffix(suffix).unwrap_or_default();
        stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    };
    if noun.ends_with('y') && !vowel_before("y") {
        return format!("{}ies", noun.trim_end_matches('y'));
    }
    match ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| noun.ends_with(end))
    {
        true => format!("{noun}es"),
        false => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn plurals_are_english() {
        for (kind, wanted) in [
            ("Boat", "boats"),
            ("Proxy", "proxies"),
            ("Key", "keys"),
            ("Box2x", "box2xes"),
            ("Search", "searches"),
        ] {
            assert_eq!(super::kind(kind, None, "v1").unwrap().plural, wanted);
        }
    }

    #[test]
    fn wrong_names_are_refused() {
        for name in ["boat", "Boat-1", "", "Type", "Bö"] {
            assert!(kind(name, None, "v1").is_err(), "{name}");
        }
        for name in ["1", "v", "v1gamma1", "vbeta1", "v1beta"] {
            assert!(version(name).is_err(), "{name}");
        }
        assert!(
            group("example").is_err() && group("Example.com").is_err() && group("a..b").is_err()
        );
        assert!(project("9boats").is_err() && project("../x").is_err() && project("main").is_err());
        assert!(version("v2beta3").is_ok() && group("a.b").is_ok() && project("my-boats").is_ok());
    }
}
