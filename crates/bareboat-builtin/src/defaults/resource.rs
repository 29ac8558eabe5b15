//! Defaults of device claims.

use super::spec;
use crate::reach::Fill;
use bareboat_api::{Map, Value};

/// Sets the defaults of ResourceClaim.
pub(crate) fn resource_claim(object: &mut Value) {
    devices(spec(object));
}

/// Sets the defaults of ResourceClaimTemplate.
pub(crate) fn resource_claim_template(object: &mut Value) {
    devices(spec(object).object_mut("spec"));
}

fn devices(spec: &mut Map) {
    let Some(devices) = spec.sub("devices") else {
        return;
    };
    for request in devices.each("requests") {
        if let Some(exactly) = request.sub("exactly") {
            amount(exactly);
        }
        for alternative in request.each("firstAvailable") {
            amount(alternative);
        }
    }
}

fn amount(request: &mut Map) {
    request.fill("allocationMode", "ExactCount");
    if request.get_str("allocationMode") == Some("ExactCount") {
        request.fill("count", 1);
    }
    for toleration in request.each("tolerations") {
        toleration.fill("operator", "Equal");
    }
}
