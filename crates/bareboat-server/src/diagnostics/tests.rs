//! The content of log lines about requests, and what they must not contain.

use super::explain::{causes, chain, message};
use super::{Stage, Trace};
use crate::request::info::RequestInfo;
use crate::server::Error;
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Status, Str};
use std::fmt;
use std::sync::Arc;

fn trace(resource: &str) -> Trace {
    let trace = Trace::new("id-1".into(), &http::Method::POST, "/api/v1/things");
    trace.parsed(&Arc::new(RequestInfo {
        is_resource: true,
        verb: Str::new("create"),
        resource: Str::new(resource),
        ..RequestInfo::default()
    }));
    trace
}

fn invalid() -> Status {
    let what = GroupResource {
        group: "",
        resource: "Thing",
    };
    let error = FieldError::invalid(FieldPath::new("spec.size"), "hunter2", "must be a number");
    Status::invalid(what, "a", &[error])
}

#[test]
fn a_validation_error_is_logged_as_field_and_reason_without_the_value() {
    let trace = trace("things");
    trace.pass(Stage::Read);
    let status = invalid();
    assert!(status.message.contains("hunter2"));
    assert!(!message(&trace, &status).contains("hunter2"));
    assert_eq!(
        causes(&trace, &status).as_deref(),
        Some("spec.size FieldValueInvalid")
    );
}

#[test]
fn nothing_that_came_of_the_body_of_a_secret_is_logged() {
    let trace = trace("secrets");
    trace.pass(Stage::Read);
    let refused = Status::new(403, "Forbidden", "a policy dislikes hunter2");
    assert!(!message(&trace, &refused).contains("hunter2"));
    assert_eq!(causes(&trace, &invalid()), None);
}

#[test]
fn a_refusal_before_the_body_is_read_is_logged_as_it_is() {
    let trace = trace("secrets");
    let refused = Status::new(403, "Forbidden", "User \"ann\" cannot create secrets");
    assert_eq!(message(&trace, &refused), refused.message);
}

#[test]
fn the_stage_that_refused_is_the_one_after_the_last_passed() {
    let trace = Trace::new("id-1".into(), &http::Method::GET, "/");
    assert_eq!(trace.doing(), "parsing");
    trace.pass(Stage::Authenticated);
    trace.skip(Stage::Flow);
    assert_eq!(trace.doing(), "authorization");
    trace.pass(Stage::Mutated);
    assert_eq!(trace.doing(), "validation");
    let times = trace.times();
    assert!(
        times.contains("authenticated=") && times.contains(" mutated="),
        "{times}"
    );
    assert!(!times.contains("flow"), "it is not timed: {times}");
}

#[derive(Debug)]
struct Outer(std::io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log cannot be written")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn the_chain_of_causes_goes_to_the_log_and_not_to_the_client() {
    let disk = Outer(std::io::Error::other("disk on fire"));
    let error = Error::from(Status::internal("no write").caused_by(disk));
    assert_eq!(
        chain(&error).as_deref(),
        Some("the log cannot be written: disk on fire")
    );
    assert!(!error.status().to_value().to_string().contains("fire"));
}

#[test]
fn long_texts_are_cut() {
    let trace = trace("things");
    let status = Status::new(404, "NotFound", "ü".repeat(10_000));
    assert!(message(&trace, &status).len() < 2_000);
}
