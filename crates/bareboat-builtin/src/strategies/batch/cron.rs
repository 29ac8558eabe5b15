//! CronJobs: schedules, time zones and job templates.

use super::super::Rules;
use super::super::check::{Errors, not_negative, path, required_one_of};
use super::super::warnings;
use super::{spec_of, validate_job_spec};
use crate::reach::Reach;
use bareboat_api::{FieldError, Object, Value};

/// Returns the strategy of CronJob: validation and warnings.
pub(crate) fn cron_job() -> Rules {
    Rules::validating(validate_cron_job).warning(warnings::cron_job)
}

/// Maximum name length of a CronJob; its jobs append a dash and ten digits.
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

/// Returns whether a text looks like a time zone name. The time zone database is not included.
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

/// Returns what is wrong with a cron schedule: it needs five fields, or a known word.
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
    // Time zones in schedules are reported elsewhere.
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
