//! The log on standard error, and its format.

mod json;

use crate::settings::{LogFormat, Settings};
use anyhow::{Context as _, Result};
use std::io::IsTerminal as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log. Call it once.
pub(crate) fn start(settings: &Settings) -> Result<()> {
    let filter: Targets = settings.log.parse().with_context(|| {
        format!(
            "log: {} is no filter like info or bareboat_server=debug",
            settings.log
        )
    })?;
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(std::io::stderr);
    match settings.logging.log_format {
        LogFormat::Text => {
            let log = log.with_ansi(std::io::stderr().is_terminal()).finish();
            log.with(filter).init();
        }
        LogFormat::Json => {
            let lines = log.with_ansi(false).fmt_fields(json::Fields);
            let log = lines.event_format(json::Lines).finish();
            log.with(filter).init();
            // A panic is logged like any other line.
            std::panic::set_hook(Box::new(|panic| {
                let place = panic.location().map(ToString::to_string);
                let payload = panic.payload();
                let literal = payload.downcast_ref::<&str>().copied();
                let text = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                tracing::error!(place, text, "a thread panicked");
            }));
        }
    }
    Ok(())
}
