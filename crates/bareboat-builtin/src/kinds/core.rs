//! The core group.

use super::build::{cluster, namespaced};
use super::events::EVENT_TTL;
use crate::strategies::{self, NamespaceStrategy};
use crate::{actions, columns, defaults};
use bareboat_api::Kind;
use bareboat_api::Str;
use bareboat_api::kind::{Fields, NameRule, SelectableField, Verb, Verbs};
use std::sync::Arc;

const GROUP: &str = "";

const CONNECT: [Verb; 2] = [Verb::Create, Verb::Get];
const PROXY: [Verb; 5] = [
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];
const PART: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = settings();
    kinds.extend(workloads());
    kinds.extend(network());
    kinds.extend(storage());
    kinds
}

fn settings() -> Vec<Kind> {
    vec![
        cluster(GROUP, "namespaces", "Namespace")
            .version("v1", defaults::namespace)
            .short(&["ns"])
            .verbs(Verbs::ALL.without(&[Verb::DeleteCollection]))
            .part("finalize", &[Verb::Update])
            .status()
            .resets(&[Fields {
                subresource: "finalize",
                paths: &[&["status"]],
            }])
            .columns(columns::namespaces())
            .selectable(&["status.phase"])
            .names_are(NameRule::Label)
            .delete_returns_object()
            .with(|kind| kind.policy.is_namespace = true)
            .strategy(NamespaceStrategy)
            .done(),
        namespaced(GROUP, "configmaps", "ConfigMap")
            .version("v1", defaults::none)
            .short(&["cm"])
            .columns(columns::config_maps())
            .rules(strategies::config_map())
            .done(),
        namespaced(GROUP, "secrets", "Secret")
            .version("v1", defaults::secret)
            .columns(columns::secrets())
            .selectable(&["type"])
            .rules(strategies::secret())
            .done(),
        namespaced(GROUP, "serviceaccounts", "ServiceAccount")
            .version("v1", defaults::none)
            .short(&["sa"])
            .action_of_others("token", ("authentication.k8s.io", "v1", "TokenRequest"))
            .columns(columns::only_age())
            .delete_returns_object()
            .rules(strategies::service_account())
            .done(),
        namespaced(GROUP, "resourcequotas", "ResourceQuota")
            .version("v1", defaults::resource_quota)
            .short(&["quota"])
            .status()
            .columns(columns::resource_quotas())
            .delete_returns_object()
            .rules(strategies::resource_quota())
            .done(),
        namespaced(GROUP, "limitranges", "LimitRange")
            .version("v1", defaults::limit_range)
            .short(&["limits"])
            .create_on_update()
            .rules(strategies::limit_range())
            .done(),
        event(),
        cluster(GROUP, "componentstatuses", "ComponentStatus")
            .version("v1", defaults::none)
            .short(&["cs"])
            .verbs(Verbs::of(&[Verb::Get, Verb::List]))
            .columns(columns::component_statuses())
            .deprecated("v1 ComponentStatus is deprecated in v1.19+")
            .done(),
    ]
}

fn event() -> Kind {
    let build = namespaced(GROUP, "events", "Event")
        .version("v1", defaults::none)
        // Old event recorders used invalid names; `events.k8s.io` is strict.
        .names_are(NameRule::PathSegment)
        .short(&["ev"])
        .columns(columns::events())
        .selectable(&[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
        ])
        .selectable_by(SelectableField::computed("source", |event| {
            let component = event.at(&["source", "component"]);
            let reporting = event.at(&["reportingComponent"]);
            component
                .or(reporting)
                .and_then(|value| value.as_str())
                .map_or_else(Str::default, Str::new)
        }));
    build
        .create_on_update()
        .ttl(EVENT_TTL)
        .names_are(NameRule::Subdomain)
        .rules(strategies::core_event())
        .done()
}

