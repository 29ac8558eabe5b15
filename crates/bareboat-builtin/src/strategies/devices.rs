//! DeviceClasses, ResourceClaims, ResourceClaimTemplates and ResourceSlices.

use super::Rules;
use super::check::{Errors, immutable, name, one_of, path, required};
use super::expressions::judge;
use super::volume_source::driver_name;
use crate::reach::Reach;
use bareboat_api::metadata::{validate_annotations, validate_labels};
use bareboat_api::{FieldError, FieldPath, Object, Value, names};
use bareboat_cel::{SELECTOR_COST, compile_device_selector};
use std::collections::HashSet;

/// Returns the strategy of DeviceClass: validation.
pub(crate) fn device_class() -> Rules {
    Rules::validating(|class, wrong| {
        let spec = class.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        selectors(spec, &place.child("selectors"), wrong);
        for (index, entry) in spec.list(&["config"]).iter().enumerate() {
            configuration(entry, &place.child("config").index(index), wrong);
        }
    })
}

/// Returns the strategy of ResourceClaim: validation of new claims and of the status; the spec is immutable.
pub(crate) fn resource_claim() -> Rules {
    Rules::default()
        .at_first(|claim, wrong| {
            let spec = claim.get("spec").unwrap_or(&Value::Null);
            devices(spec, &path(&["spec", "devices"]), wrong);
        })
        .updating(spec_is_immutable)
        .statuses(|new, _, wrong| {
            let listed = new.value().list(&["status", "devices"]);
            for (index, device) in listed.iter().enumerate() {
                if let Some(data) = device.at(&["data"]) {
                    let place = path(&["status", "devices"]).index(index).child("data");
                    parameters(Some(data), place, wrong);
                }
            }
        })
}

/// Returns the strategy of ResourceClaimTemplate: validation; the spec is immutable.
pub(crate) fn resource_claim_template() -> Rules {
    Rules::validating(|template, wrong| {
        let metadata = path(&["spec", "metadata"]);
        validate_labels(
            template.at(&["spec", "metadata", "labels"]),
            &metadata.child("labels"),
            wrong,
        );
        validate_annotations(
            template.at(&["spec", "metadata", "annotations"]),
            &metadata.child("annotations"),
            wrong,
        );
        let spec = template.at(&["spec", "spec"]).unwrap_or(&Value::Null);
        devices(spec, &path(&["spec", "spec", "devices"]), wrong);
    })
    .updating(spec_is_immutable)
}

fn spec_is_immutable(new: &Object, old: &Object, wrong: &mut Errors) {
    immutable(new.get("spec"), old.get("spec"), path(&["spec"]), wrong);
}

/// Returns the strategy of ResourceSlice: validation; driver, pool and node are immutable.
pub(crate) fn resource_slice() -> Rules {
    Rules::validating(validate_slice).updating(|new, old, wrong| {
        for member in [
            ["spec", "driver"].as_slice(),
            &["spec", "pool", "name"],
            &["spec", "nodeName"],
        ] {
            immutable(new.at(member), old.at(member), path(member), wrong);
        }
    })
}

/// Maximum length of a CEL expression that selects devices, in bytes.
const MAX_SELECTOR: usize = 10 * 1024;

/// Validates device selectors.
fn selectors(owner: &Value, place: &FieldPath, wrong: &mut Errors) {
    for (index, selector) in owner.list(&["selectors"]).iter().enumerate() {
        let place = place.index(index).child("cel");
        if !selector.has(&["cel"]) {
            wrong.push(FieldError::required(place, ""));
            continue;
        }
        let expression = selector.text(&["cel", "expression"]);
        let place = place.child("expression");
        if expression.len() > MAX_SELECTOR {
            wrong.push(FieldError::too_long(place, MAX_SELECTOR));
            continue;
        }
        match compile_device_selector(expression) {
            Ok(compiled) if compiled.max_cost > SELECTOR_COST => {
                let detail = "too complex, exceeds cost limit";
                wrong.push(FieldError::forbidden(place, detail));
            }
            compiled => judge(compiled, expression, place, wrong),
        }
    }
}

fn configuration(entry: &Value, place: &FieldPath, wrong: &mut Errors) {
    let place = place.child("opaque");
    if !entry.has(&["opaque"]) {
        return wrong.push(FieldError::required(place, ""));
    }
    let driver = entry.text(&["opaque", "driver"]);
    if required(driver, place.child("driver"), wrong) {
        driver_name(driver, &place.child("driver"), wrong);
    }
    let given = entry.at(&["opaque", "parameters"]);
    parameters(given, place.child("parameters"), wrong);
}

/// Validates opaque driver parameters: an object of limited size.
fn parameters(given: Option<&Value>, place: FieldPath, wrong: &mut Errors) {
    const MAX_LENGTH: usize = 10 * 1024;
    match given {
        None | Some(Value::Null) => wrong.push(FieldError::required(place, "")),
        Some(value) if value.to_json().len() > MAX_LENGTH => {
            wrong.push(FieldError::too_long(place, MAX_LENGTH));
        }
        Some(Value::Object(_)) => {}
        Some(_) => {
            let detail = "must be a valid JSON object";
            wrong.push(FieldError::invalid(place, "<value omitted>", detail));
        }
    }
}

