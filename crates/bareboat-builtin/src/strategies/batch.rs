//! Jobs; CronJobs are in `cron`.

mod cron;
mod policies;
mod status;

pub(crate) use cron::cron_job;

use super::Rules;
use super::apps::matches_template;
use super::check::{Errors, immutable, name, not_negative, one_of, path};
use super::pod_spec;
use super::warnings;
use crate::reach::Reach;
use bareboat_api::kind::WriteContext;
use bareboat_api::labels::{Selector, validate_selector};
use bareboat_api::{FieldError, FieldPath, Map, Object, Value, names};

/// The uid labels of a job's pods: current and deprecated names.
const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// Returns the strategy of Job: a generated selector for new jobs, validation, warnings.
pub(crate) fn job() -> Rules {
    Rules::validating(validate_job)
        .creating(generate_selector)
        .updating(job_update)
        .statuses(status::validate)
        .warning(warnings::job)
}

fn spec_of(object: &Object) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// Generates the selector and the template labels of a job unless `manualSelector` is set.
fn generate_selector(job: &mut Object, _ctx: &WriteContext<'_>) {
    if job.value().flag(&["spec", "manualSelector"]) {
        return;
    }
    let (uid, name) = (job.uid().to_owned(), job.name().to_owned());
    let had_labels = job.meta("labels").is_some();
    let spec = job.map_mut().object_mut("spec");
    let labels = spec
        .object_mut("template")
        .object_mut("metadata")
        .object_mut("labels");
    // Contradicting labels are rejected, not replaced.
    for (keys, value) in [(UID_LABELS, &uid), (NAME_LABELS, &name)] {
        for key in keys {
            if !labels.contains_key(key) {
                labels.insert(key, value.as_str().into());
            }
        }
    }
    let labels = labels.clone();
    let selector = spec.object_mut("selector").object_mut("matchLabels");
    if !selector.contains_key(UID_LABELS[0]) {
        selector.insert(UID_LABELS[0], uid.as_str().into());
    }
    // A job without labels gets those of its template. A name that is no valid label value is reported elsewhere.
    if !had_labels && names::label_value(&name).is_empty() {
        job.set_meta("labels", labels.into());
    }
}

fn validate_job(job: &Object, wrong: &mut Errors) {
    let spec = spec_of(job);
    let place = path(&["spec"]);
    validate_generated(job, wrong);
    validate_job_spec(spec, &place, wrong);
    match spec.at(&["selector"]).filter(|value| !value.is_null()) {
        None => wrong.push(FieldError::required(place.child("selector"), "")),
        Some(selector) => {
            wrong.extend(validate_selector(selector, &place.child("selector")));
        }
    }
    matches_template(spec, wrong);
}

fn validate_job_spec(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    for member in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(spec.int(&[member]), place.child(member), wrong);
    }
    if spec.has(&["maxFailedIndexes"]) && !spec.has(&["backoffLimitPerIndex"]) {
        wrong.push(FieldError::required(
            place.child("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        ));
    }
    managed_by(spec, &place.child("managedBy"), wrong);
    let mode = spec.text(&["completionMode"]);
    if !mode.is_empty() {
        one_of(
            mode,
            &["NonIndexed", "Indexed"],
            place.child("completionMode"),
            wrong,
        );
    }
    if mode == "Indexed" {
        if !spec.has(&["completions"]) {
            wrong.push(FieldError::required(
                place.child("completions"),
                "when completion mode is Indexed",
            ));
        }
        indexed_limits(spec, place, wrong);
    } else {
        for member in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = spec.int(&[member]) {
                wrong.push(FieldError::invalid(
                    place.child(member),
                    number,
                    "requires indexed completion mode",
                ));
            }
        }
    }
    if spec.has(&["podFailurePolicy"]) {
        policies::failures(spec, &place.child("podFailurePolicy"), wrong);
    }
    if spec.has(&["successPolicy"]) {
        policies::success(spec, &place.child("successPolicy"), wrong);
    }
    if spec.has(&["podReplacementPolicy"]) {
        let known: &[&str] = match spec.has(&["podFailurePolicy"]) {
            true => &["Failed"],
            false => &["Failed", "TerminatingOrFailed"],
        };
        let policy = spec.text(&["podReplacementPolicy"]);
        one_of(policy, known, place.child("podReplacementPolicy"), wrong);
    }
    let template_place = place.child("template");
    let empty = Value::object();
    let template = spec.at(&["template"]).unwrap_or(&empty);
    pod_spec::validate_template(template, &template_place, wrong);
    let place = template_place.child("spec").child("restartPolicy");
    match template.text(&["spec", "restartPolicy"]) {
        "Always" | "" => wrong.push(FieldError::required(
            place,
            "valid values: \"OnFailure\", \"Never\"",
        )),
        "OnFailure" if spec.has(&["podFailurePolicy"]) => wrong.push(FieldError::invalid(
            place,
            "OnFailure",
            "only \"Never\" is supported when podFailurePolicy is specified",
        )),
        policy => one_of(policy, &["OnFailure", "Never"], place, wrong),
    }
}

/// Validates `managedBy`: a domain-prefixed name.
fn managed_by(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let Some(manager) = spec.at(&["managedBy"]).and_then(Value::as_str) else {
        return;
    };
    if manager.is_empty() {
        wrong.push(FieldError::required(place.clone(), ""));
    } else {
        match manager.split_once('/') {
            Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
                name(domain, names::dns1123_subdomain, place.clone(), wrong);
            }
            _ => {
                let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
                wrong.push(FieldError::invalid(place.clone(), manager, detail));
            }
        }
    }
    if manager.len() > 63 {
        wrong.push(FieldError::too_long(place.clone(), 63));
    }
}

