//! The reference pages of the book, made from the code: commands from their flags, annotations and metrics from the
//! sources that define them. `make reference` (`UPDATE_EXPECT=1`) writes them.

#![allow(clippy::unwrap_used)]

use crate::args::Args;
use clap::{Arg, Command, CommandFactory as _};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a page with what it should be, or writes it.
fn expect(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/reference/{name} is old: run `make reference`"
    );
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn flag(arg: &Arg) -> String {
    let value = match arg.get_value_names() {
        Some([value, ..]) if arg.get_action().takes_values() => format!(" {value}"),
        _ => String::new(),
    };
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("`--{long}{value}`, `-{short}`"),
        (Some(long), None) => format!("`--{long}{value}`"),
        _ => format!("`{}`", value.trim()),
    };
    let env = arg
        .get_env()
        .map(|env| format!(" Environment: `{}`.", env.display()));
    let default = arg
        .get_default_values()
        .first()
        .filter(|_| arg.get_action().takes_values());
    let default = default.map(|text| format!(" Default: `{}`.", text.display()));
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let end = if help.ends_with(['.', ']']) { "" } else { "." };
    let more = format!("{}{}", default.unwrap_or_default(), env.unwrap_or_default());
    format!("| {} | {}{end}{more} |\n", cell(&name), cell(&help))
}

fn describe(command: &Command, path: &str, out: &mut String) {
    let path = format!("{path} {}", command.get_name());
    let path = path.trim();
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let hidden =
        |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version") && !arg.is_hide_set();
    let args: Vec<&Arg> = command.get_arguments().filter(hidden).collect();
    if path != "bareboat" {
        out.push_str(&format!("\n## {path}\n\n{about}.\n"));
    }
    match (path, args.is_empty()) {
        ("bareboat serve", _) => {
            out.push_str(
                "\nIts settings are in the table of [operating](../operating.md#settings).\n",
            );
        }
        (_, false) => {
            out.push_str("\n| | |\n|---|---|\n");
            for arg in args {
                out.push_str(&flag(arg));
            }
        }
        _ => {}
    }
    for command in command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        describe(command, path, out);
    }
}

#[test]
fn the_page_of_commands_is_current() {
    let mut text = String::from(
        "# Commands\n\nMade from the code by `make reference`. `bareboat COMMAND --help` has examples.\n",
    );
    describe(&Args::command(), "", &mut text);
    expect("commands.md", &text);
}

/// Calls a function with all sources of the crates, without tests.
fn sources(folder: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir()
            && !matches!(
                name.as_str(),
                "tests" | "templates" | "benches" | "examples"
            )
        {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "reference.rs" {
            let text = fs::read_to_string(&path).unwrap();
            // Tests at the end of a file are not part of the program.
            found.push(
                text.split("#[cfg(test)]\nmod tests {")
                    .next()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
}

fn all_sources() -> Vec<String> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    found
}

/// Returns the string literals of a source, with the offsets where they begin and end. Raw strings do not matter here.
fn literals(text: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let code = line.trim_start();
        let mut rest = if code.starts_with("//") { "" } else { line };
        let mut at = offset;
        while let Some(start) = rest.find('"') {
            let Some(length) = rest[start + 1..].find('"') else {
                break;
            };
            let (from, to) = (at + start, at + start + length + 2);
            found.push((from, to, rest[start + 1..start + 1 + length].to_owned()));
            rest = &rest[start + length + 2..];
            at = to;
        }
        offset += line.len();
    }
    found
}

fn is_metric(name: &str) -> bool {
    let prefixes = [
        "apiserver_",
        "bareboat_",
        "aggregator_",
        "workqueue_",
        "process_",
        "authentication_",
        "authorization_",
        "leader_election_",
        "etcd_",
        "rest_client_",
        "kubernetes_",
    ];
    let plain = name
        .chars()
        .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    plain && prefixes.iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with('_')
}

#[test]
fn the_page_of_metrics_is_current() {
    let mut metrics = BTreeMap::new();
    for text in all_sources() {
        // Names of one family of metrics may have their beginning in common.
        let prefix = text.split("const PREFIX: &str = \"").nth(1);
        let prefix = prefix.and_then(|rest| rest.split('"').next());
        let prefix = prefix.filter(|prefix| prefix.ends_with('_'));
        for pair in literals(&text).windows(2) {
            let [(_, end, name), (start, _, help)] = pair else {
                continue;
            };
            // A metric is declared as its name, a comma and its description.
            let between = text[*end..*start].trim();
            let name = format!("{}{name}", prefix.unwrap_or_default());
            if between == "," && is_metric(&name) && help.contains(' ') {
                metrics.insert(name, help.clone());
            }
        }
    }
    assert!(
        metrics.len() > 50,
        "only {} metrics were found",
        metrics.len()
    );
    assert!(metrics.contains_key("apiserver_request_total"));
    let mut text = String::from(
        "# Metrics\n\nWhat `/metrics` may have; a series appears when it has a value. Made from the code by `make reference`. \
         [Monitoring](../monitoring.md) has a dashboard and alert rules.\n\n| metric | |\n|---|---|\n",
    );
    for (name, help) in &metrics {
        text.push_str(&format!("| `{name}` | {} |\n", cell(help)));
    }
    expect("metrics.md", &text);
}

#[test]
fn the_page_of_annotations_is_current() {
    let mut annotations = BTreeMap::new();
    for text in all_sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let domains = [
                "bareboat.dev/",
                "fleet.bareboat.dev/",
                "shadow.bareboat.dev/",
            ];
            let found = domains.iter().find_map(|domain| {
                let (_, rest) = line.split_once(&format!("\"{domain}"))?;
                Some((*domain, rest))
            });
            let Some((domain, rest)) = found else {
                continue;
            };
            if line.trim_start().starts_with("//") {
                continue;
            }
            let name = rest.split('"').next().unwrap();
            if name.is_empty() {
                continue;
            }
            let name = format!("{domain}{name}");
            let comments = lines[..index].iter().rev().map(|line| line.trim_start());
            let comments = comments.take_while(|line| line.starts_with("//"));
            let mut comment: Vec<&str> = comments
                .map(|line| line.trim_start_matches('/').trim())
                .collect();
            comment.reverse();
            let known: &mut String = annotations.entry(name).or_default();
            // The longest comment describes it; other places only name it.
            let comment = comment.join(" ");
            if comment.len() > known.len() {
                *known = comment;
            }
        }
    }
    for (name, comment) in &annotations {
        assert!(
            !comment.is_empty(),
            "the code does not say what {name} is for"
        );
    }
    let mut text = String::from(
        "# Annotations\n\nAnnotations that this server reads from objects, or writes into audit events. Made from the code by \
         `make reference`.\n\n| annotation | |\n|---|---|\n",
    );
    for (name, comment) in &annotations {
        text.push_str(&format!("| `{name}` | {} |\n", cell(comment)));
    }
    expect("annotations.md", &text);
}
