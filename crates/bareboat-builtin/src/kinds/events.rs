//! The group `events.k8s.io`: another representation of the core group's events.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::Str;
use bareboat_api::kind::Conversion;
use std::sync::Arc;

/// How long an event is stored, in seconds; applies to events of both groups.
pub(super) const EVENT_TTL: u64 = 3600;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced("events.k8s.io", "events", "Event")
            .version("v1", defaults::none)
            .short(&["ev"])
            .columns(columns::events())
            .selectable(&[
                "reason",
                "reportingController",
                "type",
                "regarding.kind",
                "regarding.namespace",
                "regarding.name",
                "regarding.uid",
                "regarding.apiVersion",
                "regarding.resourceVersion",
                "regarding.fieldPath",
            ])
            .create_on_update()
            .ttl(EVENT_TTL)
            .rules(strategies::newer_event())
            .with(|kind| {
                kind.store = Str::const_new("core/events");
                kind.storage_api_version = Str::const_new("v1");
                kind.policy.go_package = Some("core");
                kind.conversion = Conversion::Pure(Arc::new(strategies::convert_event));
            })
            .done(),
    ]
}
