//! Columns of workloads: desired and actual replicas.

use super::{
    NONE, boolean, condition_is_true, containers, integer, labels_text, number, or, selector_text,
    since, text, with_more,
};
use crate::reach::Reach;
use bareboat_api::Value;
use bareboat_api::kind::{Column, Now};
use bareboat_api::time::{Timestamp, human_duration};

const TEMPLATE: &[&str] = &["spec", "template", "spec", "containers"];

fn selector() -> Column {
    Column::string("Selector", |object, _| {
        selector_text(object.at(&["spec", "selector"]))
    })
}

/// Returns the given columns plus wide columns for containers and images.
fn wide(
    mut columns: Vec<Column>,
    path: &'static [&'static str],
    more: Option<Column>,
) -> Vec<Column> {
    columns.extend(containers(path).into_iter().chain(more).map(Column::wide));
    columns
}

fn ready_of_desired() -> Column {
    Column::string("Ready", |object, _| {
        let ready = object.int(&["status", "readyReplicas"]).unwrap_or(0);
        let desired = object.int(&["spec", "replicas"]).unwrap_or(0);
        format!("{ready}/{desired}").into()
    })
}

/// Returns the table columns of Deployment.
pub(crate) fn deployments() -> Vec<Column> {
    let columns = vec![
        ready_of_desired(),
        number("Up-to-date", &["status", "updatedReplicas"]),
        number("Available", &["status", "availableReplicas"]),
        Column::age(),
    ];
    wide(columns, TEMPLATE, Some(selector()))
}

fn desired_current_ready() -> Vec<Column> {
    vec![
        integer("Desired", &["spec", "replicas"]),
        integer("Current", &["status", "replicas"]),
        integer("Ready", &["status", "readyReplicas"]),
        Column::age(),
    ]
}

/// Returns the table columns of ReplicaSet.
pub(crate) fn replica_sets() -> Vec<Column> {
    wide(desired_current_ready(), TEMPLATE, Some(selector()))
}

/// Returns the table columns of ReplicationController, whose selector is a plain map.
pub(crate) fn replication_controllers() -> Vec<Column> {
    let selector = Column::string("Selector", |object, _| {
        labels_text(object.members(&["spec", "selector"]))
    });
    wide(desired_current_ready(), TEMPLATE, Some(selector))
}

/// Returns the table columns of StatefulSet.
pub(crate) fn stateful_sets() -> Vec<Column> {
    wide(vec![ready_of_desired(), Column::age()], TEMPLATE, None)
}

/// Returns the table columns of DaemonSet.
pub(crate) fn daemon_sets() -> Vec<Column> {
    let columns = vec![
        integer("Desired", &["status", "desiredNumberScheduled"]),
        integer("Current", &["status", "currentNumberScheduled"]),
        integer("Ready", &["status", "numberReady"]),
        integer("Up-to-date", &["status", "updatedNumberScheduled"]),
        integer("Available", &["status", "numberAvailable"]),
        Column::string("Node Selector", |object, _| {
            labels_text(object.members(&["spec", "template", "spec", "nodeSelector"]))
        }),
        Column::age(),
    ];
    wide(columns, TEMPLATE, Some(selector()))
}

/// Returns the table columns of ControllerRevision.
pub(crate) fn controller_revisions() -> Vec<Column> {
    vec![
        Column::string("Controller", |object, _| controller(object)),
        number("Revision", &["revision"]),
        Column::age(),
    ]
}

fn controller(object: &Value) -> Value {
    let owners = object.list(&["metadata", "ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner.flag(&["controller"])) else {
        return NONE.into();
    };
    let kind = owner.text(&["kind"]).to_lowercase();
    let name = owner.text(&["name"]);
    match owner.text(&["apiVersion"]).split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}").into(),
        None => format!("{kind}/{name}").into(),
    }
}

/// Returns the table columns of PodTemplate.
pub(crate) fn pod_templates() -> Vec<Column> {
    let mut columns = Vec::from(containers(&["template", "spec", "containers"]));
    columns.push(Column::string("Pod Labels", |object, _| {
        labels_text(object.members(&["template", "metadata", "labels"]))
    }));
    columns
}

/// Returns the table columns of Job.
pub(crate) fn jobs() -> Vec<Column> {
    let columns = vec![
        Column::string("Status", |job, _| job_status(job).into()),
        Column::string("Completions", |job, _| completions(job)),
        Column::string("Duration", job_duration),
        Column::age(),
    ];
    wide(columns, TEMPLATE, Some(selector()))
}

fn job_status(job: &Value) -> &'static str {
    if condition_is_true(job, "Complete") {
        return "Complete";
    }
    if condition_is_true(job, "Failed") {
        return "Failed";
    }
    if job.has(&["metadata", "deletionTimestamp"]) {
        return "Terminating";
    }
    ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
        .into_iter()
        .find(|ty| condition_is_true(job, ty))
        .unwrap_or("Running")
}

fn completions(job: &Value) -> Value {
    let succeeded = job.int(&["status", "succeeded"]).unwrap_or(0);
    match (
        job.int(&["spec", "completions"]),
        job.int(&["spec", "parallelism"]),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}").into(),
        (None, Some(parallel)) if parallel > 1 => format!("{succeeded}/1 of {parallel}").into(),
        _ => format!("{succeeded}/1").into(),
    }
}

