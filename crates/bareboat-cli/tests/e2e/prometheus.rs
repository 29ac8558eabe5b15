//! Prometheus: its tool runs the tests of the alert rules, and reads what a server serves.

use crate::kubectl::Kubectl;
use crate::process::run;
use crate::tools;
use std::process::Command;

#[test]
fn the_alert_rules_pass_their_tests() {
    let Some(promtool) = tools::promtool() else {
        return;
    };
    let folder = tools::workspace().join("deploy/prometheus");
    for arguments in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "rules_test.yaml"],
    ] {
        let mut command = Command::new(&promtool);
        let output = run(command.args(arguments).current_dir(&folder), "");
        assert!(output.status.success(), "{}", output.all());
        assert!(output.all().contains("SUCCESS"), "{}", output.all());
    }
    // Every alert has a test.
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (rules, tests) = (read("rules.yaml"), read("rules_test.yaml"));
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let mut count = 0;
    for alert in alerts {
        count += 1;
        assert!(
            tests.contains(&format!("alertname: {alert}\n")),
            "{alert} has no test"
        );
    }
    assert!(count > 10, "{count} alerts");
}

#[test]
fn metrics_of_the_store_follow_the_conventions_of_prometheus() {
    let (Some(promtool), Some(kubectl)) = (tools::promtool(), Kubectl::start()) else {
        return;
    };
    let text = kubectl.gives("get --raw /metrics");
    assert!(text.contains("\nbareboat_storage_epoch "), "{text}");
    let mut command = Command::new(&promtool);
    let output = run(command.args(["check", "metrics"]), &text);
    // Some names are those of Kubernetes, which do not follow all conventions. Exit code 3 is for such findings.
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}",
        output.all()
    );
    let said = output.all();
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("bareboat_s"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
}
