//! Audit modes: requests whose events cannot be written.

use super::*;
use std::path::Path;

/// Returns a server whose audit log cannot be written.
async fn broken(mode: Mode) -> TestServer {
    let log = AuditLog::open(Path::new("/dev/full"), Rotation::default()).unwrap();
    let audit = Audit::new(policy(
        "[{level: Metadata, resources: [{resources: [configmaps]}]}]",
    ));
    let audit = Arc::new(audit.log(log, mode, Batching::default()));
    let builder = TestServer::builder().without_controllers();
    builder
        .with(move |builder| builder.audit(audit.clone()))
        .start()
        .await
}

#[tokio::test]
async fn only_strict_audit_refuses_what_cannot_be_recorded() {
    for mode in [Mode::Batch, Mode::Blocking] {
        let server = broken(mode).await;
        server.post(MAPS, &config_map("a")).await.expect(201);
    }
    let server = broken(Mode::BlockingStrict).await;
    let refused = server.post(MAPS, &config_map("a")).await.expect(500);
    assert!(refused.text().contains("cannot be audited"));
    server.get("/api/v1/namespaces/default").await.expect(200);
    let metrics = server.get("/metrics").await.expect(200).text();
    for line in [
        "apiserver_audit_requests_rejected_total 1",
        "apiserver_audit_event_total 2",
        "apiserver_audit_error_total{plugin=\"log\"} 2",
        "apiserver_audit_level_total{level=\"Metadata\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}
