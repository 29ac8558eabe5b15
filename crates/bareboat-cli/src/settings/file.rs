//! The configuration file: its keys become flags, unless the command line or the environment sets them.

use crate::args::Args;
use anyhow::{Context as _, Result, bail};
use bareboat::api::Value;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Parses the command line, the environment, and the configuration file if there is one. Help and command line errors
/// are errors of clap: see `main`.
pub(crate) fn parse(mut words: Vec<OsString>) -> Result<Args> {
    let mut matches = Args::command().try_get_matches_from(&words)?;
    if let Some((name, given)) = matches.subcommand()
        && let Ok(Some(path)) = given.try_get_one::<PathBuf>("config")
    {
        words.extend(flags(path, name, given)?);
        let parsed = Args::command().try_get_matches_from(&words);
        matches = parsed.map_err(|error| {
            let text = error.render().to_string();
            let text = text.trim_start_matches("error: ").trim_end().to_owned();
            anyhow::anyhow!(text).context(unusable(path))
        })?;
    }
    Ok(Args::from_arg_matches(&matches)?)
}

fn unusable(path: &Path) -> String {
    format!("the configuration file {} cannot be used", path.display())
}

/// Returns the settings of the file as flags of a command, without those set elsewhere. The file is that of `bareboat serve`:
/// other commands use some of its settings.
fn flags(path: &Path, name: &str, given: &ArgMatches) -> Result<Vec<OsString>> {
    let text = std::fs::read(path).with_context(|| unusable(path))?;
    let parsed = bareboat_wire::yaml::parse(&text).with_context(|| unusable(path))?;
    if let Some(twice) = parsed.duplicates.first() {
        bail!("{}: {twice}", unusable(path));
    }
    let settings = match &parsed.value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(settings) => settings,
        _ => bail!("{}: it must be a mapping of keys to values", unusable(path)),
    };
    let command = Args::command();
    let serve = command.find_subcommand("serve").into_iter();
    let known: Vec<&Arg> = serve
        .flat_map(|serve| serve.get_arguments())
        .filter(|arg| arg.get_id() != "config")
        .collect();
    let mut flags = Vec::new();
    for (key, value) in settings.iter() {
        let Some(arg) = known.iter().find(|arg| self::key(arg) == key) else {
            let near = known.iter().map(|arg| self::key(arg));
            let hint = near
                .filter(|candidate| plain(candidate) == plain(key))
                .map(|candidate| format!("; did you mean {candidate}?"))
                .next()
                .unwrap_or_else(|| "; see bareboat serve --help for what there is".to_owned());
            bail!("{}: there is no setting {key}{hint}", unusable(path));
        };
        let own = command.find_subcommand(name).into_iter();
        let mut own = own.flat_map(|own| own.get_arguments());
        if !own.any(|own| own.get_id() == arg.get_id()) {
            continue;
        }
        if !matches!(
            given.value_source(arg.get_id().as_str()),
            None | Some(ValueSource::DefaultValue)
        ) {
            continue;
        }
        let name = arg.get_long().unwrap_or_default();
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let text = match value {
                Value::String(text) => text.to_string(),
                Value::Null => continue,
                Value::Object(_) | Value::Array(_) => {
                    bail!(
                        "{}: {key} must be a text, a number or a list of them",
                        unusable(path)
                    )
                }
                other => other.to_string(),
            };
            flags.push(format!("--{name}={text}").into());
        }
    }
    Ok(flags)
}

/// Returns the key of a setting: the name of its flag in camelCase.
pub(super) fn key(arg: &Arg) -> String {
    let mut words = arg.get_long().unwrap_or_default().split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut key, word| {
        let mut letters = word.chars();
        key.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        key.push_str(letters.as_str());
        key
    })
}

/// Normalizes a key for suggestions: drops case, hyphens and underscores.
fn plain(key: &str) -> String {
    key.chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
