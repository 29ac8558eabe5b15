//! Defaults of Deployment, ReplicaSet, DaemonSet and StatefulSet.

use super::core::claim;
use super::{pod_template, spec};
use crate::reach::Fill;
use bareboat_api::{Map, Value};

fn template(spec: &mut Map) {
    pod_template(spec.object_mut("template"));
}

/// Sets the defaults of Deployment.
pub(crate) fn deployment(object: &mut Value) {
    let spec = spec(object);
    template(spec);
    spec.fill("replicas", 1);
    let strategy = spec.object_mut("strategy");
    strategy.fill("type", "RollingUpdate");
    if strategy.get_str("type") == Some("RollingUpdate") {
        let rolling = strategy.object_mut("rollingUpdate");
        rolling.fill("maxUnavailable", "25%");
        rolling.fill("maxSurge", "25%");
    }
    spec.fill("revisionHistoryLimit", 10);
    spec.fill("progressDeadlineSeconds", 600);
}

/// Sets the defaults of ReplicaSet.
pub(crate) fn replica_set(object: &mut Value) {
    let spec = spec(object);
    template(spec);
    spec.fill("replicas", 1);
}

/// The annotation that counts the changes of a DaemonSet's template.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Sets the defaults of DaemonSet.
pub(crate) fn daemon_set(object: &mut Value) {
    let metadata = object.make_object().object_mut("metadata");
    metadata
        .object_mut("annotations")
        .fill(TEMPLATE_GENERATION, "1");
    let spec = spec(object);
    template(spec);
    let strategy = spec.object_mut("updateStrategy");
    strategy.fill("type", "RollingUpdate");
    if strategy.get_str("type") == Some("RollingUpdate") {
        let rolling = strategy.object_mut("rollingUpdate");
        rolling.fill("maxUnavailable", 1);
        rolling.fill("maxSurge", 0);
    } else if let Some(rolling) = strategy.sub("rollingUpdate") {
        rolling.fill("maxUnavailable", 0);
        rolling.fill("maxSurge", 0);
    }
    spec.fill("revisionHistoryLimit", 10);
}

/// Sets the defaults of StatefulSet.
pub(crate) fn stateful_set(object: &mut Value) {
    let spec = spec(object);
    template(spec);
    spec.fill("podManagementPolicy", "OrderedReady");
    let strategy = spec.object_mut("updateStrategy");
    if strategy.get_str("type").unwrap_or("").is_empty() {
        strategy.insert("type", "RollingUpdate".into());
        strategy.fill("rollingUpdate", Map::new());
    }
    if strategy.get_str("type") == Some("RollingUpdate")
        && let Some(rolling) = strategy.sub("rollingUpdate")
    {
        rolling.fill("partition", 0);
    }
    let retention = spec.object_mut("persistentVolumeClaimRetentionPolicy");
    retention.fill("whenDeleted", "Retain");
    retention.fill("whenScaled", "Retain");
    spec.fill("replicas", 1);
    spec.fill("revisionHistoryLimit", 10);
    for template in spec.each("volumeClaimTemplates") {
        template.fill("apiVersion", "v1");
        template.fill("kind", "PersistentVolumeClaim");
        claim(template);
    }
}
