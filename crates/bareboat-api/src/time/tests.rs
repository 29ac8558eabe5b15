//! Times on the wire: read and written.

#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

#[test]
fn times_are_parsed_and_printed() {
    let check = |text: &str, seconds: i64, nanos: u32, printed: &str| {
        let time = Timestamp::parse(text).unwrap();
        assert_eq!((time.seconds, time.nanos), (seconds, nanos), "{text}");
        assert_eq!(time.print_seconds(), printed);
    };
    check("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z");
    check(
        "2001-09-09T01:46:40Z",
        1_000_000_000,
        0,
        "2001-09-09T01:46:40Z",
    );
    check(
        "2000-02-29T23:59:59.5Z",
        951_868_799,
        500_000_000,
        "2000-02-29T23:59:59Z",
    );
    check(
        "2020-01-02T03:04:05.123456789+01:30",
        1_577_928_845,
        123_456_789,
        "2020-01-02T01:34:05Z",
    );
    check("1969-12-31T23:59:59Z", -1, 0, "1969-12-31T23:59:59Z");
    check(
        "0001-01-01T00:00:00Z",
        Timestamp::ZERO.seconds,
        0,
        "0001-01-01T00:00:00Z",
    );
    let micro = Timestamp::parse("2020-01-02T03:04:05.000001Z").unwrap();
    assert_eq!(micro.print_micros(), "2020-01-02T03:04:05.000001Z");
    for wrong in [
        "",
        "2020",
        "2020-01-02",
        "2020-01-02 03:04:05Z",
        "2020-13-01T00:00:00Z",
        "2021-02-29T00:00:00Z",
        "2020-01-02T24:00:00Z",
        "2020-01-02T03:04:05",
        "2020-01-02T03:04:05.Z",
        "2020-01-02T03:04:05Zx",
        "2020-01-02t03:04:05z",
        "2020-01-02T03:04:05+1:00",
        "é020-01-02T03:04:05Z",
    ] {
        assert!(Timestamp::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn durations_are_parsed_and_printed_like_in_go() {
    let check = |text: &str, nanos: i64, printed: &str| {
        assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        assert_eq!(print_duration(nanos), printed);
    };
    check("0", 0, "0s");
    check("1h", 3_600_000_000_000, "1h0m0s");
    check("1h30m", 5_400_000_000_000, "1h30m0s");
    check("-1.5s", -1_500_000_000, "-1.5s");
    check("+90s", 90_000_000_000, "1m30s");
    check("100ms", 100_000_000, "100ms");
    check("1.5us", 1_500, "1.5µs");
    check("2µs3ns", 2_003, "2.003µs");
    check(".5h", 1_800_000_000_000, "30m0s");
    check("1.s", 1_000_000_000, "1s");
    check(
        "-9223372036854775808ns",
        i64::MIN,
        "-2562047h47m16.854775808s",
    );
    let fault = |text: &str| parse_duration(text).unwrap_err().to_string();
    assert_eq!(fault("x"), "time: invalid duration \"x\"");
    assert_eq!(fault("1"), "time: missing unit in duration \"1\"");
    assert_eq!(fault("1d"), "time: unknown unit \"d\" in duration \"1d\"");
    for wrong in [
        "",
        "-",
        ".s",
        "1..5s",
        "9223372036854775808ns",
        "99999999999999999999999h",
    ] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn ages_have_the_short_form_of_tables() {
    const DAY: i64 = 86_400;
    for (seconds, text) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3599, "59m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3600, "2d1h"),
        (8 * DAY + 3600, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (8 * 365 * DAY + DAY, "8y"),
    ] {
        assert_eq!(human_duration(seconds), text, "{seconds}");
    }
}

proptest! {
    #[test]
    fn every_time_survives_printing(seconds in -62_135_596_800i64..253_402_300_800, micros in 0u32..1_000_000) {
        let time = Timestamp { seconds, nanos: micros * 1000 };
        prop_assert_eq!(Timestamp::parse(&time.print_micros()), Ok(time));
    }

    #[test]
    fn every_duration_survives_printing(nanos: i64) {
        prop_assert_eq!(parse_duration(&print_duration(nanos)), Ok(nanos));
    }

    #[test]
    fn arbitrary_text_does_not_panic_the_parsers(text in "[-+0-9T:.Zhmsunµ ]{0,30}") {
        let _ = Timestamp::parse(&text);
        let _ = parse_duration(&text);
    }
}

#[test]
fn a_clock_becomes_a_timestamp() {
    use std::time::Duration;
    let at = |seconds, nanos| Timestamp { seconds, nanos };
    let half = Duration::from_millis(500);
    assert_eq!(Timestamp::from(UNIX_EPOCH), at(0, 0));
    assert_eq!(Timestamp::from(UNIX_EPOCH + half), at(0, 500_000_000));
    assert_eq!(Timestamp::from(UNIX_EPOCH - half), at(-1, 500_000_000));
    assert_eq!(
        Timestamp::from(UNIX_EPOCH - Duration::from_secs(3)),
        at(-3, 0)
    );
}

#[test]
fn seconds_are_added_within_the_years_that_texts_have() {
    let time = Timestamp::parse("2024-02-28T23:59:59.25Z").unwrap();
    let next = time.plus_seconds(1).unwrap();
    assert_eq!(next.print_micros(), "2024-02-29T00:00:00.250000Z");
    let last = Timestamp::parse("9999-12-31T23:59:59Z").unwrap();
    assert_eq!(last.plus_seconds(0), Some(last));
    assert_eq!(last.plus_seconds(1), None);
    assert_eq!(Timestamp::ZERO.plus_seconds(-1), None);
    assert_eq!(time.plus_seconds(i64::MAX), None);
}
