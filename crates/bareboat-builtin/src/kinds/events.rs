//! The group `events.k8s.io`: the events of the core group in another form.

use super::build::namespaced;
use super::core::EVENT_TTL;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::Str;
use bareboat_api::kind::Conversion;
use std::sync::Arc;

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
                kind.stored_api_version = Str::const_new("v1");
                kind.conversion = Conversion::Pure(Arc::new(strategies::convert_event));
            })
            .done(),
    ]
}
