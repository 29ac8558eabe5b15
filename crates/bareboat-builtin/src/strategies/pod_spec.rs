//! What the spec of a pod or of a pod template may look like.

use super::check::{
    Errors, amount, between, ip, name, one_of, required, required_label, required_one_of,
};
use super::container::{self, Role, Surroundings};
use crate::reach::Reach;
use bareboat_api::metadata::{validate_annotations, validate_labels};
use bareboat_api::{FieldError, FieldPath, Value, names};
use std::collections::HashSet;

/// Checks the spec of a pod.
pub(super) fn validate(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    let volumes = volumes(spec, &path.child("volumes"), wrong);
    let around = Surroundings { volumes };
    containers(spec, &around, path, wrong);
    required_one_of(
        spec.text(&["restartPolicy"]),
        &["Always", "OnFailure", "Never"],
        path.child("restartPolicy"),
        wrong,
    );
    one_of(
        spec.text(&["dnsPolicy"]),
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
        path.child("dnsPolicy"),
        wrong,
    );
    validate_labels(
        spec.at(&["nodeSelector"]),
        &path.child("nodeSelector"),
        wrong.list(),
    );
    for member in [
        "serviceAccountName",
        "nodeName",
        "priorityClassName",
        "runtimeClassName",
    ] {
        let text = spec.text(&[member]);
        if !text.is_empty() {
            name(text, names::dns1123_subdomain, path.child(member), wrong);
        }
    }
    for member in ["hostname", "subdomain"] {
        let text = spec.text(&[member]);
        if !text.is_empty() {
            name(text, names::dns1123_label, path.child(member), wrong);
        }
    }
    between(
        spec.int(&["activeDeadlineSeconds"]),
        (1, i64::from(i32::MAX)),
        path.child("activeDeadlineSeconds"),
        wrong,
    );
    for (index, secret) in spec.list(&["imagePullSecrets"]).iter().enumerate() {
        let path = path.child("imagePullSecrets").index(index).child("name");
        required(secret.text(&["name"]), path, wrong);
    }
    for (index, alias) in spec.list(&["hostAliases"]).iter().enumerate() {
        let path = path.child("hostAliases").index(index);
        ip(alias.text(&["ip"]), path.child("ip"), wrong);
        for host in alias.list(&["hostnames"]).iter().filter_map(Value::as_str) {
            name(
                host,
                names::dns1123_subdomain,
                path.child("hostnames"),
                wrong,
            );
        }
    }
    tolerations(spec, &path.child("tolerations"), wrong);
    spread(spec, &path.child("topologySpreadConstraints"), wrong);
    for (resource, value) in spec
        .members(&["overhead"])
        .into_iter()
        .flat_map(|map| map.iter())
    {
        amount(value, path.child("overhead").key(resource), wrong);
    }
    let preemption = spec.text(&["preemptionPolicy"]);
    if !preemption.is_empty() {
        one_of(
            preemption,
            &["Never", "PreemptLowerPriority"],
            path.child("preemptionPolicy"),
            wrong,
        );
    }
}

