//! Settings of audit, under the names kube-apiserver has for them.

use super::values;
use std::path::PathBuf;
use std::time::Duration;

/// Which requests are recorded, and where.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Audit")]
pub(crate) struct AuditSettings {
    /// Record requests by this policy (audit.k8s.io/v1, kind Policy); needs a log or a webhook
    #[arg(long, value_name = "FILE", env = "BAREBOAT_AUDIT_POLICY_FILE")]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// Write audit events to this file, one JSON object a line; - for standard output
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_AUDIT_LOG_PATH",
        allow_hyphen_values = true
    )]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Delete old audit logs after this many days; 0 keeps them
    #[arg(
        long,
        value_name = "DAYS",
        env = "BAREBOAT_AUDIT_LOG_MAXAGE",
        default_value = "0"
    )]
    pub(crate) audit_log_maxage: u32,

    /// Keep this many old audit logs; 0 keeps all
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_AUDIT_LOG_MAXBACKUP",
        default_value = "0"
    )]
    pub(crate) audit_log_maxbackup: usize,

    /// Begin a new audit log before this one has more megabytes; 0 means 100
    #[arg(
        long,
        value_name = "MB",
        env = "BAREBOAT_AUDIT_LOG_MAXSIZE",
        default_value = "100"
    )]
    pub(crate) audit_log_maxsize: u32,

    /// Whether requests wait for their events: batch, blocking, or blocking-strict (refuse what cannot be recorded)
    #[arg(
        long,
        value_name = "MODE",
        env = "BAREBOAT_AUDIT_LOG_MODE",
        default_value = "blocking"
    )]
    pub(crate) audit_log_mode: AuditMode,

    /// In batch mode, keep at most this many events for the log; more are dropped and counted
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_AUDIT_LOG_BATCH_BUFFER_SIZE",
        default_value = "10000"
    )]
    pub(crate) audit_log_batch_buffer_size: usize,

    /// Send audit events to the server of this kubeconfig
    #[arg(long, value_name = "FILE", env = "BAREBOAT_AUDIT_WEBHOOK_CONFIG_FILE")]
    pub(crate) audit_webhook_config_file: Option<PathBuf>,

    /// The same as --audit-log-mode for the webhook
    #[arg(
        long,
        value_name = "MODE",
        env = "BAREBOAT_AUDIT_WEBHOOK_MODE",
        default_value = "batch"
    )]
    pub(crate) audit_webhook_mode: AuditMode,

    /// Keep at most this many events for the webhook; more are dropped and counted
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_AUDIT_WEBHOOK_BATCH_BUFFER_SIZE",
        default_value = "10000"
    )]
    pub(crate) audit_webhook_batch_buffer_size: usize,

    /// Send at most this many events at once
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_AUDIT_WEBHOOK_BATCH_MAX_SIZE",
        default_value = "400"
    )]
    pub(crate) audit_webhook_batch_max_size: usize,

    /// Let a batch wait this long to become full
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_AUDIT_WEBHOOK_BATCH_MAX_WAIT",
        default_value = "30s",
        value_parser = values::duration
    )]
    pub(crate) audit_webhook_batch_max_wait: Duration,

    /// Send at most this many batches a second; 0 sets no limit
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_AUDIT_WEBHOOK_BATCH_THROTTLE_QPS",
        default_value = "10"
    )]
    pub(crate) audit_webhook_batch_throttle_qps: u32,

    /// Send at most this many batches at once after a pause
    #[arg(
        long,
        value_name = "N",
        env = "BAREBOAT_AUDIT_WEBHOOK_BATCH_THROTTLE_BURST",
        default_value = "15"
    )]
    pub(crate) audit_webhook_batch_throttle_burst: u32,

    /// Wait this long before a failed batch is sent again; longer each time
    #[arg(
        long,
        value_name = "DURATION",
        env = "BAREBOAT_AUDIT_WEBHOOK_INITIAL_BACKOFF",
        default_value = "10s",
        value_parser = values::duration
    )]
    pub(crate) audit_webhook_initial_backoff: Duration,
}

/// Whether requests wait for their events.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditMode {
    /// They do not.
    Batch,
    /// They do.
    Blocking,
    /// They do, and are refused if they cannot be recorded.
    BlockingStrict,
}
