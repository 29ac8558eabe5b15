//! Nodes: some of their facts are told once.

use super::Rules;
use super::check::{Errors, one_of, path, required};
use crate::reach::Reach;
use bareboat_api::{FieldError, Object, Value};

/// What nodes do.
pub(crate) fn node() -> Rules {
    Rules::validating(validate).updating(validate_update)
}

fn validate(node: &Object, wrong: &mut Errors) {
    for (index, taint) in node.value().list(&["spec", "taints"]).iter().enumerate() {
        let place = path(&["spec", "taints"]).index(index);
        required(taint.text(&["key"]), place.child("key"), wrong);
        one_of(
            taint.text(&["effect"]),
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            place.child("effect"),
            wrong,
        );
    }
}

fn validate_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let (after, before) = (new.value(), old.value());
    let told = before.list(&["spec", "podCIDRs"]);
    if !told.is_empty() && after.list(&["spec", "podCIDRs"]) != told {
        wrong.push(FieldError::forbidden(
            path(&["spec", "podCIDRs"]),
            "node updates may not change podCIDR except from \"\" to valid",
        ));
    }
    let provider = before.text(&["spec", "providerID"]);
    if !provider.is_empty() && after.text(&["spec", "providerID"]) != provider {
        wrong.push(FieldError::forbidden(
            path(&["spec", "providerID"]),
            "node updates may not change providerID except from \"\" to valid",
        ));
    }
    let mut rest = (after.at(&["spec"]).cloned(), before.at(&["spec"]).cloned());
    for spec in [&mut rest.0, &mut rest.1] {
        if let Some(map) = spec.as_mut().and_then(Value::as_object_mut) {
            for member in [
                "podCIDR",
                "podCIDRs",
                "providerID",
                "unschedulable",
                "taints",
                "configSource",
            ] {
                map.remove(member);
            }
        }
    }
    let empty = |value: &Option<Value>| value.as_ref().is_none_or(|v| v == &Value::object());
    if rest.0 != rest.1 && !(empty(&rest.0) && empty(&rest.1)) {
        wrong.push(FieldError::forbidden(
            path(&["spec"]),
            "node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)",
        ));
    }
}
