//! Tests of formats.

use super::*;

fn check(name: &str, good: &[&str], bad: &[&str]) {
    let format = Format::named(name, Kind::String).unwrap();
    for text in good {
        assert!(format.accepts(text), "{name} should accept {text:?}");
    }
    for text in bad {
        assert!(!format.accepts(text), "{name} should refuse {text:?}");
    }
}

#[test]
fn address_formats_are_recognized() {
    check(
        "uri",
        &[
            "http://foo.bar/#com",
            "ftp://foobar.ru/",
            "http://user:pass@www.foobar.com/",
            "http://[::1]:80/x",
            "mailto:someone@example.com",
            "/abs/test/dir",
            "http://duckduckgo.com/?q=%2F",
            "*",
        ],
        &[
            "",
            "foobar.com",
            "./rel",
            "invalid.",
            "http://a b/",
            "http://x/%zz",
            "http://x:port/",
            ":x",
            "a\u{7f}",
        ],
    );
    check(
        "email",
        &[
            "a@b.c",
            "Jane Doe <jane@example.com>",
            "\"odd name\"@x.org",
            "a@[127.0.0.1]",
        ],
        &["", "a", "a@", "@b", "a b@c", "a@b@", "a..b@c"],
    );
    check(
        "hostname",
        &[
            "localhost",
            "example.com",
            "a-b.example.london",
            "1a.org",
            "bücher.example",
        ],
        &["", "-a.com", "a_b.com", "a.b-", "example.c0", "a..com"],
    );
    check(
        "ipv4",
        &["1.2.3.4", "001.2.3.4", "::ffff:1.2.3.4"],
        &["1.2.3", "256.1.1.1", "::1", ""],
    );
    check("ipv6", &["::1", "fe80::1"], &["1.2.3.4", ":::", ""]);
    check(
        "cidr",
        &["10.0.0.0/8", "010.0.0.0/8", "::/0"],
        &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "x/8"],
    );
    check(
        "mac",
        &[
            "00:00:5e:00:53:01",
            "02-00-5e-10-00-00-00-01",
            "0000.5e00.5301",
        ],
        &["00:00:5e:00:53", "0g:00:5e:00:53:01", ""],
    );
}

#[test]
fn identifier_formats_are_recognized() {
    let uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    check(
        "uuid",
        &[uuid, &uuid.to_uppercase(), &uuid.replace('-', "")],
        &["", "6ba7b810"],
    );
    check("uuid3", &["6ba7b810-9dad-31d1-00b4-00c04fd430c8"], &[uuid]);
    check("uuid4", &["6ba7b810-9dad-41d1-80b4-00c04fd430c8"], &[uuid]);
    check(
        "uuid5",
        &["6ba7b810-9dad-51d1-b0b4-00c04fd430c8"],
        &["6ba7b810-9dad-51d1-c0b4-00c04fd430c8"],
    );
    check(
        "isbn10",
        &["3836221195", "1-61729-085-8", "3 401 01319 X"],
        &["3423214121", ""],
    );
    check(
        "isbn13",
        &["978-4-87311-368-5", "978 3401013190"],
        &["978 3 8362 2119 0", ""],
    );
    check("isbn", &["3836221195", "9784873113685"], &["foo"]);
    check(
        "creditcard",
        &[
            "4220855426222389",
            "4220-8554-2622-2389",
            "4222222222222",
            "5555555555554444",
            "6011111111111117",
            "378282246310005",
            "30569309025904",
            "3530111333300000",
        ],
        &[
            "4220855426213389",
            "",
            "6111111111111116",
            "422085542622238",
        ],
    );
    check(
        "ssn",
        &["111-22-3333", "111 22 3333"],
        &["111223333", "11-222-3333"],
    );
    check("hexcolor", &["#fff", "CCccCC"], &["#ff", "fff0", ""]);
    check(
        "rgbcolor",
        &["rgb(0,31,255)", "rgb(0,  31, 255)"],
        &["rgb(1,349,275)", "rgb(01,31,255)", ""],
    );
    check("byte", &["TG9yZW0=", "QQ=="], &["", "TG9yZW0", "a"]);
    check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f", ""]);
    check("password", &["", "anything"], &[]);
    check(
        "k8s-short-name",
        &["a", "a-1"],
        &["", "A", "a.b", "-a", &"a".repeat(64)],
    );
    check(
        "k8s-long-name",
        &["a.b", &"a".repeat(253)],
        &["", "A", "a..b", &"a".repeat(254)],
    );
}

#[test]
fn time_formats_are_recognized() {
    check(
        "date",
        &["2024-02-29"],
        &["2023-02-29", "2024-2-9", "2024-13-01", ""],
    );
    check(
        "date-time",
        &[
            "2014-12-15T19:30:20.000Z",
            "2014-12-15t08:00:00z",
            "2014-12-15T19:30:20+02:00",
            "2014-12-15T19:30:20.5-00:30",
            "2014-12-15T19:30:20,5z",
            "2014-12-15T19:30:20é5z",
        ],
        &[
            "yesterday",
            "2014-12-15T19:30:20.Z",
            "2014-12-15T19:30:20.5",
            "2014-12-15T19:30:20.5x5Z",
            "2014-12-15T19:30:60Z",
            "2014-12-15T19:30:20+0200",
            "2014-12-15T19:30:20+é0:00",
            "2014-12-15T9:30:20Z",
            "2014-12-15T19-30-20Z",
            "2014-12-15Té9:30:20Z",
            "2014-12-15T24:00:00Z",
            "2014-12-15T19:30:20",
            "",
        ],
    );
    check(
        "duration",
        &[
            "1h30m",
            "0",
            "-1.5h",
            "22 ns",
            "3 days",
            "1 week",
            "2hr",
            "3 µs",
            "in 3 days",
            "1 x 2 days",
            "1 2 days",
        ],
        &[
            "",
            "1",
            "h",
            "abc",
            "1 fortnight",
            "1-day",
            "99999999999999999999 days",
            "1 day 99999999999999999999 days",
        ],
    );
}

#[test]
fn format_names_ignore_hyphens_and_belong_to_types() {
    assert_eq!(
        Format::named("datetime", Kind::String),
        Some(Format::DateTime)
    );
    assert_eq!(Format::named("int32", Kind::Integer), Some(Format::Int32));
    assert_eq!(Format::named("int32", Kind::String), None);
    assert_eq!(Format::named("date", Kind::Integer), None);
    assert_eq!(Format::named("nonsense", Kind::String), None);
}
