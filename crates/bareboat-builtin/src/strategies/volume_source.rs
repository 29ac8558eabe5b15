//! Validates volume sources: exactly one, with its required members.

use super::check::{Errors, between, one_of, required};
use super::container::{descending, field_selector, resource_selector};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Map, Value, names};
use std::collections::HashSet;

/// Volume sources in order, with their required members.
const SOURCES: [(&str, &[&str]); 31] = [
    ("emptyDir", &[]),
    ("hostPath", &["path"]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("quobyte", &["registry", "volume"]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("projected", &[]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("local", &["path"]),
    ("csi", &["driver"]),
    ("ephemeral", &["volumeClaimTemplate"]),
    ("image", &["reference"]),
];

/// Checks that a volume has exactly one source, and that the source is complete.
pub(super) fn source(volume: &Map, place: &FieldPath, wrong: &mut Errors) {
    let mut count = 0;
    for (kind, needed) in SOURCES {
        let Some(source) = volume.get(kind).filter(|source| !source.is_null()) else {
            continue;
        };
        count += 1;
        if count > 1 {
            let detail = "may not specify more than 1 volume type";
            wrong.push(FieldError::forbidden(place.child(kind), detail));
            continue;
        }
        let place = match kind {
            // Upstream reports this source under an old name.
            "gcePersistentDisk" => place.child("persistentDisk"),
            _ => place.child(kind),
        };
        for member in needed {
            let missing = match source.get(member) {
                Some(Value::String(text)) => text.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                other => other.is_none_or(Value::is_null),
            };
            if missing {
                let detail = match kind {
                    "quobyte" if *member == "registry" => {
                        "must be a host:port pair or multiple pairs separated by commas"
                    }
                    _ => "",
                };
                wrong.push(FieldError::required(place.child(member), detail));
            }
        }
        details(kind, source, &place, wrong);
    }
    if count == 0 {
        let detail = "must specify a volume type";
        wrong.push(FieldError::required(place.clone(), detail));
    }
}

fn details(kind: &str, source: &Value, place: &FieldPath, wrong: &mut Errors) {
    match kind {
        "emptyDir" => {
            let size = source.at(&["sizeLimit"]).and_then(super::amounts::quantity);
            if size.is_some_and(|size| size.sign() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                wrong.push(FieldError::forbidden(place.child("sizeLimit"), detail));
            }
        }
        "hostPath" => host_path(source, place, wrong),
        "gitRepo" => {
            let directory = source.text(&["directory"]);
            descending(directory, &place.child("directory"), wrong);
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let part = source.int(&["partition"]);
            between(part, (0, 255), place.child("partition"), wrong);
        }
        "secret" | "configMap" => {
            mode(source, "defaultMode", place, wrong);
            items(source, place, wrong);
        }
        "nfs" => {
            let path = source.text(&["path"]);
            if !path.starts_with('/') {
                let detail = "must be an absolute path";
                wrong.push(FieldError::invalid(place.child("path"), path, detail));
            }
        }
        "iscsi" => iscsi(source, place, wrong),
        "flocker" => flocker(source, place, wrong),
        "downwardAPI" => {
            mode(source, "defaultMode", place, wrong);
            for file in source.list(&["items"]) {
                downward(file, place, wrong);
            }
        }
        "fc" => fibre_channel(source, place, wrong),
        "flexVolume" => flex_options(source, place, wrong),
        "azureDisk" => azure_disk(source, place, wrong),
        "projected" => {
            mode(source, "defaultMode", place, wrong);
            projected(source, place, wrong);
        }
        "local" => {
            let path = source.text(&["path"]);
            if path.split('/').any(|step| step == "..") {
                let detail = "must not contain '..'";
                wrong.push(FieldError::invalid(place.child("path"), path, detail));
            }
        }
        "csi" => driver_name(source.text(&["driver"]), &place.child("driver"), wrong),
        "image" => {
            let policy = source.text(&["pullPolicy"]);
            let known = ["Always", "IfNotPresent", "Never"];
            if !policy.is_empty() {
                one_of(policy, &known, place.child("pullPolicy"), wrong);
            }
        }
        _ => {}
    }
}

/// Validates a driver name, if set.
pub(super) fn driver_name(driver: &str, place: &FieldPath, wrong: &mut Errors) {
    if driver.is_empty() {
        return;
    }
    if driver.len() > 63 {
        wrong.push(FieldError::too_long(place.clone(), 63));
    }
    for message in names::dns1123_subdomain(&driver.to_lowercase()) {
        wrong.push(FieldError::invalid(place.clone(), driver, message));
    }
}

fn host_path(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    const TYPES: [&str; 8] = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let path = source.text(&["path"]);
    if path.is_empty() {
        return;
    }
    if path.split('/').any(|step| step == "..") {
        let detail = "must not contain '..'";
        wrong.push(FieldError::invalid(place.child("path"), path, detail));
    }
    one_of(source.text(&["type"]), &TYPES, place.child("type"), wrong);
}

/// Validates a file mode.
fn mode(source: &Value, member: &str, place: &FieldPath, wrong: &mut Errors) {
    if let Some(mode) = source
        .int(&[member])
        .filter(|mode| !(0..=0o777).contains(mode))
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        wrong.push(FieldError::invalid(place.child(member), mode, detail));
    }
}

/// Validates keys and paths of files.
fn items(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    for (index, item) in source.list(&["items"]).iter().enumerate() {
        let place = place.child("items").index(index);
        required(item.text(&["key"]), place.child("key"), wrong);
        file_path(item, &place.child("path"), wrong);
        mode(item, "mode", &place, wrong);
    }
}

/// Validates a file path: relative, without `..`, and not reserved.
fn file_path(item: &Value, place: &FieldPath, wrong: &mut Errors) {
    let path = item.text(&["path"]);
    required(path, place.clone(), wrong);
    descending(path, place, wrong);
    if path.starts_with("..") && !path.starts_with("../") && path != ".." {
        let detail = "must not start with '..'";
        wrong.push(FieldError::invalid(place.clone(), path, detail));
    }
}

/// Validates a downward API file.
fn downward(file: &Value, place: &FieldPath, wrong: &mut Errors) {
    const FIELDS: [&str; 5] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.labels",
        "metadata.annotations",
        "metadata.uid",
    ];
    file_path(file, &place.child("path"), wrong);
    let given = |member| file.at(&[member]).filter(|value: &&Value| !value.is_null());
    match (given("fieldRef"), given("resourceFieldRef")) {
        (None, None) => {
            let detail = "one of fieldRef and resourceFieldRef is required";
            wrong.push(FieldError::required(place.clone(), detail));
        }
        (Some(field), other) => {
            field_selector(field, &FIELDS, &place.child("fieldRef"), wrong);
            if other.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                wrong.push(FieldError::invalid(place.clone(), "resource", detail));
            }
        }
        (None, Some(resource)) => {
            let place = place.child("resourceFieldRef");
            resource_selector(resource, true, &place, wrong);
        }
    }
    mode(file, "mode", place, wrong);
}

