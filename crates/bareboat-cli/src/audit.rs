//! Sets up audit from the settings: the policy, which is read again when its file changes, and the sinks.

use crate::settings::{AuditMode, AuditSettings};
use anyhow::{Context as _, Result, bail};
use bareboat::server::RemoteApi;
use bareboat::server::audit::{Audit, AuditLog, AuditWebhook, Batching, Mode, Policy, Rotation};
use bareboat::server::reload::{Following, ReloadMetrics, WatchedFiles};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Audit that is set up but not started.
pub(crate) struct Auditing {
    pub(crate) audit: Arc<Audit>,
    /// Counts reloads of the policy.
    pub(crate) metrics: ReloadMetrics,
    policy: WatchedFiles,
}

/// Reads the policy and opens the sinks; `None` if there is no policy.
pub(crate) fn prepare(settings: &AuditSettings) -> Result<Option<Auditing>> {
    let (log, webhook) = (
        &settings.audit_log_path,
        &settings.audit_webhook_config_file,
    );
    let Some(path) = &settings.audit_policy_file else {
        if log.is_some() || webhook.is_some() {
            bail!(
                "audit events are to be written, but no policy says which; name one with --audit-policy-file"
            );
        }
        return Ok(None);
    };
    if log.is_none() && webhook.is_none() {
        bail!(
            "there is an audit policy, but events go nowhere; use --audit-log-path or --audit-webhook-config-file"
        );
    }
    let metrics = ReloadMetrics::controller("audit_policy");
    let mut policy = WatchedFiles::new("audit policy", [path]).metrics(&metrics);
    let contents = policy.read().context("the audit policy cannot be read")?;
    let first = Policy::parse(contents.bytes(0))
        .with_context(|| format!("the audit policy {} cannot be used", path.display()))?;
    let mut audit = Audit::new(first);
    if let Some(path) = log {
        let batching = Batching {
            buffer: settings.audit_log_batch_buffer_size,
            ..Batching::default()
        };
        audit = audit.log(
            open(path, settings)?,
            mode(settings.audit_log_mode),
            batching,
        );
    }
    if let Some(path) = webhook {
        let server = RemoteApi::from_kubeconfig(path).context("audit events cannot be sent")?;
        let webhook = AuditWebhook::new(server)
            .initial_backoff(settings.audit_webhook_initial_backoff)
            .throttle(
                settings.audit_webhook_batch_throttle_qps.into(),
                settings.audit_webhook_batch_throttle_burst,
            );
        let batching = Batching {
            buffer: settings.audit_webhook_batch_buffer_size,
            size: settings.audit_webhook_batch_max_size.max(1),
            wait: settings.audit_webhook_batch_max_wait,
        };
        audit = audit.webhook(webhook, mode(settings.audit_webhook_mode), batching);
    }
    Ok(Some(Auditing {
        audit: Arc::new(audit),
        metrics,
        policy,
    }))
}

fn open(path: &Path, settings: &AuditSettings) -> Result<AuditLog> {
    if path == Path::new("-") {
        return Ok(AuditLog::stdout());
    }
    let megabytes = match settings.audit_log_maxsize {
        0 => 100,
        size => size,
    };
    let rotation = Rotation {
        max_bytes: u64::from(megabytes) << 20,
        max_age: (settings.audit_log_maxage > 0).then(|| DAY * settings.audit_log_maxage),
        max_backups: Some(settings.audit_log_maxbackup).filter(|most| *most > 0),
    };
    Ok(AuditLog::open(path, rotation)?)
}

fn mode(mode: AuditMode) -> Mode {
    match mode {
        AuditMode::Batch => Mode::Batch,
        AuditMode::Blocking => Mode::Blocking,
        AuditMode::BlockingStrict => Mode::BlockingStrict,
    }
}

impl Auditing {
    /// Watches the policy file until the guard is dropped.
    pub(crate) fn follow(self) -> Following {
        let audit = self.audit;
        self.policy.start(move |contents| {
            let parsed = Policy::parse(contents.bytes(0));
            let outcome = parsed.map(|policy| audit.set_policy(policy));
            std::future::ready(outcome.map_err(|error| error.to_string()))
        })
    }
}
