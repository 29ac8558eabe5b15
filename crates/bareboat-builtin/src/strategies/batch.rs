//! Jobs and cron jobs.

mod policies;
mod status;

use super::Rules;
use super::apps::matches_template;
use super::check::{Errors, immutable, name, not_negative, one_of, path, required_one_of};
use super::pod_spec;
use super::warnings;
use crate::reach::Reach;
use bareboat_api::kind::WriteContext;
use bareboat_api::labels::{Selector, validate_selector};
use bareboat_api::{FieldError, FieldPath, Map, Object, Value, names};

/// The labels of a job's pods: the present names and those of old.
const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// What jobs do.
pub(crate) fn job() -> Rules {
    Rules::validating(validate_job)
        .creating(generate_selector)
        .updating(job_update)
        .statuses(status::validate)
        .warning(warnings::job)
}

/// What cron jobs do.
pub(crate) fn cron_job() -> Rules {
    Rules::validating(validate_cron_job).warning(warnings::cron_job)
}

fn spec_of(object: &Object) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// Unless told otherwise, a job selects the pods that carry its uid, and its template says so.
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
    // What contradicts them is refused, not replaced.
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
    // A job without labels of its own shares those of its template.
    if !had_labels {
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

/// Who else looks after the job: a name in a domain.
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

/// Each index is noted in the status, which has its limits.
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

/// What was not asked for must be what was made: the labels of the template, and the selector.
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
    // An indexed job may grow and shrink as long as both numbers go together.
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

/// While a job is suspended its pods may still be told where to run.
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

/// The longest name of a cron job: its jobs add a number of ten digits and a dash to it.
const CRON_JOB_NAME_MAX: usize = 52;

fn validate_cron_job(job: &Object, wrong: &mut Errors) {
    if job.name().len() > CRON_JOB_NAME_MAX {
        wrong.push(FieldError::invalid(
            path(&["metadata", "name"]),
            job.name(),
            format!("must be no more than {CRON_JOB_NAME_MAX} characters"),
        ));
    }
    let spec = spec_of(job);
    let place = path(&["spec"]);
    let schedule = spec.text(&["schedule"]);
    if schedule.is_empty() {
        wrong.push(FieldError::required(place.child("schedule"), ""));
    } else {
        if let Some(complaint) = schedule_complaint(schedule) {
            wrong.push(FieldError::invalid(
                place.child("schedule"),
                schedule,
                complaint,
            ));
        }
        if schedule.contains("TZ") {
            wrong.push(FieldError::invalid(
                place.child("schedule"),
                schedule,
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            ));
        }
    }
    for member in [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        not_negative(spec.int(&[member]), place.child(member), wrong);
    }
    if let Some(zone) = spec.at(&["timeZone"]).and_then(Value::as_str) {
        let mut complain = |detail: String| {
            wrong.push(FieldError::invalid(place.child("timeZone"), zone, detail));
        };
        if zone.is_empty() {
            complain("timeZone must be nil or non-empty string".to_owned());
        } else {
            if zone.eq_ignore_ascii_case("local") {
                complain("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned());
            }
            if !is_zone(zone) {
                complain(format!("unknown time zone {zone}"));
            }
        }
    }
    required_one_of(
        spec.text(&["concurrencyPolicy"]),
        &["Allow", "Forbid", "Replace"],
        place.child("concurrencyPolicy"),
        wrong,
    );
    let template = place.child("jobTemplate").child("spec");
    if let Some(job) = spec.at(&["jobTemplate", "spec"]) {
        validate_job_spec(job, &template, wrong);
        if let Some(selector) = job.at(&["selector"]).filter(|value| !value.is_null()) {
            wrong.push(FieldError::invalid(
                template.child("selector"),
                selector.clone(),
                "`selector` will be auto-generated",
            ));
        }
        if job.flag(&["manualSelector"]) {
            wrong.push(FieldError::not_supported(
                template.child("manualSelector"),
                true,
                ["nil", "false"],
            ));
        }
    }
}

/// Whether a text looks like a zone of the time zone database, which nobody here keeps.
fn is_zone(zone: &str) -> bool {
    const AREAS: [&str; 17] = [
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Brazil",
        "Canada",
        "Chile",
        "Etc",
        "Europe",
        "Indian",
        "Mexico",
        "Pacific",
        "SystemV",
        "US",
    ];
    const ALONE: [&str; 41] = [
        "CET",
        "CST6CDT",
        "Cuba",
        "EET",
        "EST",
        "EST5EDT",
        "Egypt",
        "Eire",
        "Factory",
        "GB",
        "GB-Eire",
        "GMT",
        "GMT+0",
        "GMT-0",
        "GMT0",
        "Greenwich",
        "HST",
        "Hongkong",
        "Iceland",
        "Iran",
        "Israel",
        "Jamaica",
        "Japan",
        "Kwajalein",
        "Libya",
        "MET",
        "MST",
        "MST7MDT",
        "NZ",
        "NZ-CHAT",
        "Navajo",
        "PRC",
        "PST8PDT",
        "Poland",
        "Portugal",
        "ROC",
        "ROK",
        "Singapore",
        "Turkey",
        "UCT",
        "UTC",
    ];
    const REST: [&str; 5] = ["Universal", "W-SU", "WET", "Zulu", "Local"];
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
    match zone.split_once('/') {
        Some((area, place)) => {
            AREAS.contains(&area) && !place.is_empty() && place.bytes().all(plain)
        }
        None => ALONE.contains(&zone) || REST.contains(&zone),
    }
}

/// What is wrong with a cron schedule: five fields, or one of the words for common ones.
fn schedule_complaint(schedule: &str) -> Option<String> {
    if let Some(word) = schedule.strip_prefix('@') {
        if let Some(every) = word.strip_prefix("every ") {
            return bareboat_api::time::parse_duration(every)
                .is_err()
                .then(|| format!("failed to parse duration @every {every}"));
        }
        let known = [
            "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
        ];
        return (!known.contains(&word)).then(|| format!("unrecognized descriptor: @{word}"));
    }
    // Zones before the fields are complained about elsewhere.
    let fields: Vec<&str> = schedule
        .split_whitespace()
        .filter(|field| !field.contains("TZ="))
        .collect();
    if fields.len() != 5 {
        return Some(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
    const DAYS: &str = "sun mon tue wed thu fri sat";
    let limits = [
        (0, 59, ""),
        (0, 23, ""),
        (1, 31, ""),
        (1, 12, MONTHS),
        (0, 6, DAYS),
    ];
    fields
        .iter()
        .zip(limits)
        .find_map(|(field, limits)| field_complaint(field, limits))
}

fn field_complaint(field: &str, (low, high, words): (u32, u32, &str)) -> Option<String> {
    let number = |text: &str| {
        let named = words
            .split(' ')
            .position(|word| !word.is_empty() && word.eq_ignore_ascii_case(text));
        match named {
            Some(index) => u32::try_from(index).ok().map(|index| index + low),
            None => text.parse::<u32>().ok(),
        }
    };
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        match step.parse::<u32>() {
            Ok(0) => {
                return Some(format!("step of range should be a positive number: {part}"));
            }
            Ok(_) => {}
            Err(_) => return Some(format!("failed to parse int from {step}: {part}")),
        }
        if matches!(range, "*" | "?") {
            continue;
        }
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (Some(from), Some(to)) = (number(from), number(to)) else {
            return Some(format!("failed to parse int from {range}"));
        };
        if from < low {
            return Some(format!(
                "beginning of range ({from}) below minimum ({low}): {part}"
            ));
        }
        if to > high {
            return Some(format!(
                "end of range ({to}) above maximum ({high}): {part}"
            ));
        }
        if from > to {
            return Some(format!(
                "beginning of range ({from}) beyond end of range ({to}): {part}"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::schedule_complaint;

    #[test]
    fn schedules_are_five_fields_or_a_known_word() {
        for good in [
            "*/5 * * * *",
            "0 0 1 jan sun",
            "@hourly",
            "@every 1h",
            "1-5,7 2/3 ? * mon-fri",
        ] {
            assert_eq!(schedule_complaint(good), None, "{good}");
        }
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "@often",
            "*/0 * * * *",
            "5-1 * * * *",
            "x * * * *",
        ] {
            assert!(schedule_complaint(bad).is_some(), "{bad}");
        }
    }
}
