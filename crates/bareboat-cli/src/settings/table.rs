//! The table of settings in `docs/operating.md`, made from the flags. `UPDATE_EXPECT=1` rewrites it.

#![allow(clippy::unwrap_used)]

use super::file::key;
use crate::args::Args;
use clap::{Arg, CommandFactory as _};

const BEGIN: &str = "<!-- settings: made by the tests of bareboat-cli (UPDATE_EXPECT=1) -->\n";
const END: &str = "<!-- end of settings -->\n";

/// One line of the table.
fn row(arg: &Arg) -> String {
    let name = arg.get_long().unwrap();
    let switch = arg
        .get_num_args()
        .is_some_and(|range| range.min_values() == 0);
    let value = match arg.get_value_names() {
        Some([value, ..]) if !switch => format!(" {value}"),
        _ => String::new(),
    };
    let short = arg
        .get_short()
        .map_or(String::new(), |letter| format!(", `-{letter}`"));
    let environment = arg.get_env().unwrap().to_str().unwrap();
    let in_file = match name {
        "config" => String::new(),
        _ => format!("`{}`", key(arg)),
    };
    let help = arg.get_help().unwrap().to_string();
    let (help, default) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.trim_end_matches(']').to_owned()),
        None => {
            let default = arg.get_default_values().first();
            let default = default.map_or(String::new(), |text| format!("`{}`", text.display()));
            (help, default)
        }
    };
    format!("| `--{name}{value}`{short} | `{environment}` | {in_file} | {default} | {help} |\n")
}

#[test]
fn the_documentation_lists_every_setting() {
    let command = Args::command();
    let serve = command.find_subcommand("serve").unwrap();
    let mut table = String::from(
        "\n| flag | environment | key in the file | default | what it does |\n|---|---|---|---|---|\n",
    );
    for arg in serve.get_arguments() {
        if !matches!(arg.get_id().as_str(), "help" | "version") {
            table.push_str(&row(arg));
        }
    }
    table.push('\n');
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, [before, BEGIN, &table, END, after].concat()).unwrap();
        return;
    }
    assert!(
        there == table,
        "run the test with UPDATE_EXPECT=1 to rewrite the table"
    );
}

#[test]
fn every_setting_has_an_environment_variable() {
    let command = Args::command();
    for arg in command.find_subcommand("serve").unwrap().get_arguments() {
        if matches!(arg.get_id().as_str(), "help" | "version") {
            continue;
        }
        let name = arg
            .get_long()
            .unwrap()
            .replace('-', "_")
            .to_ascii_uppercase();
        let expected = format!("BAREBOAT_{name}");
        assert_eq!(arg.get_env().unwrap().to_str(), Some(expected.as_str()));
    }
}
