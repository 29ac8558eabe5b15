//! Validates the environment of a container.

use super::super::amounts::quantity;
use super::super::check::{Errors, name, required};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value, names};

/// Pod fields that environment variables can refer to.
const OF_PODS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Container resources that environment variables can refer to.
const OF_CONTAINERS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Divisors for memory amounts.
const UNITS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

fn variable_name(text: &str, path: FieldPath, wrong: &mut Errors) {
    let printable = text
        .bytes()
        .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    if !printable {
        let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        wrong.push(FieldError::invalid(path, text, detail));
    }
}

fn required_name(text: &str, path: FieldPath, wrong: &mut Errors) {
    if required(text, path.clone(), wrong) {
        name(text, names::dns1123_subdomain, path, wrong);
    }
}

pub(super) fn env(container: &Value, path: &FieldPath, wrong: &mut Errors) {
    const SOURCES: [&str; 5] = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    for (index, variable) in container.list(&["env"]).iter().enumerate() {
        let path = path.index(index);
        let text = variable.text(&["name"]);
        if required(text, path.child("name"), wrong) {
            variable_name(text, path.child("name"), wrong);
        }
        let Some(source) = variable.at(&["valueFrom"]).filter(|value| !value.is_null()) else {
            continue;
        };
        let path = path.child("valueFrom");
        let given: Vec<&&str> = SOURCES.iter().filter(|name| source.has(&[name])).collect();
        let complaint = match given.len() {
            0 => Some(
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            ),
            _ if !variable.text(&["value"]).is_empty() => {
                Some("may not be specified when `value` is not empty")
            }
            1 => None,
            _ => Some("may not have more than one field specified at a time"),
        };
        if let Some(complaint) = complaint {
            wrong.push(FieldError::invalid(path.clone(), "", complaint));
        }
        if let Some(field) = source.at(&["fieldRef"]).filter(|value| !value.is_null()) {
            field_selector(field, &OF_PODS, &path.child("fieldRef"), wrong);
        }
        if let Some(resource) = source
            .at(&["resourceFieldRef"])
            .filter(|value| !value.is_null())
        {
            resource_selector(resource, false, &path.child("resourceFieldRef"), wrong);
        }
        for reference in ["configMapKeyRef", "secretKeyRef"] {
            if source.has(&[reference]) {
                let path = path.child(reference);
                let object = source.text(&[reference, "name"]);
                name(object, names::dns1123_subdomain, path.child("name"), wrong);
                let key = source.text(&[reference, "key"]);
                let path = path.child("key");
                if required(key, path.clone(), wrong) {
                    name(key, names::config_key, path, wrong);
                }
            }
        }
    }
}

/// Validates `envFrom`: whole ConfigMaps and Secrets as variables.
pub(super) fn env_from(container: &Value, path: &FieldPath, wrong: &mut Errors) {
    for (index, source) in container.list(&["envFrom"]).iter().enumerate() {
        let place = path.index(index);
        let prefix = source.text(&["prefix"]);
        if !prefix.is_empty() {
            variable_name(prefix, place.child("prefix"), wrong);
        }
        let mut given = 0;
        for reference in ["configMapRef", "secretRef"] {
            if source.has(&[reference]) {
                given += 1;
                let place = place.child(reference).child("name");
                required_name(source.text(&[reference, "name"]), place, wrong);
            }
        }
        let complaint = match given {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        wrong.push(FieldError::invalid(path.clone(), "", complaint));
    }
}

/// Validates a reference to a pod field; labels and annotations are referred to by key.
pub(in super::super) fn field_selector(
    selector: &Value,
    allowed: &[&str],
    path: &FieldPath,
    wrong: &mut Errors,
) {
    let version = selector.text(&["apiVersion"]);
    let field = selector.text(&["fieldPath"]);
    let place = path.child("fieldPath");
    if !required(version, path.child("apiVersion"), wrong) || !required(field, place.clone(), wrong)
    {
        return;
    }
    let mut refuse = |why: String| {
        let detail = format!("error converting fieldPath: {why}");
        wrong.push(FieldError::invalid(place.clone(), field, detail));
    };
    if version != "v1" {
        return refuse(format!("unsupported pod version: {version}"));
    }
    let (base, key) = match field
        .strip_suffix("']")
        .and_then(|rest| rest.split_once("['"))
    {
        Some((base, key)) => (base, Some(key)),
        None => (field, None),
    };
    let map = matches!(base, "metadata.labels" | "metadata.annotations");
    let known = match key {
        Some(_) => map,
        // `spec.host` is a deprecated name that clients still send.
        None => map || OF_PODS.contains(&base) || base == "spec.host",
    };
    if !known {
        return refuse(format!("field label not supported: {field}"));
    }
    match key {
        Some(key) => {
            let key = match base {
                "metadata.annotations" => key.to_lowercase(),
                _ => key.to_owned(),
            };
            name(&key, names::qualified_name, path.clone(), wrong);
        }
        None if !allowed.contains(&base) => {
            let mut supported = allowed.to_vec();
            supported.sort_unstable();
            wrong.push(FieldError::not_supported(place, base, supported));
        }
        None => {}
    }
}

/// Validates a reference to a container resource and its divisor.
pub(in super::super) fn resource_selector(
    selector: &Value,
    in_volume: bool,
    path: &FieldPath,
    wrong: &mut Errors,
) {
    let resource = selector.text(&["resource"]);
    let pages =
        resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if in_volume && selector.text(&["containerName"]).is_empty() {
        wrong.push(FieldError::required(path.child("containerName"), ""));
    } else if required(resource, path.child("resource"), wrong)
        && !OF_CONTAINERS.contains(&resource)
        && !pages
    {
        let place = path.child("resource");
        wrong.push(FieldError::not_supported(place, resource, OF_CONTAINERS));
    }
    let Some(divisor) = selector.at(&["divisor"]) else {
        return;
    };
    if quantity(divisor).is_none_or(|divisor| divisor.is_zero()) {
        return;
    }
    let divisor = divisor.as_str().unwrap_or("");
    let what = match resource.split_once('.').map(|(_, what)| what) {
        Some("cpu") if !matches!(divisor, "1m" | "1") => {
            let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
            let place = path.child("divisor");
            return wrong.push(FieldError::invalid(place, resource, detail));
        }
        Some("memory") => "memory",
        Some("ephemeral-storage") => "local ephemeral storage",
        Some(_) if pages => "hugepages",
        _ => return,
    };
    if !UNITS.contains(&divisor) {
        let detail = format!(
            "only divisor's values {} are supported with the {what} resource",
            UNITS.join(", ")
        );
        wrong.push(FieldError::invalid(path.child("divisor"), resource, detail));
    }
}
