//! Validates what a pod shares with its host: namespaces, DNS, ports, sysctls, operating system.

use super::super::check::{Errors, ip, name, one_of};
use super::super::container::security;
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value, names};
use std::collections::HashSet;

/// Validates all host-related fields of a pod.
pub(super) fn validate(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    dns(spec, path, wrong);
    host_names(spec, path, wrong);
    if spec.flag(&["hostNetwork"]) {
        host_ports(spec, path, wrong);
    }
    let place = path.child("securityContext");
    if let Some(context) = spec
        .at(&["securityContext"])
        .filter(|value| !value.is_null())
    {
        security::of_pod(context, &place, wrong);
        sysctls(spec, context, &place.child("sysctls"), wrong);
    }
    if spec.flag(&["shareProcessNamespace"]) && spec.flag(&["hostPID"]) {
        wrong.push(FieldError::invalid(
            place.child("shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    if spec.at(&["hostUsers"]) == Some(&Value::Bool(false)) {
        for (member, shown) in [
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ] {
            if spec.flag(&[member]) {
                let detail = "when `hostUsers` is false";
                wrong.push(FieldError::forbidden(path.child(shown), detail));
            }
        }
    }
    system(spec, path, wrong);
    host_processes(spec, path, wrong);
}

/// Validates Windows HostProcess containers: all or none of a pod's, with host network.
fn host_processes(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    const FLAG: [&str; 3] = ["securityContext", "windowsOptions", "hostProcess"];
    let flag = |owner: &Value| owner.at(&FLAG).and_then(Value::as_bool);
    let own = flag(spec);
    let (mut all, mut processes) = (0, 0);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, entry) in spec.list(&[list]).iter().enumerate() {
            all += 1;
            let stated = flag(entry);
            if let (Some(own), Some(stated)) = (own, stated)
                && own != stated
            {
                let place = FLAG
                    .iter()
                    .fold(path.child(list).index(index), |at, name| at.child(name));
                let detail = format!(
                    "pod hostProcess value must be identical if both are specified, was {own}"
                );
                wrong.push(FieldError::invalid(place, stated, detail));
            }
            processes += usize::from(stated.or(own) == Some(true));
        }
    }
    if processes == 0 {
        return;
    }
    if processes != all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        wrong.push(FieldError::invalid(path.clone(), "", detail));
    }
    if !spec.flag(&["hostNetwork"]) {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        wrong.push(FieldError::invalid(
            path.child("hostNetwork"),
            false,
            detail,
        ));
    }
}

fn dns(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    let policy = spec.text(&["dnsPolicy"]);
    one_of(policy, &POLICIES, path.child("dnsPolicy"), wrong);
    let path = path.child("dnsConfig");
    let config = spec.at(&["dnsConfig"]).filter(|value| !value.is_null());
    if policy == "None" {
        let Some(config) = config else {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return wrong.push(FieldError::required(path, detail));
        };
        if config.list(&["nameservers"]).is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return wrong.push(FieldError::required(path.child("nameservers"), detail));
        }
    }
    let Some(config) = config else {
        return;
    };
    let servers = config.list(&["nameservers"]);
    let place = path.child("nameservers");
    if servers.len() > 3 {
        let detail = "must not have more than 3 nameservers";
        wrong.push(FieldError::invalid(place.clone(), servers.to_vec(), detail));
    }
    for (index, server) in servers.iter().enumerate() {
        ip(server.as_str().unwrap_or(""), place.index(index), wrong);
    }
    let searches = config.list(&["searches"]);
    let place = path.child("searches");
    if searches.len() > 32 {
        let detail = "must not have more than 32 search paths";
        wrong.push(FieldError::invalid(
            place.clone(),
            searches.to_vec(),
            detail,
        ));
    }
    let length: usize = searches
        .iter()
        .filter_map(Value::as_str)
        .map(|text| text.len() + 1)
        .sum();
    if length > 2049 {
        let detail =
            "must not have more than 2048 characters (including spaces) in the search list";
        wrong.push(FieldError::invalid(
            place.clone(),
            searches.to_vec(),
            detail,
        ));
    }
    for (index, search) in searches.iter().enumerate() {
        let search = search.as_str().unwrap_or("");
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            name(search, search_path, place.index(index), wrong);
        }
    }
    for (index, option) in config.list(&["options"]).iter().enumerate() {
        if option.text(&["name"]).is_empty() {
            let place = path.child("options").index(index);
            wrong.push(FieldError::required(place, "must not be empty"));
        }
    }
}

/// Validates a DNS search path. Underscores are allowed, as in service records.
fn search_path(text: &str) -> Vec<String> {
    if text.len() > 253 {
        return vec!["must be no more than 253 bytes".to_owned()];
    }
    let label = |label: &str| {
        let inner = label.strip_prefix('_').unwrap_or(label);
        let outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = inner.as_bytes();
        bytes.first().copied().is_some_and(outer)
            && bytes.last().copied().is_some_and(outer)
            && bytes
                .iter()
                .all(|byte| outer(*byte) || b"-_".contains(byte))
    };
    if text.split('.').all(label) {
        return Vec::new();
    }
    vec![names::with_regex(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
        r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
        &["example.com"],
    )]
}

