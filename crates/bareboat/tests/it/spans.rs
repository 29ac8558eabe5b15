//! Spans of requests: which requests have them, what they contain, and the context for other servers.

use crate::aggregation;
use crate::backend::Speaks;
use crate::support::*;
use crate::webhooks::hook::{Reply, TestHook, configure};
use bareboat::server::spans::{ChildSpan, RequestSpans, SpanExporter, TraceId};
use bareboat_testing::{Builder, TestServer};
use std::sync::{Arc, Mutex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// Keeps all spans. Requests without a context are not sampled.
#[derive(Default)]
struct Kept(Mutex<Vec<RequestSpans>>);

impl SpanExporter for Kept {
    fn samples(&self, _: TraceId, parent: Option<bool>) -> bool {
        parent.unwrap_or(false)
    }

    fn export(&self, request: RequestSpans) {
        self.0.lock().unwrap().push(request);
    }

    fn flush(&self) -> bareboat::api::kind::BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Kept {
    fn take(&self) -> Vec<RequestSpans> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn kept() -> (Arc<Kept>, impl FnOnce(Builder) -> Builder) {
    let kept = Arc::new(Kept::default());
    let exporter = kept.clone();
    (kept, move |builder: Builder| {
        builder.with(move |builder| builder.spans(exporter.clone()))
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn child<'a>(request: &'a RequestSpans, name: &str) -> &'a ChildSpan {
    let found = request.children.iter().find(|child| child.name == name);
    found.unwrap_or_else(|| panic!("{name} is missing: {request:?}"))
}

#[tokio::test]
async fn a_write_has_spans_of_its_stages_and_webhooks() {
    let (kept, with_spans) = kept();
    let server = with_spans(TestServer::builder().without_controllers())
        .start()
        .await;
    let hook = TestHook::start(|_, _| Reply::Review(json!({"allowed": true}))).await;
    for kind in ["Mutating", "Validating"] {
        let webhook = hook.webhook(&format!("/{}", kind.to_lowercase()), "", &["configmaps"]);
        configure(&server, kind, "hooks", &[webhook]).await;
    }
    kept.take();
    let body = config_map("a").to_string();
    let made = server
        .send("POST", MAPS, &[("traceparent", PARENT)], body)
        .await;
    let made = made.expect(201);
    let spans = kept.take();
    let [request] = &spans[..] else {
        panic!("one request is sampled: {spans:?}");
    };
    assert_eq!(request.name, "create configmaps");
    assert_eq!(hex(&request.context.trace.0), TRACE);
    assert_eq!(
        request.parent.map(|span| hex(&span.0)).as_deref(),
        Some("00f067aa0ba902b7")
    );
    assert_eq!(request.code, 201);
    let attribute = |name: &str| {
        let found = request.attributes.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| text.as_str())
    };
    assert_eq!(attribute("audit.id"), Some(made.header("audit-id")));
    assert_eq!(attribute("k8s.namespace.name"), Some("default"));
    for stage in [
        "authentication",
        "authorization",
        "decoding",
        "validation",
        "commit",
    ] {
        let stage = child(request, stage);
        assert!(
            stage.from <= stage.to && stage.to <= request.took,
            "{request:?}"
        );
    }
    let calls = hook.take_calls();
    assert_eq!(calls.len(), 2);
    for call in calls {
        let name = call
            .target
            .split('?')
            .next()
            .unwrap()
            .trim_matches('/')
            .to_owned();
        let span = child(request, &format!("webhook {name}.hooks.example.com"));
        assert!(span.is_call && !span.failed);
        assert_eq!(
            call.traceparent,
            format!("00-{TRACE}-{}-01", hex(&span.id.0))
        );
    }
    // Neither names of objects nor unknown paths are part of a name.
    server
        .send("GET", "/nowhere/else", &[("traceparent", PARENT)], "")
        .await;
    assert_eq!(kept.take()[0].name, "get");
}

#[tokio::test]
async fn a_context_that_is_not_sampled_is_passed_on() {
    let (kept, with_spans) = kept();
    let server = with_spans(TestServer::builder().without_controllers())
        .start()
        .await;
    let hook = TestHook::start(|_, _| Reply::Review(json!({"allowed": true}))).await;
    let webhook = hook.webhook("/hook", "", &["configmaps"]);
    configure(&server, "Validating", "hooks", &[webhook]).await;
    let body = config_map("a").to_string();
    let sent = [("traceparent", UNSAMPLED)];
    server.send("POST", MAPS, &sent, body).await.expect(201);
    let calls = hook.take_calls();
    let context = &calls[0].traceparent;
    assert!(
        context.starts_with(&format!("00-{TRACE}-")) && context.ends_with("-00"),
        "{context}"
    );
    // A request without a context has none, and an invalid one is ignored.
    server.post(MAPS, &config_map("b")).await.expect(201);
    let body = config_map("c").to_string();
    server
        .send("POST", MAPS, &[("traceparent", "odd")], body)
        .await
        .expect(201);
    assert!(
        hook.take_calls()
            .iter()
            .all(|call| call.traceparent.is_empty())
    );
    assert!(kept.take().is_empty());
}

#[tokio::test]
async fn an_aggregated_server_gets_the_context() {
    let (kept, with_spans) = kept();
    let (server, _backend) = aggregation::start_with(Speaks::Http1, with_spans).await;
    kept.take();
    let path = "/apis/agg.example.com/v1/namespaces/default/things";
    let sent = [("traceparent", PARENT)];
    let said = server.send("GET", path, &sent, "").await.expect(200).json();
    let spans = kept.take();
    let span = child(&spans[0], "aggregated server /apis/agg.example.com/v1");
    let expected = format!("00-{TRACE}-{}-01", hex(&span.id.0));
    assert_eq!(said["headers"]["traceparent"], json!([expected]));
}
