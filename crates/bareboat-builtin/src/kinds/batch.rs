//! The group `batch`.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::Str;
use bareboat_api::kind::{SelectableField, UnknownField};

const GROUP: &str = "batch";

/// Warning for a Job deletion without a propagation policy.
const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "jobs", "Job")
            .version("v1", defaults::job)
            .categories(&["all"])
            .status()
            .columns(columns::jobs())
            .unknown_field(UnknownField::OfKind)
            .selectable_by(SelectableField::computed("status.successful", |job| {
                let succeeded = job
                    .at(&["status", "succeeded"])
                    .and_then(|value| value.as_i64());
                Str::new(succeeded.unwrap_or(0).to_string())
            }))
            .generation()
            .orphan_by_default()
            .orphan_warning(ORPHANED_PODS)
            .rules(strategies::job())
            .done(),
        namespaced(GROUP, "cronjobs", "CronJob")
            .version("v1", defaults::cron_job)
            .short(&["cj"])
            .categories(&["all"])
            .status()
            .columns(columns::cron_jobs())
            .generation()
            .rules(strategies::cron_job())
            .done(),
    ]
}
