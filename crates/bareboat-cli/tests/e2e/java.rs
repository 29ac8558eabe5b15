//! The Java clients in one JVM: fabric8, the Java Operator SDK and the official client, see
//! tests/java.

use crate::{suite, tools};

#[test]
fn the_java_clients_work() {
    if !tools::prepared("java", "scripts/java.sh") {
        return;
    }
    let output = suite::run_script("java.sh", &[]);
    // JUnit ends with lines such as `[        54 tests successful      ]`.
    let count = |what: &str| -> usize {
        let line = output.stdout.lines().find(|line| line.contains(what));
        let number = line.and_then(|line| line.trim_matches(['[', ']', ' ']).split(' ').next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let (good, bad) = (count("tests successful"), count("tests failed"));
    assert!(good > 0 && bad == 0, "{}", output.all());
    assert_eq!(count("tests aborted"), 0, "{}", output.all());
    suite::remark("java", &format!("{good} passed"));
}