/// Validates projected sources; file paths must be unique.
fn projected(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    const KINDS: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
    let mut paths: HashSet<&str> = HashSet::new();
    for (index, part) in source.list(&["sources"]).iter().enumerate() {
        let at = place.child("sources").index(index);
        for kind in ["secret", "configMap"] {
            let Some(keys) = part.at(&[kind]).filter(|value| !value.is_null()) else {
                continue;
            };
            required(keys.text(&["name"]), at.child(kind).child("name"), wrong);
            items(keys, &at.child(kind), wrong);
            for item in keys.list(&["items"]) {
                let path = item.text(&["path"]);
                if !path.is_empty() && !paths.insert(path) {
                    let named = keys.text(&["name"]);
                    let detail = "conflicting duplicate paths";
                    wrong.push(FieldError::invalid(place.clone(), named, detail));
                }
            }
        }
        for file in part.list(&["downwardAPI", "items"]) {
            downward(file, &at.child("downwardAPI"), wrong);
            let path = file.text(&["path"]);
            if !path.is_empty() && !paths.insert(path) {
                let detail = "conflicting duplicate paths";
                wrong.push(FieldError::invalid(place.clone(), path, detail));
            }
        }
        if let Some(token) = part
            .at(&["serviceAccountToken"])
            .filter(|value| !value.is_null())
        {
            let seconds = token.int(&["expirationSeconds"]).unwrap_or(0);
            let at = at.child("serviceAccountToken").child("expirationSeconds");
            if seconds < 600 {
                let detail = "may not specify a duration less than 10 minutes";
                wrong.push(FieldError::invalid(at.clone(), seconds, detail));
            }
            if seconds > 1 << 32 {
                let detail = "may not specify a duration larger than 2^32 seconds";
                wrong.push(FieldError::invalid(at, seconds, detail));
            }
            // Upstream reports the path of the volume.
            file_path(token, &place.child("path"), wrong);
        }
        if KINDS.iter().filter(|kind| part.has(&[kind])).count() > 1 {
            let detail = "may not specify more than 1 volume type per source";
            wrong.push(FieldError::forbidden(at, detail));
        }
    }
}