fn host_names(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    for member in ["hostname", "subdomain"] {
        let text = spec.text(&[member]);
        if !text.is_empty() {
            name(text, names::dns1123_label, path.child(member), wrong);
        }
    }
    if let Some(text) = spec.at(&["hostnameOverride"]).and_then(Value::as_str) {
        let path = path.child("hostnameOverride");
        for member in ["setHostnameAsFQDN", "hostNetwork"] {
            if spec.flag(&[member]) {
                let detail = format!("may not be specified when {member} is true");
                wrong.push(FieldError::forbidden(path.clone(), detail));
            }
        }
        if text.len() > 64 {
            wrong.push(FieldError::too_long(path.clone(), 64));
        }
        name(text, names::dns1123_subdomain, path, wrong);
    }
    for (index, alias) in spec.list(&["hostAliases"]).iter().enumerate() {
        let path = path.child("hostAliases").index(index);
        ip(alias.text(&["ip"]), path.child("ip"), wrong);
        for (index, host) in alias.list(&["hostnames"]).iter().enumerate() {
            let place = path.child("hostnames").index(index);
            name(
                host.as_str().unwrap_or(""),
                names::dns1123_subdomain,
                place,
                wrong,
            );
        }
    }
}

/// Validates that host and container ports are equal with host network.
fn host_ports(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    for (index, container) in spec.list(&["containers"]).iter().enumerate() {
        let path = path.child("containers").index(index).child("ports");
        for (index, port) in container.list(&["ports"]).iter().enumerate() {
            let host = port.int(&["hostPort"]).unwrap_or(0);
            if host != 0 && Some(host) != port.int(&["containerPort"]) {
                wrong.push(FieldError::invalid(
                    path.index(index).child("hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        }
    }
}

/// Validates sysctls.
fn sysctls(spec: &Value, context: &Value, path: &FieldPath, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, entry) in context.list(&["sysctls"]).iter().enumerate() {
        let path = path.index(index).child("name");
        let text = entry.text(&["name"]);
        if text.is_empty() {
            wrong.push(FieldError::required(path, ""));
            continue;
        }
        if !is_sysctl(text) {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            wrong.push(FieldError::invalid(path, text, detail));
            continue;
        }
        let plain = text.replace('/', ".");
        for (member, prefixes) in [
            ("hostNetwork", &["net."][..]),
            (
                "hostIPC",
                &["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."][..],
            ),
        ] {
            let shared = prefixes.iter().any(|prefix| plain.starts_with(prefix));
            if spec.flag(&[member]) && shared {
                let detail = format!("may not be specified when '{member}' is true");
                wrong.push(FieldError::invalid(path.clone(), text, detail));
            }
        }
        if !seen.insert(text) {
            wrong.push(FieldError::duplicate(path, text));
        }
    }
}

fn is_sysctl(text: &str) -> bool {
    let outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().copied().is_some_and(outer)
            && bytes.last().copied().is_some_and(outer)
            && bytes
                .iter()
                .all(|byte| outer(*byte) || b"-_".contains(byte))
    };
    text.len() <= 253 && text.split(['.', '/']).all(part)
}

/// Validates fields against the operating system, if set.
fn system(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    let Some(os) = spec.at(&["os"]).filter(|value| !value.is_null()) else {
        return;
    };
    let forbid = |place: FieldPath, detail: &str, wrong: &mut Errors| {
        wrong.push(FieldError::forbidden(place, detail));
    };
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| {
            let entries = spec.list(&[list]).iter().enumerate();
            entries.map(move |(index, entry)| (path.child(list).index(index), entry))
        });
    match os.text(&["name"]) {
        "" => wrong.push(FieldError::required(path.child("os").child("name"), "")),
        "linux" => {
            let detail = "windows options cannot be set for a linux pod";
            let whole = [(path.clone(), spec)];
            for (place, entry) in whole.into_iter().chain(containers) {
                if entry.has(&["securityContext", "windowsOptions"]) {
                    let place = place.child("securityContext").child("windowsOptions");
                    forbid(place, detail, wrong);
                }
            }
        }
        "windows" => {
            const OF_PODS: [&str; 9] = [
                "appArmorProfile",
                "seLinuxOptions",
                "seccompProfile",
                "fsGroup",
                "fsGroupChangePolicy",
                "sysctls",
                "runAsUser",
                "runAsGroup",
                "supplementalGroups",
            ];
            const OF_CONTAINERS: [&str; 10] = [
                "appArmorProfile",
                "seLinuxOptions",
                "seccompProfile",
                "capabilities",
                "readOnlyRootFilesystem",
                "privileged",
                "allowPrivilegeEscalation",
                "procMount",
                "runAsUser",
                "runAsGroup",
            ];
            let detail = "cannot be set for a windows pod";
            for member in ["hostPID", "hostIPC", "shareProcessNamespace"] {
                if spec.flag(&[member]) {
                    forbid(path.child(member), detail, wrong);
                }
            }
            let context = path.child("securityContext");
            for member in OF_PODS {
                if spec.has(&["securityContext", member]) {
                    forbid(context.child(member), detail, wrong);
                }
            }
            for (place, entry) in containers {
                for member in OF_CONTAINERS {
                    if entry.has(&["securityContext", member]) {
                        let place = place.child("securityContext").child(member);
                        forbid(place, detail, wrong);
                    }
                }
            }
        }
        other => one_of(other, &["linux", "windows"], path.child("os"), wrong),
    }
}
