//! Targets of forwarded requests are built from their decoded parts.

use super::*;

fn check(url: &str) -> Result<String, u16> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let query = Query::parse(query).expect("a well-formed query");
    target(path, &query).map_err(|status| status.code)
}

#[test]
fn a_target_is_built_anew_from_its_decoded_parts() {
    for (url, sent) in [
        ("/apis/g/v1/things", "/apis/g/v1/things"),
        ("/apis/g/v1/", "/apis/g/v1/"),
        ("/apis/g/v1/things/a%3Ab", "/apis/g/v1/things/a:b"),
        (
            "/apis/g/v1/things?watch=1&labelSelector=a%3Db,c+d",
            "/apis/g/v1/things?watch=1&labelSelector=a%3Db%2Cc+d",
        ),
        (
            "/apis/g/v1/things?watch&a=1;b",
            "/apis/g/v1/things?watch=&a=1%3Bb",
        ),
    ] {
        assert_eq!(check(url).as_deref(), Ok(sent), "{url}");
    }
}

#[test]
fn paths_that_servers_read_differently_are_refused() {
    for path in [
        "/apis/g/v1/../v2/things",
        "/apis/g/v1/%2e%2e/things",
        "/apis/g/v1/things/a%2Fb",
        "/apis/g/v1//things",
        "/apis/g/v1/things/a%5Cb",
        "/apis/g/v1/things/a%00",
    ] {
        assert_eq!(check(path), Err(400), "{path}");
    }
}