/// Validates limits of indexed jobs, whose status lists indexes.
fn indexed_limits(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    const MANY: i64 = 100_000;
    const FEW: i64 = 10_000;
    let (completions, parallelism) = (spec.int(&["completions"]), spec.int(&["parallelism"]));
    let failed = spec.int(&["maxFailedIndexes"]);
    let mut complain = |member: &str, number: i64, detail: String| {
        wrong.push(FieldError::invalid(place.child(member), number, detail));
    };
    if let Some(number) = parallelism.filter(|number| *number > MANY) {
        let detail =
            format!("must be less than or equal to {MANY} when completion mode is Indexed");
        complain("parallelism", number, detail);
    }
    if let (Some(number), Some(completions)) = (failed, completions)
        && number > completions
    {
        let detail = "must be less than or equal to completions".to_owned();
        complain("maxFailedIndexes", number, detail);
    }
    if let Some(number) = failed.filter(|number| *number > MANY) {
        let detail = format!("must be less than or equal to {MANY}");
        complain("maxFailedIndexes", number, detail);
    }
    if completions.is_some_and(|number| number > MANY) && spec.has(&["backoffLimitPerIndex"]) {
        for (member, number) in [("parallelism", parallelism), ("maxFailedIndexes", failed)] {
            if let Some(number) = number.filter(|number| *number > FEW) {
                let detail = format!(
                    "must be less than or equal to {FEW} when completions are above {MANY} and used with backoff limit per index"
                );
                complain(member, number, detail);
            }
        }
        if failed.is_none() {
            let detail = format!("must be specified when completions is above {MANY}");
            wrong.push(FieldError::required(
                place.child("maxFailedIndexes"),
                detail,
            ));
        }
    }
}

/// Validates the generated labels and selector.
fn validate_generated(job: &Object, wrong: &mut Errors) {
    let selector = job.at(&["spec", "selector"]).unwrap_or(&Value::Null);
    if job.value().flag(&["spec", "manualSelector"]) || selector.is_null() {
        return;
    }
    let place = path(&["spec", "template", "metadata", "labels"]);
    let given = job.at(&["spec", "template", "metadata", "labels"]);
    let given = given.unwrap_or(&Value::Null);
    let mut generated = Map::new();
    for (keys, value) in [(UID_LABELS, job.uid()), (NAME_LABELS, job.name())] {
        for key in keys {
            generated.insert(key, value.into());
            let found = given.at(&[key]).and_then(Value::as_str);
            if found.is_none() {
                let detail = format!("must be '{value}'");
                wrong.push(FieldError::required(place.key(key), detail));
            } else if found != Some(value) {
                let detail = format!("must be '{value}'");
                wrong.push(FieldError::invalid(place.key(key), given.clone(), detail));
            }
        }
    }
    let matches = Selector::from_object(selector)
        .is_ok_and(|selector| selector.matches_map(Some(&generated)));
    if !matches {
        let place = path(&["spec", "selector"]);
        let detail = "`selector` not auto-generated";
        wrong.push(FieldError::invalid(place, selector.clone(), detail));
    }
}

fn job_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let (after, before) = (spec_of(new), spec_of(old));
    let check = |member: &str, wrong: &mut Errors| {
        immutable(
            after.at(&[member]),
            before.at(&[member]),
            path(&["spec", member]),
            wrong,
        );
    };
    // An indexed job may be scaled if completions and parallelism change together.
    let elastic = before.text(&["completionMode"]) == "Indexed"
        && after.at(&["completions"]) == after.at(&["parallelism"]);
    if !elastic {
        check("completions", wrong);
    }
    check("selector", wrong);
    if !template_unchanged(after, before) {
        check("template", wrong);
    }
    for member in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        check(member, wrong);
    }
}

/// Returns whether the template is unchanged, except for scheduling fields of a suspended job.
fn template_unchanged(after: &Value, before: &Value) -> bool {
    if after.at(&["template"]) == before.at(&["template"]) {
        return true;
    }
    if !before.flag(&["suspend"]) {
        return false;
    }
    let rest = |spec: &Value| {
        let mut template = spec.at(&["template"]).cloned().unwrap_or_default();
        for (owner, members) in [
            (
                "spec",
                ["nodeSelector", "tolerations", "affinity", "schedulingGates"].as_slice(),
            ),
            ("metadata", ["labels", "annotations"].as_slice()),
        ] {
            if let Some(map) = template.at_mut(&[owner]).and_then(Value::as_object_mut) {
                for member in members {
                    map.remove(member);
                }
            }
        }
        template
    };
    rest(after) == rest(before)
}
