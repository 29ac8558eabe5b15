//! Tests that parameters are parsed as in kube-apiserver.

use super::*;

fn parsed(text: &str) -> Query {
    Query::parse(text).expect("a query")
}

fn log(text: &str) -> Result<LogOptions, Status> {
    LogOptions::parse(&parsed(text), "web")
}

#[test]
fn a_command_and_its_streams_reach_the_kubelet() {
    let query = parsed("command=sh&command=-c&command=a%20b&stdin=true&stdout=1&stderr=false&tty=");
    let options = CommandOptions::parse(&query, "exec");
    assert_eq!(options.command, ["sh", "-c", "a b"]);
    assert_eq!(
        options.for_kubelet(),
        "command=sh&command=-c&command=a%20b&input=1&output=1&tty=1"
    );
    let attach = CommandOptions::parse(&parsed("stdin=false"), "attach");
    assert!(attach.stdout && attach.stderr && !attach.stdin);
}

#[test]
fn log_options_are_checked() {
    let message = |text: &str| log(text).expect_err("it is refused").message;
    assert_eq!(
        message("tailLines=-1"),
        "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"
    );
    assert_eq!(
        message("limitBytes=0"),
        "PodLogOptions \"web\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"
    );
    assert_eq!(
        message("tailLines=x"),
        "strconv.ParseInt: parsing \"x\": invalid syntax"
    );
    assert!(message("sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z").contains("at most one of"));
    let good = log("follow=true&tailLines=5&sinceTime=2024-01-01T00:00:00Z&timestamps=1");
    assert_eq!(
        good.expect("options").for_kubelet(),
        "follow=true&sinceTime=2024-01-01T00%3A00%3A00Z&tailLines=5&timestamps=true"
    );
}

#[test]
fn ports_may_be_lists() {
    assert_eq!(ports(&parsed("ports=80,81&ports=90")), Ok(vec![80, 81, 90]));
    assert!(ports(&parsed("ports=http")).is_err());
}