/// Checks a pod template: labels, annotations and spec.
pub(super) fn validate_template(template: &Value, path: &FieldPath, wrong: &mut Errors) {
    // Upstream names these as if they were no part of the metadata.
    validate_labels(
        template.at(&["metadata", "labels"]),
        &path.child("labels"),
        wrong.list(),
    );
    validate_annotations(
        template.at(&["metadata", "annotations"]),
        &path.child("annotations"),
        wrong.list(),
    );
    let empty = Value::object();
    let spec = template.at(&["spec"]).unwrap_or(&empty);
    validate(spec, &path.child("spec"), wrong);
    if !spec.list(&["ephemeralContainers"]).is_empty() {
        wrong.push(FieldError::forbidden(
            path.child("spec").child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

fn containers(spec: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
    let main = spec.list(&["containers"]);
    if main.is_empty() {
        wrong.push(FieldError::required(path.child("containers"), ""));
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (list, role) in [
        ("containers", Role::Main),
        ("initContainers", Role::Init),
        ("ephemeralContainers", Role::Ephemeral),
    ] {
        for (index, entry) in spec.list(&[list]).iter().enumerate() {
            let path = path.child(list).index(index);
            container::container(entry, role, around, &path, wrong);
            let text = entry.text(&["name"]);
            if seen.contains(&text) {
                wrong.push(FieldError::duplicate(path.child("name"), text));
            } else if !text.is_empty() {
                seen.insert(text);
            }
        }
    }
}

/// Checks volumes and gives the names of the good ones.
fn volumes<'a>(spec: &'a Value, path: &FieldPath, wrong: &mut Errors) -> HashSet<&'a str> {
    let mut good: HashSet<&str> = HashSet::new();
    for (index, volume) in spec.list(&["volumes"]).iter().enumerate() {
        let path = path.index(index);
        let mut found = Errors::default();
        let sources = volume
            .as_object()
            .into_iter()
            .flat_map(|map| map.iter())
            .filter(|(member, source)| *member != "name" && !source.is_null());
        let mut count = 0;
        for (member, source) in sources {
            count += 1;
            let path = path.child(member);
            if count > 1 {
                found.push(FieldError::forbidden(
                    path,
                    "may not specify more than 1 volume type",
                ));
                continue;
            }
            let needed = match member {
                "secret" => Some("secretName"),
                "configMap" => Some("name"),
                "persistentVolumeClaim" => Some("claimName"),
                "hostPath" => Some("path"),
                "nfs" => Some("server"),
                "csi" => Some("driver"),
                _ => None,
            };
            if let Some(key) = needed {
                required(source.text(&[key]), path.child(key), &mut found);
            }
        }
        if count == 0 {
            found.push(FieldError::required(
                path.clone(),
                "must specify a volume type",
            ));
        }
        let text = volume.text(&["name"]);
        required_label(text, path.child("name"), &mut found);
        if good.contains(&text) {
            found.push(FieldError::duplicate(path.child("name"), text));
        }
        if found.is_empty() {
            good.insert(text);
        }
        wrong.extend(found.into_list());
    }
    good
}

fn tolerations(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    for (index, toleration) in spec.list(&["tolerations"]).iter().enumerate() {
        let path = path.index(index);
        let key = toleration.text(&["key"]);
        let operator = toleration.text(&["operator"]);
        let value = toleration.text(&["value"]);
        if key.is_empty() {
            if operator != "Exists" {
                wrong.push(FieldError::invalid(
                    path.child("operator"),
                    operator,
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                ));
            }
        } else {
            name(key, names::qualified_name, path.child("key"), wrong);
        }
        if toleration.has(&["tolerationSeconds"]) && toleration.text(&["effect"]) != "NoExecute" {
            wrong.push(FieldError::invalid(
                path.child("effect"),
                toleration.text(&["effect"]),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        match operator {
            "Equal" | "" => name(value, names::label_value, path.child("operator"), wrong),
            "Exists" => {
                if !value.is_empty() {
                    wrong.push(FieldError::invalid(
                        path.child("operator"),
                        toleration.clone(),
                        "value must be empty when `operator` is 'Exists'",
                    ));
                }
            }
            other => one_of(other, &["Equal", "Exists"], path.child("operator"), wrong),
        }
        let effect = toleration.text(&["effect"]);
        if !effect.is_empty() {
            one_of(
                effect,
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
                path.child("effect"),
                wrong,
            );
        }
    }
}

fn spread(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    for (index, constraint) in spec.list(&["topologySpreadConstraints"]).iter().enumerate() {
        let path = path.index(index);
        let skew = constraint.int(&["maxSkew"]).unwrap_or(0);
        if skew <= 0 {
            wrong.push(FieldError::invalid(
                path.child("maxSkew"),
                skew,
                "must be greater than zero",
            ));
        }
        if constraint.text(&["topologyKey"]).is_empty() {
            wrong.push(FieldError::required(
                path.child("topologyKey"),
                "can not be empty",
            ));
        }
        one_of(
            constraint.text(&["whenUnsatisfiable"]),
            &["DoNotSchedule", "ScheduleAnyway"],
            path.child("whenUnsatisfiable"),
            wrong,
        );
    }
}