fn iscsi(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    for (member, shown) in [("iqn", "iqn"), ("initiatorName", "initiatorname")] {
        let name = source.text(&[member]);
        if !name.is_empty() && !is_initiator(name) {
            let known = ["iqn", "eui", "naa"]
                .iter()
                .any(|start| name.starts_with(start));
            let of_pod = place.as_str().contains("volumes[");
            let detail = match of_pod && !known {
                true => "must be valid format starting with iqn, eui, or naa",
                false => "must be valid format",
            };
            wrong.push(FieldError::invalid(place.child(shown), name, detail));
        }
    }
    let unit = source.int(&["lun"]);
    between(unit, (0, 255), place.child("lun"), wrong);
    let secret = source.flag(&["chapAuthDiscovery"]) || source.flag(&["chapAuthSession"]);
    if secret && !source.has(&["secretRef"]) {
        wrong.push(FieldError::required(place.child("secretRef"), ""));
    }
}

/// Returns whether a text is an iSCSI name in one of its three formats.
fn is_initiator(name: &str) -> bool {
    let hex = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if let Some(rest) = name.strip_prefix("eui.") {
        return hex(rest, &[16]);
    }
    if let Some(rest) = name.strip_prefix("naa.") {
        return hex(rest, &[16, 32]);
    }
    // iqn.yyyy-mm.authority[:anything]
    let Some((date, rest)) = name
        .strip_prefix("iqn.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return false;
    };
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let dated = date
        .split_once('-')
        .is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    dated && !rest.is_empty() && rest.bytes().all(plain)
}

fn flocker(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    let (name, id) = (source.text(&["datasetName"]), source.text(&["datasetUUID"]));
    if name.is_empty() && id.is_empty() {
        let detail = "one of datasetName and datasetUUID is required";
        wrong.push(FieldError::required(place.clone(), detail));
    }
    if !name.is_empty() && !id.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        wrong.push(FieldError::invalid(place.clone(), "resource", detail));
    }
    if name.contains('/') {
        let place = place.child("datasetName");
        wrong.push(FieldError::invalid(place, name, "must not contain '/'"));
    }
}

fn fibre_channel(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    let targets = source.list(&["targetWWNs"]);
    let ids = source.list(&["wwids"]);
    let at = place.child("targetWWNs");
    if targets.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        wrong.push(FieldError::required(at.clone(), detail));
    }
    if !targets.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        wrong.push(FieldError::invalid(at, targets.to_vec(), detail));
    }
    if !targets.is_empty() {
        let at = place.child("lun");
        match source.int(&["lun"]) {
            None => {
                let detail = "lun is required if targetWWNs is specified";
                wrong.push(FieldError::required(at, detail));
            }
            unit => between(unit, (0, 255), at, wrong),
        }
    }
}

/// Validates that driver options are not in a Kubernetes domain.
fn flex_options(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    for key in source.members(&["options"]).into_iter().flat_map(Map::keys) {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            let place = place.child("options").key(key);
            wrong.push(FieldError::invalid(place, key, detail));
        }
    }
}

fn azure_disk(source: &Value, place: &FieldPath, wrong: &mut Errors) {
    let disk = source.text(&["diskURI"]);
    if source.has(&["cachingMode"]) {
        let mode = source.text(&["cachingMode"]);
        let known = ["None", "ReadOnly", "ReadWrite"];
        one_of(mode, &known, place.child("cachingMode"), wrong);
    }
    let kind = source.text(&["kind"]);
    if kind.is_empty() {
        return;
    }
    let known = ["Dedicated", "Managed", "Shared"];
    one_of(kind, &known, place.child("kind"), wrong);
    let (start, form) = match kind {
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        _ => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };
    if !disk.starts_with(start) {
        wrong.push(FieldError::not_supported(
            place.child("diskURI"),
            disk,
            [form],
        ));
    }
}
