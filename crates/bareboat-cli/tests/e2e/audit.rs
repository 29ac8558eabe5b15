//! Audit of a server process: kubectl's requests in the log, its rotation, a policy that changes, and settings that
//! make no sense.

use crate::kubectl::Kubectl;
use crate::process::{PATIENCE, run};
use crate::server::bareboat;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SECRET: &str = "passw0rd-that-nobody-may-audit";
const ENCODED: &str = "cGFzc3cwcmQtdGhhdC1ub2JvZHktbWF5LWF1ZGl0";

/// A directory for a policy and a log.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new(rules: &str) -> Files {
        let files = Files {
            directory: tempfile::tempdir().unwrap(),
        };
        files.write_policy(rules);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write_policy(&self, rules: &str) {
        let text = format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: {rules}\n"
        );
        std::fs::write(self.path("policy.yaml"), text).unwrap();
    }

    fn start(&self, more: &[&str]) -> Option<Kubectl> {
        let (policy, log) = (self.path("policy.yaml"), self.path("audit.log"));
        let mut flags = vec![
            "--audit-policy-file",
            policy.to_str().unwrap(),
            "--audit-log-path",
            log.to_str().unwrap(),
        ];
        flags.extend(more);
        Kubectl::start_with(&flags)
    }

    /// The files of the log, oldest first.
    fn logs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        all.retain(|path| path.extension().is_some_and(|it| it == "log"));
        all.sort();
        all
    }
}

fn events(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    events.collect()
}

#[test]
fn the_log_tells_who_did_what_and_no_secret() {
    let files = Files::new("[{level: RequestResponse}]");
    let Some(kubectl) = files.start(&[]) else {
        return;
    };
    kubectl.says("create configmap papers --from-literal=a=b", &["created"]);
    kubectl.says(
        &format!("create secret generic vault --from-literal=password={SECRET}"),
        &["created"],
    );
    kubectl.says("get secret vault -o yaml", &[ENCODED]);
    kubectl.refuses("get pods --as ann", &["cannot list resource"]);
    let token = kubectl.gives("create token default");
    let (status, _) = kubectl.server.stop();
    assert!(status.success());

    let log = files.path("audit.log");
    let mode = std::fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&log).unwrap();
    for planted in [SECRET, ENCODED, token.trim()] {
        assert!(!text.contains(planted), "{planted} is in the audit log");
    }
    let events = events(&log);
    let find = |verb: &str, resource: &str, name: &str| {
        let found = events.iter().find(|event| {
            let object = &event["objectRef"];
            event["verb"] == verb
                && object["resource"] == resource
                && (name.is_empty() || object["name"] == name)
                && event["userAgent"]
                    .as_str()
                    .is_some_and(|it| it.starts_with("kubectl"))
        });
        found.unwrap_or_else(|| panic!("no {verb} {resource} {name}"))
    };
    let event = find("create", "configmaps", "papers");
    assert_eq!(event["kind"], "Event");
    assert_eq!(event["stage"], "ResponseComplete");
    assert_eq!(event["user"]["groups"][0], "system:masters");
    assert_eq!(event["sourceIPs"][0], "127.0.0.1");
    assert_eq!(event["requestObject"]["data"]["a"], "b");
    assert_eq!(event["responseStatus"]["code"], 201);
    let event = find("create", "secrets", "vault");
    assert_eq!(event["requestObject"]["data"]["password"], "<redacted>");
    let event = find("list", "pods", "");
    assert_eq!(event["impersonatedUser"]["username"], "ann");
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    let event = find("create", "serviceaccounts", "default");
    assert_eq!(event["objectRef"]["subresource"], "token");
}