fn devices(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let mut known: HashSet<String> = HashSet::new();
    for (index, request) in spec.list(&["devices", "requests"]).iter().enumerate() {
        let place = place.child("requests").index(index);
        let own = request.text(&["name"]);
        name(own, names::dns1123_label, place.child("name"), wrong);
        if !known.insert(own.to_owned()) {
            wrong.push(FieldError::duplicate(place.clone(), own));
        }
        let exact = request.at(&["exactly"]).filter(|value| !value.is_null());
        let choices = request.list(&["firstAvailable"]);
        let one = "exactly one of `exactly` or `firstAvailable` is required";
        match (exact, choices.is_empty()) {
            (None, true) => wrong.push(FieldError::required(place.clone(), one)),
            (Some(_), false) => {
                let detail = format!("{one}, but multiple fields are set");
                wrong.push(FieldError::invalid(place.clone(), Value::Null, detail));
            }
            (Some(exact), true) => wanted(exact, &place.child("exactly"), wrong),
            (None, false) => {
                for (index, choice) in choices.iter().enumerate() {
                    let place = place.child("firstAvailable").index(index);
                    let sub = choice.text(&["name"]);
                    name(sub, names::dns1123_label, place.child("name"), wrong);
                    if !known.insert(format!("{own}/{sub}")) {
                        wrong.push(FieldError::duplicate(place.clone(), sub));
                    }
                    wanted(choice, &place, wrong);
                }
            }
        }
    }
    let lists = [("constraints", true), ("config", false)];
    for (list, constraint) in lists {
        for (index, entry) in spec.list(&["devices", list]).iter().enumerate() {
            let place = place.child(list).index(index);
            for (index, text) in entry.list(&["requests"]).iter().enumerate() {
                let text = text.as_str().unwrap_or("");
                if !known.contains(text) {
                    let place = place.child("requests").index(index);
                    let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
                    wrong.push(FieldError::invalid(place, text, detail));
                }
            }
            if !constraint {
                configuration(entry, &place, wrong);
            } else if entry.has(&["matchAttribute"]) == entry.has(&["distinctAttribute"]) {
                let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
                wrong.push(FieldError::required(place, detail));
            }
        }
    }
}

/// Validates a device request: class, count and selectors.
fn wanted(request: &Value, place: &FieldPath, wrong: &mut Errors) {
    let class = request.text(&["deviceClassName"]);
    let at = place.child("deviceClassName");
    if required(class, at.clone(), wrong) {
        name(class, names::dns1123_subdomain, at, wrong);
    }
    selectors(request, &place.child("selectors"), wrong);
    let count = request.int(&["count"]).unwrap_or(0);
    let at = place.child("count");
    match request.text(&["allocationMode"]) {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            wrong.push(FieldError::invalid(at, count, detail));
        }
        "ExactCount" if count <= 0 => {
            wrong.push(FieldError::invalid(at, count, "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        mode => one_of(
            mode,
            &["All", "ExactCount"],
            place.child("allocationMode"),
            wrong,
        ),
    }
}

fn validate_slice(slice: &Object, wrong: &mut Errors) {
    const PLACES: [&str; 4] = [
        "nodeName",
        "nodeSelector",
        "allNodes",
        "perDeviceNodeSelection",
    ];
    let spec = slice.get("spec").unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    let driver = spec.text(&["driver"]);
    if required(driver, place.child("driver"), wrong) {
        driver_name(driver, &place.child("driver"), wrong);
    }
    let pool = place.child("pool");
    let text = spec.text(&["pool", "name"]);
    if required(text, pool.child("name"), wrong) {
        for part in text.split('/') {
            name(part, names::dns1123_subdomain, pool.child("name"), wrong);
        }
    }
    let generation = spec.int(&["pool", "generation"]);
    if let Some(generation) = generation.filter(|number| *number < 0) {
        let detail = "must be greater than or equal to zero";
        wrong.push(FieldError::invalid(
            pool.child("generation"),
            generation,
            detail,
        ));
    }
    let count = spec.int(&["pool", "resourceSliceCount"]).unwrap_or(0);
    if count <= 0 {
        let at = pool.child("resourceSliceCount");
        wrong.push(FieldError::invalid(at, count, "must be greater than zero"));
    }
    let given: Vec<String> = PLACES
        .into_iter()
        .filter(|member| spec.has(&[member]))
        .map(|member| format!("`{member}`"))
        .collect();
    let one = format!("exactly one of `{}` is required", PLACES.join("`, `"));
    match given.len() {
        0 => wrong.push(FieldError::required(place.clone(), one)),
        1 => {}
        _ => {
            let detail = format!("{one}, but multiple fields are set");
            let shown = format!("{{{}}}", given.join(", "));
            wrong.push(FieldError::invalid(place.clone(), shown, detail));
        }
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, device) in spec.list(&["devices"]).iter().enumerate() {
        let place = place.child("devices").index(index);
        let own = device.text(&["name"]);
        name(own, names::dns1123_label, place.child("name"), wrong);
        if !seen.insert(own) {
            wrong.push(FieldError::duplicate(place.clone(), own));
        }
        let attributes = device.members(&["attributes"]);
        for (key, value) in attributes.into_iter().flat_map(|map| map.iter()) {
            let count = value.as_object().map_or(0, |map| map.len());
            if count != 1 {
                let place = place.child("attributes").key(key);
                let detail = "exactly one value must be specified";
                let shown = match count {
                    0 => Value::string(""),
                    _ => value.clone(),
                };
                wrong.push(FieldError::invalid(place, shown, detail));
            }
        }
    }
}
