//! Tests that each rule finds its violations, and nothing else.

use super::dependencies::{Dependency, Table, dependencies};
use super::words::has_word;
use super::*;

fn file(path: &str, text: &str) -> File {
    File {
        path: path.into(),
        text: text.to_owned(),
    }
}

fn found(findings: &[Finding]) -> Vec<(&str, usize)> {
    findings
        .iter()
        .map(|finding| (finding.path.to_str().unwrap_or_default(), finding.line))
        .collect()
}

#[test]
fn files_without_a_description_or_too_long_are_found() {
    let long = format!("//! Long.\n{}", "\n".repeat(500));
    let sources = [
        file("a.rs", "//! Good.\n"),
        file("b.rs", "use x;\n"),
        file("c.rs", &long),
        file("d.md", "use x;\n"),
    ];
    assert_eq!(found(&files::check(&sources)), [("b.rs", 1), ("c.rs", 0)]);
}

#[test]
fn a_median_that_is_too_long_is_found() {
    let of = |lines: usize| file("a.rs", &format!("//! A.\n{}", "\n".repeat(lines - 1)));
    assert_eq!(found(&files::check(&[of(150), of(300)])), []);
    assert_eq!(found(&files::check(&[of(151), of(300)])), [(".", 0)]);
    assert_eq!(found(&files::check(&[])), []);
}

#[test]
fn banned_words_are_found_whole_and_in_any_case() {
    assert!(has_word("for whoever asks", "whoever"));
    assert!(!has_word("whoeverness", "whoever"));
    let sources = [
        file("a.rs", "//! Fine.\n// Whoever reads this.\n"),
        file("xtask/src/tidy/words.rs", "whoever"),
    ];
    assert_eq!(found(&words::check(&sources)), [("a.rs", 2)]);
}

#[test]
fn dependencies_are_read_from_every_table() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\n# why\nb-c = \"1\"\nd.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\ne = \"1\"\n[dev-dependencies]\nf = { path = \"f\" }\n\
                    [features]\ng = []\n";
    let names: Vec<(&str, Table)> = dependencies(manifest)
        .iter()
        .map(|Dependency { name, table, .. }| (*name, *table))
        .collect();
    let normal = Table::Normal;
    assert_eq!(
        names,
        [
            ("b-c", normal),
            ("d", normal),
            ("e", normal),
            ("f", Table::Dev)
        ]
    );
}

#[test]
fn an_unused_dependency_is_found() {
    let root = file(
        "Cargo.toml",
        "[workspace.dependencies]\nserde = \"1\"\nryu = \"1\"\n",
    );
    let member = file(
        "crates/a/Cargo.toml",
        "[package]\n[package.metadata.tidy]\nunnamed = [\"quiet\"]\n[dependencies]\nserde = \"1\"\n\
         quiet = \"1\"\nspare-part = \"1\"\n[dev-dependencies]\nregex = \"1\"\n",
    );
    let code = file(
        "crates/a/src/lib.rs",
        "//! A.\n// spare_part\nuse serde::Serialize;\n",
    );
    let test = file("crates/a/tests/b.rs", "//! B.\nuse regex::Regex;\n");
    let findings = dependencies::check(&[root, member, code, test]);
    assert_eq!(
        found(&findings),
        [("crates/a/Cargo.toml", 7), ("Cargo.toml", 3)]
    );
}
