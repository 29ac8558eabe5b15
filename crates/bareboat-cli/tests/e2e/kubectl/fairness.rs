//! Flow schemas and priority levels.

use super::Kubectl;

#[test]
fn kubectl_shows_flow_schemas_and_priority_levels() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let schemas = kubectl.gives("get flowschemas");
    let head: Vec<&str> = schemas
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let columns = [
        "NAME",
        "PRIORITYLEVEL",
        "MATCHINGPRECEDENCE",
        "DISTINGUISHERMETHOD",
        "AGE",
        "MISSINGPL",
    ];
    assert_eq!(head, columns, "{schemas}");
    assert_eq!(schemas.lines().count(), 12, "{schemas}");
    let row = schemas
        .lines()
        .find(|line| line.starts_with("service-accounts "));
    let row: Vec<&str> = row.unwrap_or("").split_whitespace().collect();
    assert_eq!(
        row[..4],
        ["service-accounts", "workload-low", "9000", "ByUser"],
        "{schemas}"
    );
    assert_eq!(row[5], "False", "{schemas}");
    let levels = kubectl.gives("get prioritylevelconfigurations");
    let row = levels
        .lines()
        .find(|line| line.starts_with("workload-low "));
    let row: Vec<&str> = row.unwrap_or("").split_whitespace().collect();
    assert_eq!(
        row[..6],
        ["workload-low", "Limited", "100", "128", "6", "50"],
        "{levels}"
    );
    let dump = kubectl.gives("get --raw /debug/api_priority_and_fairness/dump_priority_levels");
    assert_eq!(dump.lines().count(), 9, "{dump}");
}
