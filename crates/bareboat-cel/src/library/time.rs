//! Functions that return parts of timestamps and durations.

use jiff::tz::TimeZone;

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::Val;
use crate::value::time::{Civil, zone};

macro_rules! part {
    ($name:literal, $id:literal, $with_zone:literal, $of:expr) => {
        Decl {
            name: $name,
            call: |_, args| of_timestamp(args, $of),
            overloads: &[
                ($id, ".timestamp -> int"),
                ($with_zone, ".timestamp, string -> int"),
            ],
        }
    };
    ($name:literal, $id:literal, $with_zone:literal, $of:expr, $duration:literal, $unit:expr) => {
        Decl {
            name: $name,
            call: |_, args| match args {
                [Val::Duration(nanoseconds)] => Ok(Val::Int($unit(*nanoseconds))),
                _ => of_timestamp(args, $of),
            },
            overloads: &[
                ($id, ".timestamp -> int"),
                ($with_zone, ".timestamp, string -> int"),
                ($duration, ".duration -> int"),
            ],
        }
    };
}

pub(super) const FUNCTIONS: &[Decl] = &[
    part!(
        "getFullYear",
        "timestamp_to_year",
        "timestamp_to_year_with_tz",
        |time| time.year
    ),
    part!(
        "getMonth",
        "timestamp_to_month",
        "timestamp_to_month_with_tz",
        |time| time.month - 1
    ),
    part!(
        "getDayOfYear",
        "timestamp_to_day_of_year",
        "timestamp_to_day_of_year_with_tz",
        Civil::day_of_year
    ),
    part!(
        "getDayOfMonth",
        "timestamp_to_day_of_month",
        "timestamp_to_day_of_month_with_tz",
        |time| time.day - 1
    ),
    part!(
        "getDate",
        "timestamp_to_day_of_month_1_based",
        "timestamp_to_day_of_month_1_based_with_tz",
        |time| time.day
    ),
    part!(
        "getDayOfWeek",
        "timestamp_to_day_of_week",
        "timestamp_to_day_of_week_with_tz",
        Civil::weekday
    ),
    part!(
        "getHours",
        "timestamp_to_hours",
        "timestamp_to_hours_with_tz",
        |time| time.second_of_day / 3600,
        "duration_to_hours",
        |nanoseconds: i64| nanoseconds / 3_600_000_000_000
    ),
    part!(
        "getMinutes",
        "timestamp_to_minutes",
        "timestamp_to_minutes_with_tz",
        |time| time.second_of_day / 60 % 60,
        "duration_to_minutes",
        |nanoseconds: i64| nanoseconds / 60_000_000_000
    ),
    part!(
        "getSeconds",
        "timestamp_to_seconds",
        "timestamp_to_seconds_tz",
        |time| time.second_of_day % 60,
        "duration_to_seconds",
        |nanoseconds: i64| nanoseconds / 1_000_000_000
    ),
    part!(
        "getMilliseconds",
        "timestamp_to_milliseconds",
        "timestamp_to_milliseconds_with_tz",
        |time| i64::from(time.nanos) / 1_000_000,
        "duration_to_milliseconds",
        |nanoseconds: i64| nanoseconds / 1_000_000
    ),
];

fn of_timestamp<'a>(args: &[Val<'a>], part: impl Fn(&Civil) -> i64) -> Result<Val<'a>, EvalError> {
    let (timestamp, zone) = match args {
        [Val::Timestamp(timestamp)] => (timestamp, TimeZone::UTC),
        [Val::Timestamp(timestamp), Val::String(name)] => {
            let zone = zone(name.as_str())
                .ok_or_else(|| EvalError::new(format!("unknown time zone {}", name.as_str())))?;
            (timestamp, zone)
        }
        _ => return no_such_overload(),
    };
    Ok(Val::Int(part(&timestamp.in_zone(&zone))))
}