#[test]
fn a_full_log_is_rotated_and_old_ones_are_deleted() {
    let files = Files::new(
        "[{level: Request, verbs: [create, update, patch], resources: [{resources: [configmaps]}]}]",
    );
    let Some(kubectl) = files.start(&["--audit-log-maxsize=1", "--audit-log-maxbackup=2"]) else {
        return;
    };
    let large = "x".repeat(400_000);
    std::fs::write(kubectl.home.path().join("large"), &large).unwrap();
    for at in 0..12 {
        kubectl.says(
            &format!("create configmap m{at} --from-file=large"),
            &["created"],
        );
    }
    let (status, stderr) = kubectl.server.stop();
    assert!(status.success(), "{stderr}");
    let logs = files.logs();
    assert_eq!(logs.len(), 3, "{logs:?}");
    for log in &logs {
        assert!(std::fs::metadata(log).unwrap().len() <= 1 << 20);
    }
    let last = events(logs.last().unwrap());
    let object = &last.last().unwrap()["requestObject"];
    assert_eq!(
        object["data"]["large"].as_str().map(str::len),
        Some(large.len())
    );
}

#[test]
fn a_changed_policy_counts_without_a_restart_and_a_bad_one_does_not() {
    let files = Files::new("[{level: None}]");
    let Some(kubectl) = files.start(&["--log=info"]) else {
        return;
    };
    let is_logged = |name: &str| {
        kubectl.says(&format!("create configmap {name}"), &["created"]);
        let events = events(&files.path("audit.log"));
        events
            .iter()
            .any(|event| event["objectRef"]["name"] == name)
    };
    assert!(!is_logged("first"));
    files.write_policy("[{level: Everything}]");
    let waits = Instant::now();
    let refused = "audit_policy_config_controller_automatic_reloads_total{status=\"failure\"}";
    while !kubectl.gives("get --raw /metrics").contains(refused) {
        assert!(waits.elapsed() < PATIENCE, "the policy is never read again");
        sleep(Duration::from_millis(100));
    }
    assert!(!is_logged("second"));
    files.write_policy("[{level: Metadata}]");
    let mut at = 0;
    while !is_logged(&format!("later-{at}")) {
        assert!(waits.elapsed() < PATIENCE, "the policy is never read again");
        at += 1;
    }
    let (_, log) = kubectl.server.stop();
    assert!(log.contains("rules[0].level"), "{log}");
}

#[test]
fn settings_that_make_no_sense_end_the_start_with_the_reason() {
    let files = Files::new("[{level: Everything}]");
    let policy = files.path("policy.yaml");
    let policy = policy.to_str().unwrap();
    let good = Files::new("[{level: Metadata}]");
    let good = good.path("policy.yaml");
    let good = good.to_str().unwrap();
    for (flags, reason) in [
        (vec!["--audit-log-path=-"], "--audit-policy-file"),
        (vec!["--audit-policy-file", good], "--audit-log-path"),
        (
            vec!["--audit-policy-file", policy, "--audit-log-path=-"],
            "rules[0].level",
        ),
        (
            vec!["--audit-policy-file=/nowhere", "--audit-log-path=-"],
            "/nowhere",
        ),
        (
            vec!["--audit-policy-file", good, "--audit-log-path=/nowhere/log"],
            "/nowhere/log",
        ),
        (
            vec![
                "--audit-policy-file",
                good,
                "--audit-webhook-config-file=/nowhere",
            ],
            "/nowhere",
        ),
        (vec!["--audit-log-mode=sometimes"], "sometimes"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let mut command = bareboat(["serve", "--in-memory", "--bind=127.0.0.1:0"]);
        let output = run(command.arg("--data-dir").arg(&data).args(&flags), "");
        assert!(!output.status.success(), "{flags:?}");
        assert!(
            output.stderr.contains(reason),
            "{flags:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn events_can_go_to_standard_output() {
    let files = Files::new("[{level: Metadata}]");
    let policy = files.path("policy.yaml");
    let home = crate::server::Home::with(&[
        "--audit-policy-file",
        policy.to_str().unwrap(),
        "--audit-log-path=-",
    ]);
    let server = home.serve();
    assert!(
        server.greeting.contains("\"kind\":\"Event\""),
        "{}",
        server.greeting
    );
}