fn workloads() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "pods", "Pod")
            .version("v1", defaults::pod)
            .short(&["po"])
            .categories(&["all"])
            .connect("attach", &CONNECT, "PodAttachOptions")
            .action("binding", (GROUP, "v1", "Binding"), actions::Binding::new())
            .part("ephemeralcontainers", &PART)
            .action(
                "eviction",
                ("policy", "v1", "Eviction"),
                actions::Eviction::new(),
            )
            .connect("exec", &CONNECT, "PodExecOptions")
            .connect("log", &[Verb::Get], "Pod")
            .connect("portforward", &CONNECT, "PodPortForwardOptions")
            .connect("proxy", &PROXY, "PodProxyOptions")
            .part("resize", &PART)
            .status()
            .resets(&[Fields {
                subresource: "status",
                paths: &[
                    &["metadata", "deletionTimestamp"],
                    &["metadata", "ownerReferences"],
                ],
            }])
            .touches(&[
                Fields {
                    subresource: "ephemeralcontainers",
                    paths: &[&["spec", "ephemeralContainers"]],
                },
                Fields {
                    subresource: "resize",
                    paths: &[&["spec", "containers"], &["spec", "initContainers"]],
                },
            ])
            .columns(columns::pods())
            .row_conditions(columns::pod_is_done)
            .selectable(&[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ])
            .selectable_by(SelectableField::computed("spec.hostNetwork", |pod| {
                let host = pod
                    .at(&["spec", "hostNetwork"])
                    .and_then(|flag| flag.as_bool());
                Str::const_new(if host == Some(true) { "true" } else { "false" })
            }))
            .selectable_by(SelectableField::computed("status.podIPs", |pod| {
                let ips = pod.at(&["status", "podIPs"]).and_then(|ips| ips.as_array());
                let found: Vec<&str> = ips
                    .unwrap_or(&[])
                    .iter()
                    .filter_map(|ip| ip.get("ip")?.as_str())
                    .collect();
                Str::new(found.join(","))
            }))
            .generation()
            .graceful()
            .delete_returns_object()
            .rules(strategies::pod())
            .done(),
        namespaced(GROUP, "podtemplates", "PodTemplate")
            .version("v1", defaults::pod_template_kind)
            .columns(columns::pod_templates())
            .generation()
            .delete_returns_object()
            .rules(strategies::pod_template())
            .done(),
        namespaced(GROUP, "replicationcontrollers", "ReplicationController")
            .version("v1", defaults::replication_controller)
            .short(&["rc"])
            .categories(&["all"])
            .scale(".spec.selector")
            .status()
            .columns(columns::replication_controllers())
            .selectable(&["status.replicas"])
            .generation()
            .orphan_by_default()
            .rules(strategies::replication_controller())
            .done(),
        cluster(GROUP, "nodes", "Node")
            .version("v1", defaults::node)
            .short(&["no"])
            .connect("proxy", &PROXY, "NodeProxyOptions")
            .status()
            .columns(columns::nodes())
            .selectable_by(SelectableField::computed("spec.unschedulable", |node| {
                let flag = node
                    .at(&["spec", "unschedulable"])
                    .and_then(|flag| flag.as_bool());
                Str::const_new(if flag == Some(true) { "true" } else { "false" })
            }))
            .strategy(strategies::node())
            .status_on_create()
            .done(),
        namespaced(GROUP, "bindings", "Binding")
            .version("v1", defaults::none)
            .create_only()
            .with(|kind| kind.action = Some(Arc::new(actions::Binding::new())))
            .done(),
    ]
}

fn network() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "services", "Service")
            .version("v1", defaults::service)
            .short(&["svc"])
            .categories(&["all"])
            .connect("proxy", &PROXY, "ServiceProxyOptions")
            .status()
            .columns(columns::services())
            .selectable(&["spec.clusterIP", "spec.type"])
            .names_are(NameRule::Label)
            .create_on_update()
            .delete_returns_object()
            .rules(strategies::service())
            .done(),
        namespaced(GROUP, "endpoints", "Endpoints")
            .version("v1", defaults::endpoints)
            .singular("endpoints")
            .short(&["ep"])
            .columns(columns::endpoints())
            .create_on_update()
            .rules(strategies::endpoints())
            .with(|kind| {
                kind.names.list_kind = Str::const_new("EndpointsList");
            })
            .deprecated(
                "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            )
            .done(),
    ]
}

fn storage() -> Vec<Kind> {
    vec![
        cluster(GROUP, "persistentvolumes", "PersistentVolume")
            .version("v1", defaults::persistent_volume)
            .short(&["pv"])
            .status()
            .columns(columns::persistent_volumes())
            .delete_returns_object()
            .rules(strategies::persistent_volume())
            .done(),
        namespaced(GROUP, "persistentvolumeclaims", "PersistentVolumeClaim")
            .version("v1", defaults::persistent_volume_claim)
            .short(&["pvc"])
            .status()
            .columns(columns::persistent_volume_claims())
            .delete_returns_object()
            .rules(strategies::persistent_volume_claim())
            .done(),
    ]
}
