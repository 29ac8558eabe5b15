//! Events as they are written.

use super::{Event, ObjectRef, Outcome, Request};
use crate::{Level, Payload, Stage};
use bareboat_api::kind::User;
use bareboat_api::time::Timestamp;
use bareboat_api::{Status, Str, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

fn event(level: Level, resource: &str) -> Event {
    let at = Timestamp {
        seconds: 1_600_000_000,
        nanos: 1_234_000,
    };
    let ann = User {
        name: Str::new("ann"),
        groups: vec![Str::new("staff")],
        ..User::default()
    };
    let request = Request {
        level,
        omit_managed_fields: true,
        audit_id: "id-1".to_owned(),
        uri: "/api/v1/namespaces/a/configmaps?pretty=true".to_owned(),
        verb: Str::new("create"),
        user: Some(Arc::new(ann)),
        source_ips: vec!["10.0.0.1".parse().expect("an address")],
        user_agent: "kubectl\n{}".to_owned(),
        object: Some(ObjectRef {
            version: Str::new("v1"),
            resource: Str::new(resource),
            namespace: Str::new("a"),
            ..ObjectRef::default()
        }),
        received: at,
    };
    let body = r#"{"kind":"ConfigMap","metadata":{"name":"m","managedFields":[{"manager":"x"}]},"data":{"k":"v"}}"#;
    Event {
        request: Arc::new(request),
        stage: Stage::ResponseComplete,
        time: at,
        impersonated: None,
        created_name: Some(Str::new("m")),
        outcome: Some(Outcome {
            code: 201,
            status: None,
            quotes_body: false,
        }),
        request_object: Some(Payload::new(body.into())),
        response_object: Some(Payload::new(body.into())),
        annotations: BTreeMap::from([("a/b".to_owned(), "c".to_owned())]),
    }
}

#[test]
fn the_level_decides_which_bodies_are_shown() {
    for (level, sent, answered) in [
        (Level::Metadata, false, false),
        (Level::Request, true, false),
        (Level::RequestResponse, true, true),
    ] {
        let shown = event(level, "configmaps").to_value();
        assert_eq!(shown.get("requestObject").is_some(), sent);
        assert_eq!(shown.get("responseObject").is_some(), answered);
    }
}

#[test]
fn an_event_says_who_did_what_and_when() {
    let shown = event(Level::Request, "configmaps").to_value();
    let text = |path: &[&str]| shown.at(path).and_then(Value::as_str).map(str::to_owned);
    for (path, wanted) in [
        (&["kind"][..], "Event"),
        (&["apiVersion"], "audit.k8s.io/v1"),
        (&["level"], "Request"),
        (&["stage"], "ResponseComplete"),
        (&["user", "username"], "ann"),
        (&["objectRef", "name"], "m"),
        (&["objectRef", "resource"], "configmaps"),
        (&["requestReceivedTimestamp"], "2020-09-13T12:26:40.001234Z"),
        (&["annotations", "a/b"], "c"),
        (&["requestObject", "data", "k"], "v"),
    ] {
        assert_eq!(text(path).as_deref(), Some(wanted), "{path:?}");
    }
    assert_eq!(
        shown.at(&["responseStatus", "code"]),
        Some(&Value::Int(201))
    );
    assert!(
        shown
            .at(&["requestObject", "metadata", "managedFields"])
            .is_none()
    );
    let line = shown.to_json();
    assert!(!line.contains(&b'\n'), "an event is one line");
}

#[test]
fn a_refusal_about_a_secret_is_not_quoted() {
    let refused = |resource: &str, status: Status, quotes_body: bool| {
        let mut event = event(Level::Metadata, resource);
        event.outcome = Some(Outcome {
            code: status.code,
            status: Some(status),
            quotes_body,
        });
        event.to_value().to_string()
    };
    let quoting = Status::new(422, "Invalid", "data: hunter2").with_cause("x", "hunter2", "data");
    assert!(!refused("secrets", quoting.clone(), true).contains("hunter2"));
    assert!(refused("configmaps", quoting, true).contains("hunter2"));
    let forbidden = Status::new(403, "Forbidden", "ann cannot create secrets");
    assert!(refused("secrets", forbidden, false).contains("ann cannot create secrets"));
}

#[test]
fn long_texts_are_cut_and_marked() {
    let mut long = event(Level::Metadata, "configmaps");
    let request = Arc::make_mut(&mut long.request);
    request.user_agent = "ü".repeat(10_000);
    let shown = long.to_value();
    let agent = shown.at(&["userAgent"]).and_then(Value::as_str);
    let agent = agent.expect("there is one");
    assert!(agent.len() < 1100 && agent.ends_with("...TRUNCATED"));
}
