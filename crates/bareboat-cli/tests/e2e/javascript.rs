//! The official JavaScript client, see tests/javascript.

use crate::{suite, tools};

#[test]
fn the_javascript_client_works() {
    if !tools::prepared("javascript", "scripts/javascript.sh") {
        return;
    }
    let output = suite::run_script("javascript.sh", &[]);
    // The test runner of Node.js ends with lines such as `# pass 14`.
    let count = |what: &str| -> usize {
        let line = output
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(what));
        line.and_then(|number| number.trim().parse().ok())
            .unwrap_or(0)
    };
    let good = count("# pass ");
    assert!(good > 0 && count("# fail ") == 0, "{}", output.all());
    assert_eq!(count("# skipped "), 0, "{}", output.all());
    suite::remark("javascript", &format!("{good} passed"));
}
