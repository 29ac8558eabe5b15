//! What pods share with their host: namespaces, ports, probes of other hosts, kernel settings, Windows processes.

use super::super::pod::{Failure, Pod, Setters, containers, plural, quoted, unless_empty};
use crate::reach::Reach as _;
use bareboat_api::Value;
use std::collections::BTreeSet;

/// The network, processes and IPC of the host are its own.
pub(crate) fn namespaces(pod: &Pod<'_>) -> Option<Failure> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared: Vec<String> = shared
        .iter()
        .filter(|member| pod.flag(member))
        .map(|member| format!("{member}=true"))
        .collect();
    (!shared.is_empty()).then(|| Failure {
        reason: "host namespaces",
        detail: shared.join(", "),
    })
}

/// No ports of the host.
pub(crate) fn ports(pod: &Pod<'_>) -> Option<Failure> {
    let (mut bad, mut forbidden) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let ports = container.0.list(&["ports"]).iter();
        let ports = ports.filter_map(|port| port.int(&["hostPort"]));
        let of_host: Vec<i64> = ports.filter(|port| *port != 0).collect();
        if !of_host.is_empty() {
            bad.push(container.name());
            forbidden.extend(of_host.iter().map(i64::to_string));
        }
    }
    unless_empty(&bad, "hostPort", || {
        let listed: Vec<&str> = forbidden.iter().map(String::as_str).collect();
        format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", forbidden.len()),
            listed.join(", ")
        )
    })
}

/// Probes and lifecycle handlers may not name another host: the kubelet would call it.
pub(crate) fn probes(pod: &Pod<'_>) -> Option<Failure> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        for handler in HANDLERS.iter().filter_map(|path| container.0.at(path)) {
            for action in ["httpGet", "tcpSocket"] {
                let host = handler.text(&[action, "host"]);
                if !host.is_empty() {
                    bad.insert(container.name());
                    hosts.insert(host);
                }
            }
        }
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    unless_empty(&bad, "probe or lifecycle host", || {
        format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural(
                "probe or lifecycle host",
                "probe or lifecycle hosts",
                hosts.len()
            ),
            quoted(hosts)
        )
    })
}

/// The safe sysctls, in the order in which versions added them.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

fn sysctls_beside(pod: &Pod<'_>, allowed: &[&str]) -> Option<Failure> {
    let set = pod.security(&["sysctls"]).and_then(Value::as_array);
    let names = set.unwrap_or(&[]).iter().map(|one| one.text(&["name"]));
    let forbidden: Vec<&str> = names.filter(|name| !allowed.contains(name)).collect();
    unless_empty(&forbidden, "forbidden sysctls", || forbidden.join(", "))
}

/// Only safe sysctls.
pub(crate) fn sysctls(pod: &Pod<'_>) -> Option<Failure> {
    sysctls_beside(pod, &SYSCTLS[..5])
}

/// With reserved ports.
pub(crate) fn sysctls_1_27(pod: &Pod<'_>) -> Option<Failure> {
    sysctls_beside(pod, &SYSCTLS[..6])
}

/// With the times of TCP.
pub(crate) fn sysctls_1_29(pod: &Pod<'_>) -> Option<Failure> {
    sysctls_beside(pod, &SYSCTLS[..10])
}

/// With the buffers of TCP.
pub(crate) fn sysctls_1_32(pod: &Pod<'_>) -> Option<Failure> {
    sysctls_beside(pod, &SYSCTLS)
}

/// No processes of the host on Windows.
pub(crate) fn windows_process(pod: &Pod<'_>) -> Option<Failure> {
    let path = ["windowsOptions", "hostProcess"];
    let is_set = |value: Option<&Value>| value.and_then(Value::as_bool) == Some(true);
    let bad = pod.containers().filter(|one| is_set(one.security(&path)));
    let setters = Setters {
        pod: is_set(pod.security(&path)),
        containers: bad.map(|container| container.name()).collect(),
        ..Setters::default()
    };
    setters.words().map(|who| Failure {
        reason: "hostProcess",
        detail: format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    })
}
