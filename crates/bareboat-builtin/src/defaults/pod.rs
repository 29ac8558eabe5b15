//! Defaults of pods and pod templates.

use super::{round_resources, volume};
use crate::reach::Fill;
use bareboat_api::{Map, Str, Value, value};

/// Sets the defaults of Pod.
pub(crate) fn pod(object: &mut Value) {
    let spec = super::spec(object);
    pod_spec(spec);
    for list in ["containers", "initContainers"] {
        for container in spec.each(list) {
            requests_from_limits(container);
        }
    }
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            host_ports(spec, list);
        }
    }
    spec.fill("enableServiceLinks", true);
    addresses(object);
}

/// Repeats the first of several addresses in its own field.
fn addresses(object: &mut Value) {
    let Some(status) = object.make_object().sub("status") else {
        return;
    };
    let single = status.get_str("podIP").unwrap_or("").to_owned();
    let several = status
        .get("podIPs")
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    let same = several
        .first()
        .and_then(|address| address.get("ip"))
        .is_some_and(|first| first.as_str() == Some(&single));
    // If only the single field is set, it becomes the list.
    if !single.is_empty() && !same {
        status.insert("podIPs", value!([{"ip": single}]));
    }
    let first = status
        .get("podIPs")
        .and_then(Value::as_array)
        .and_then(|addresses| addresses.first())
        .and_then(|address| address.get("ip"))
        .cloned();
    if let Some(first) = first {
        status.insert("podIP", first);
    }
}

/// Sets the defaults of a pod template: those of a pod except the ones set at creation.
pub(crate) fn pod_template(template: &mut Map) {
    let spec = template.object_mut("spec");
    pod_spec(spec);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            host_ports(spec, list);
        }
    }
}

fn pod_spec(spec: &mut Map) {
    // `serviceAccount` is the deprecated name of `serviceAccountName`.
    let account = match spec.get_str("serviceAccountName").unwrap_or("") {
        "" => spec.get_str("serviceAccount").unwrap_or(""),
        account => account,
    }
    .to_owned();
    if !account.is_empty() {
        spec.insert("serviceAccountName", account.as_str().into());
        spec.insert("serviceAccount", account.into());
    }
    spec.fill("dnsPolicy", "ClusterFirst");
    spec.fill("restartPolicy", "Always");
    spec.fill("securityContext", Map::new());
    spec.fill("terminationGracePeriodSeconds", 30);
    spec.fill("schedulerName", "default-scheduler");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.each(list) {
            self::container(container);
        }
    }
    for volume in spec.each("volumes") {
        volume::volume(volume);
    }
    round_resources(spec.sub("overhead"));
}

fn container(container: &mut Map) {
    // Stop signals need a feature gate that is off by default.
    if let Some(lifecycle) = container.sub("lifecycle")
        && lifecycle.remove("stopSignal").is_some()
        && lifecycle.is_empty()
    {
        container.remove("lifecycle");
    }
    let image = container.get_str("image").unwrap_or("");
    let policy = pull_policy(image);
    container.fill("imagePullPolicy", policy);
    container.fill("terminationMessagePath", "/dev/termination-log");
    container.fill("terminationMessagePolicy", "File");
    for port in container.each("ports") {
        port.fill("protocol", "TCP");
    }
    for variable in container.each("env") {
        let Some(source) = variable.sub("valueFrom") else {
            continue;
        };
        if let Some(field) = source.sub("fieldRef") {
            field.fill("apiVersion", "v1");
        }
        if let Some(file) = source.sub("fileKeyRef") {
            file.fill("optional", false);
        }
        if let Some(field) = source.sub("resourceFieldRef") {
            field.fill("divisor", "0");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.sub(probe) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = container.sub("lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = lifecycle.sub(hook) {
                http_get(hook);
            }
        }
    }
    if let Some(resources) = container.sub("resources") {
        round_resources(resources.sub("limits"));
        round_resources(resources.sub("requests"));
    }
}

fn probe(probe: &mut Map) {
    probe.fill("timeoutSeconds", 1);
    probe.fill("periodSeconds", 10);
    probe.fill("successThreshold", 1);
    probe.fill("failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = probe.sub("grpc") {
        grpc.fill("service", "");
    }
}

fn http_get(handler: &mut Map) {
    if let Some(get) = handler.sub("httpGet") {
        get.fill("path", "/");
        get.fill("scheme", "HTTP");
    }
}

/// Returns `Always` for the tag `latest`, `IfNotPresent` for any other.
pub(super) fn pull_policy(image: &str) -> Str {
    if tag(image) == "latest" {
        Str::const_new("Always")
    } else {
        Str::const_new("IfNotPresent")
    }
}

/// Returns the tag of an image reference, or `latest` if it has neither tag nor digest.
fn tag(image: &str) -> &str {
    let (reference, digest) = match image.split_once('@') {
        Some((reference, _)) => (reference, true),
        None => (image, false),
    };
    let name = reference.rsplit('/').next().unwrap_or(reference);
    match name.split_once(':') {
        Some((_, tag)) => tag,
        None if digest => "",
        None => "latest",
    }
}

/// Sets missing requests of a container to its limits.
fn requests_from_limits(container: &mut Map) {
    let Some(resources) = container.sub("resources") else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = resources.object_mut("requests");
    for (name, amount) in limits {
        requests.fill(&name, amount);
    }
}

fn host_ports(spec: &mut Map, list: &str) {
    for container in spec.each(list) {
        for port in container.each("ports") {
            if let Some(number) = port.get("containerPort").cloned() {
                port.fill("hostPort", number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_fixed_tag_are_pulled_always() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("localhost:5000/nginx", "Always"),
            ("localhost:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("a/b:latest@sha256:abc", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