fn job_duration(job: &Value, now: Now) -> Value {
    let Ok(start) = Timestamp::parse(job.text(&["status", "startTime"])) else {
        return "".into();
    };
    let end = Timestamp::parse(job.text(&["status", "completionTime"]));
    let end = end.map_or(now.0, |end| end.seconds);
    human_duration(end.saturating_sub(start.seconds)).into()
}

/// Returns the table columns of CronJob.
pub(crate) fn cron_jobs() -> Vec<Column> {
    let columns = vec![
        text("Schedule", &["spec", "schedule"]),
        super::text_or("Timezone", &["spec", "timeZone"], NONE),
        Column::string("Suspend", |job, _| match job.at(&["spec", "suspend"]) {
            Some(Value::Bool(true)) => "True".into(),
            Some(Value::Bool(false)) => "False".into(),
            _ => super::UNSET.into(),
        })
        .typed("boolean"),
        super::count("Active", &["status", "active"]).typed("integer"),
        Column::string("Last Schedule", |job, now| {
            match job.text(&["status", "lastScheduleTime"]) {
                "" => NONE.into(),
                stamp => since(stamp, now).into(),
            }
        }),
        Column::age(),
    ];
    let selector = Column::string("Selector", |job, _| {
        selector_text(job.at(&["spec", "jobTemplate", "spec", "selector"]))
    });
    const PATH: &[&str] = &[
        "spec",
        "jobTemplate",
        "spec",
        "template",
        "spec",
        "containers",
    ];
    wide(columns, PATH, Some(selector))
}

/// Returns the table columns of HorizontalPodAutoscaler, of both versions.
pub(crate) fn autoscalers() -> Vec<Column> {
    vec![
        Column::string("Reference", |hpa, _| {
            let target = |member| hpa.text(&["spec", "scaleTargetRef", member]);
            format!("{}/{}", target("kind"), target("name")).into()
        }),
        Column::string("Targets", |hpa, _| targets(hpa)),
        Column::string("MinPods", |hpa, _| {
            match hpa.int(&["spec", "minReplicas"]) {
                Some(minimum) => minimum.to_string().into(),
                None => super::UNSET.into(),
            }
        }),
        number("MaxPods", &["spec", "maxReplicas"]),
        number("Replicas", &["status", "currentReplicas"]),
        Column::age(),
    ]
}

fn targets(hpa: &Value) -> Value {
    if let Some(target) = hpa.int(&["spec", "targetCPUUtilizationPercentage"]) {
        let current = match hpa.int(&["status", "currentCPUUtilizationPercentage"]) {
            Some(current) => format!("{current}%"),
            None => super::UNKNOWN.to_owned(),
        };
        return format!("cpu: {current}/{target}%").into();
    }
    let statuses = hpa.list(&["status", "currentMetrics"]);
    let metrics: Vec<String> = hpa
        .list(&["spec", "metrics"])
        .iter()
        .enumerate()
        .map(|(index, metric)| metric_text(metric, statuses.get(index)))
        .collect();
    if metrics.is_empty() {
        return NONE.into();
    }
    with_more(&metrics, 2, ", ")
}

fn metric_text(metric: &Value, status: Option<&Value>) -> String {
    let (member, named) = match metric.text(&["type"]) {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let target = |of: &str| metric.text(&[member, "target", of]).to_owned();
    let current = |of: &str| status.map_or("", |status| status.text(&[member, "current", of]));
    let known = |text: &str| or(text, super::UNKNOWN).as_str().unwrap_or("").to_owned();
    let percent = |number: Option<i64>, otherwise: &str| {
        number.map_or(otherwise.to_owned(), |number| format!("{number}%"))
    };
    if named {
        let name = metric.text(&[member, "name"]);
        if metric.has(&[member, "target", "averageValue"]) {
            return format!(
                "{name}: {}/{}",
                known(current("averageValue")),
                target("averageValue")
            );
        }
        let now = status.and_then(|status| status.int(&[member, "current", "averageUtilization"]));
        let wanted = metric.int(&[member, "target", "averageUtilization"]);
        return format!(
            "{name}: {}/{}",
            percent(now, super::UNKNOWN),
            percent(wanted, "<auto>")
        );
    }
    if member == "pods" {
        return format!(
            "{}/{}",
            known(current("averageValue")),
            target("averageValue")
        );
    }
    if metric.has(&[member, "target", "averageValue"]) {
        return format!(
            "{}/{} (avg)",
            known(current("averageValue")),
            target("averageValue")
        );
    }
    format!("{}/{}", known(current("value")), target("value"))
}

/// Returns the table columns of PodDisruptionBudget.
pub(crate) fn disruption_budgets() -> Vec<Column> {
    let amount = |name: &str, member: &'static str| {
        Column::string(name, move |budget, _| match budget.at(&["spec", member]) {
            Some(Value::Int(number)) => number.to_string().into(),
            Some(Value::String(text)) => text.clone().into(),
            _ => "N/A".into(),
        })
    };
    vec![
        amount("Min Available", "minAvailable"),
        amount("Max Unavailable", "maxUnavailable"),
        integer("Allowed Disruptions", &["status", "disruptionsAllowed"]),
        Column::age(),
    ]
}

/// Returns the table columns of PriorityClass.
pub(crate) fn priority_classes() -> Vec<Column> {
    vec![
        integer("Value", &["value"]),
        boolean("Global-Default", &["globalDefault"]),
        Column::age(),
        text("PreemptionPolicy", &["preemptionPolicy"]),
    ]
}
