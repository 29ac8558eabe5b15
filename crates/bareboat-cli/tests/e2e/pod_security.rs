//! The checks of pods against those of k8s.io/pod-security-admission, on all of its fixtures and word by word.

use crate::tools;
use bareboat::api::Value;
use bareboat::builtin::admission::{LevelVersion, Violations};
use std::process::Command;

/// How many fixtures there are at least: fewer mean that some were not found.
const AT_LEAST: usize = 4000;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap()
}

#[test]
fn pods_are_judged_as_by_the_library_of_kubernetes() {
    let Some(program) = tools::peer("pod-security") else {
        return;
    };
    let fixtures = program.with_file_name("pod-security-fixtures");
    let output = Command::new(program).arg(fixtures).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let (mut fixtures, mut compared) = (0, 0);
    for line in output.stdout.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let line = bareboat_wire::json::parse(line).unwrap().value;
        let pod = line.get("pod").unwrap();
        let fixture = text(&line, "fixture");
        let own = LevelVersion::parse(text(&line, "level"), text(&line, "version")).unwrap();
        let passes = line.get("passes").and_then(Value::as_bool).unwrap();
        assert_eq!(Violations::of(pod, own).is_empty(), passes, "{fixture}");
        fixtures += 1;
        let findings = line.get("findings").and_then(Value::as_object).unwrap();
        for (policy, finding) in findings.iter() {
            let (level, version) = policy.split_once(':').unwrap();
            let found = Violations::of(pod, LevelVersion::parse(level, version).unwrap());
            let found = (found.reasons(), found.details());
            let expected = (text(finding, "reasons"), text(finding, "details"));
            assert_eq!((&*found.0, &*found.1), expected, "{fixture} {policy}");
            compared += 1;
        }
    }
    assert!(
        fixtures > AT_LEAST,
        "{fixtures} fixtures, {compared} comparisons"
    );
}
