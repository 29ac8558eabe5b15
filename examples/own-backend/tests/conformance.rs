//! Runs the conformance suite of storage engines, and tests an incomplete line.

use bareboat::storage::Backend;
use own_backend::TextLog;
use std::sync::Arc;

fn place() -> impl bareboat_storage::conformance::Site {
    let folder = tempfile::tempdir().expect("a temporary folder");
    move || -> Arc<dyn Backend> {
        let log = TextLog::open(folder.path().join("log"));
        Arc::new(log.expect("it opens"))
    }
}

bareboat_storage::conformance!(place);

#[test]
fn an_incomplete_line_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let whole = r#"{"batch":[{"revision":7,"prev":0,"cluster":"","resource":"core/configmaps","key":"a","actor":null,"value":null}]}"#;
    std::fs::write(&path, format!("{whole}\n{{\"batch\":[{{\"revis")).unwrap();
    let log = TextLog::open(&path).unwrap();
    assert_eq!(log.mark().unwrap().last, 7);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("{whole}\n")
    );
}
