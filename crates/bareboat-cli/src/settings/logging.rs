//! Settings of the log: its format, and which requests are slow.

use super::values;
use std::time::Duration;

/// The format of lines, and the threshold of slow requests.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogSettings {
    /// Write log lines as text for people, or as JSON objects for programs
    #[arg(
        long,
        value_name = "FORMAT",
        env = "BAREBOAT_LOG_FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,

    /// Log requests that take longer than this, with the times of their stages; 0s logs none
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_SLOW_REQUEST_THRESHOLD",
        default_value = "1s",
        value_parser = values::duration
    )]
    pub(crate) slow_request_threshold: Duration,
}

impl LogSettings {
    /// Returns the threshold of slow requests; `None` if none is logged.
    pub(crate) fn slow(&self) -> Option<Duration> {
        Some(self.slow_request_threshold).filter(|threshold| !threshold.is_zero())
    }
}

/// The form of log lines.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}
