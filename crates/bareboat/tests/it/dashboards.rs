//! The dashboard and the alert rules in `deploy/` name only metrics that a server has. promtool runs the tests of the
//! rules, see the end-to-end tests of the program.

use crate::metrics::Scrape;
use crate::support::*;
use bareboat_testing::TestServer;
use std::collections::BTreeSet;
use std::path::Path;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All expressions of the dashboard: those of panels, and the metrics that variables are made from.
fn expressions_of_the_dashboard() -> Vec<String> {
    let dashboard = serde_json::from_str(&file("deploy/grafana/bareboat.json")).unwrap();
    let mut found = Vec::new();
    collect(&dashboard, &mut |key, value| match value {
        Value::String(text) if key == "expr" => found.push(text.clone()),
        Value::String(text) if key == "query" => {
            let metric = text.strip_prefix("label_values(");
            found.extend(metric.and_then(|rest| Some(rest.rsplit_once(',')?.0.to_owned())));
        }
        _ => {}
    });
    found
}

fn expressions_of_the_rules() -> Vec<String> {
    let rules = file("deploy/prometheus/rules.yaml");
    let rules = match bareboat_wire::yaml::parse(rules.as_bytes()) {
        Ok(rules) => serde_json::from_slice(&rules.value.to_json()).unwrap(),
        Err(error) => panic!("{error:?}"),
    };
    let mut found = Vec::new();
    collect(&rules, &mut |key, value| {
        if let (true, Value::String(text)) = (key == "expr", value) {
            found.push(text.clone());
        }
    });
    found
}

/// Shows every member of every object.
fn collect(value: &Value, see: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                see(key, member);
                collect(member, see);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, see)),
        _ => {}
    }
}

/// The metrics that an expression names: the words that are no label, function, operator or number.
fn metrics_of(expression: &str) -> BTreeSet<String> {
    let without = |text: &str, pattern: &str| {
        let pattern = regex::Regex::new(pattern).unwrap();
        pattern.replace_all(text, " ").into_owned()
    };
    let text = without(expression, r#""(\\.|[^"\\])*""#);
    let text = without(&text, r"\{[^}]*\}");
    let text = without(&text, r"\[[^\]]*\]");
    let lists = r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)";
    let text = without(&text, lists);
    let text = without(&text, r"[a-z_0-9]+\s*\(");
    let text = without(&text, r"\b(and|or|unless|bool|offset)\b");
    let word = regex::Regex::new(r"[a-zA-Z_:][a-zA-Z0-9_:]*").unwrap();
    let words = word.find_iter(&text);
    words.map(|word| word.as_str().to_owned()).collect()
}

#[test]
fn metrics_are_found_in_expressions() {
    let found = |expression: &str| -> Vec<String> { metrics_of(expression).into_iter().collect() };
    let quantile = r#"histogram_quantile(0.99, sum by (instance, le) (rate(a_bucket{job="x}", b=~"c"}[5m]))) > 0.5"#;
    assert_eq!(found(quantile), ["a_bucket"]);
    let several =
        "sum(a_total) / on (name) group_left (x) b_total and delta(c[15m]) > 0 or vector(0)";
    assert_eq!(found(several), ["a_total", "b_total", "c"]);
    assert_eq!(found("time() - d{job=\"e\"} < 7 * 86400"), ["d"]);
}

/// The names in the table of metrics in docs/operating.md.
fn documented() -> BTreeSet<String> {
    let page = file("docs/operating.md");
    let (_, table) = page.split_once("| metric | meaning |").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let name = regex::Regex::new(r"`([a-z_]+)`").unwrap();
    rows.filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| name.captures_iter(cell).map(|found| found[1].to_owned()))
        .collect()
}

#[tokio::test]
async fn dashboard_and_rules_name_metrics_that_exist() {
    let server = TestServer::builder().sqlite().listening().start().await;
    server.get("/api/v1/pods").await.expect(200);
    let scrape = Scrape::of(&server).await;
    let mut known = documented();
    assert!(known.len() > 50, "{known:?}");
    // Prometheus makes this one.
    known.insert("up".to_owned());
    known.extend(scrape.types.keys().cloned());
    for (expressions, least) in [
        (expressions_of_the_dashboard(), 60),
        (expressions_of_the_rules(), 15),
    ] {
        assert!(expressions.len() >= least, "{}", expressions.len());
        for expression in expressions {
            let metrics = metrics_of(&expression);
            assert!(!metrics.is_empty(), "{expression}");
            for metric in metrics {
                let parts = ["_bucket", "_sum", "_count"];
                let family = parts.iter().find_map(|part| metric.strip_suffix(part));
                let exists = known.contains(&metric) || family.is_some_and(|it| known.contains(it));
                assert!(exists, "{metric} does not exist: {expression}");
            }
        }
    }
}

#[tokio::test]
async fn every_metric_of_our_own_is_documented() {
    let server = TestServer::builder().sqlite().listening().start().await;
    let scrape = Scrape::of(&server).await;
    let documented = documented();
    let ours = |name: &&String| name.starts_with("bareboat_") || name.starts_with("workqueue_");
    let missing: Vec<_> = (scrape.types.keys().filter(ours))
        .filter(|name| !documented.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
