//! Parsers of values that several settings share.

use bareboat::api::quantity::Quantity;
use bareboat::controllers::Options;
use std::time::Duration;

/// Parses a duration such as `10m` or `24h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = bareboat::api::time::parse_duration(text)
        .ok()
        .and_then(|n| u64::try_from(n).ok());
    match nanoseconds {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => Err(format!("{text} is not a duration like 10m or 24h")),
    }
}

/// Parses a number of bytes such as `512Mi`, as Kubernetes writes it.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text).ok().and_then(|q| q.as_i64());
    match quantity.map(u64::try_from) {
        Some(Ok(bytes)) if bytes > 0 => Ok(bytes),
        _ => Err(format!("{text} is not a number of bytes like 512Mi or 1Gi")),
    }
}

/// Parses the name of a controller.
pub(super) fn controller(text: &str) -> Result<String, String> {
    match Options::default().switch_off(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the help of `--disable-controller`, which lists the controllers.
pub(super) fn controllers_help() -> String {
    let names: Vec<&str> = Options::names().collect();
    let names = names.join(", ");
    format!("Do not run this controller (repeatable): {names}")
}

/// Reads the name of an admission plug-in.
pub(super) fn admission_plugin(text: &str) -> Result<String, String> {
    match bareboat::admission::plugin(text) {
        Ok(name) => Ok(name.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The help of `--disable-admission-plugins`, which names the plug-ins.
pub(super) fn admission_plugins_help() -> String {
    let names = bareboat::admission::PLUGINS.join(", ");
    format!("Do not run this admission plug-in (repeatable): {names}")
}
