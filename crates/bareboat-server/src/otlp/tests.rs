//! Sampling, settings of the environment, and encoded bytes.

use super::encode::encode;
use super::*;
use crate::spans::{ChildSpan, SpanId, TraceContext};
use std::collections::HashMap;
use std::time::SystemTime;

fn environment(pairs: &[(&str, &str)]) -> Result<Option<OtlpSettings>, EnvironmentError> {
    let pairs: HashMap<String, String> = pairs
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    OtlpSettings::from_environment(&|name| pairs.get(name).cloned())
}

#[test]
fn without_an_endpoint_nothing_is_sent() {
    assert!(environment(&[]).expect("valid").is_none());
    let off = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    assert!(environment(&off).expect("valid").is_none());
}

#[test]
fn variables_of_opentelemetry_are_used() {
    let all = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20x, tenant=a",
        ),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment=test,service.name=other",
        ),
        ("OTEL_SERVICE_NAME", "yard"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let settings = environment(&all).expect("valid").expect("an endpoint");
    assert_eq!(settings.url, "http://127.0.0.1:4318/v1/traces");
    assert_eq!(
        settings.headers[0],
        ("authorization".into(), "Bearer x".into())
    );
    assert_eq!(settings.timeout, Duration::from_millis(1500));
    assert_eq!(settings.delay, Duration::from_millis(100));
    assert_eq!(settings.ratio, 0.25);
    assert!(settings.follows_parents);
    let named: Vec<_> = settings
        .resource
        .iter()
        .filter(|(name, _)| name == "service.name")
        .collect();
    assert_eq!(named, [&("service.name".to_owned(), "yard".to_owned())]);
}

#[test]
fn wrong_variables_are_named_without_credentials() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "hunter2"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1s"),
    ] {
        let all = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"), (name, value)];
        let error = environment(&all).expect_err(name).to_string();
        assert!(
            error.contains(name) && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn the_ratio_decides_by_the_id_of_the_trace() {
    let with = |ratio: f64| {
        let mut settings = OtlpSettings::new("http://127.0.0.1:1/v1/traces");
        settings.ratio = ratio;
        Otlp::new(&settings).expect("valid")
    };
    let (none, some, all) = (with(0.0), with(0.25), with(1.0));
    let ids: Vec<TraceId> = (0..4000).map(|_| TraceId::random()).collect();
    assert!(
        ids.iter()
            .all(|id| all.samples(*id, None) && !none.samples(*id, None))
    );
    let sampled = ids.iter().filter(|id| some.samples(**id, None)).count();
    assert!(none.samples(ids[0], Some(true)) && !all.samples(ids[0], Some(false)));
    assert!((600..1400).contains(&sampled), "{sampled} of 4000");
}

#[test]
fn a_full_buffer_drops_spans_and_counts_them() {
    let mut settings = OtlpSettings::new("http://127.0.0.1:1/v1/traces");
    settings.buffer = 1;
    let otlp = Otlp::new(&settings).expect("valid");
    // There is no runtime, so nothing takes them.
    otlp.export(request());
    otlp.export(request());
    let families = otlp.collector().collect();
    let text = prometheus::TextEncoder::new()
        .encode_to_string(&families)
        .expect("text");
    assert!(
        text.contains("bareboat_otlp_spans_total{outcome=\"dropped\"} 2"),
        "{text}"
    );
}

fn request() -> RequestSpans {
    RequestSpans {
        context: TraceContext {
            trace: TraceId([1; 16]),
            span: SpanId([2; 8]),
            sampled: true,
        },
        parent: None,
        name: "get pods".to_owned(),
        started: SystemTime::UNIX_EPOCH,
        took: Duration::from_nanos(300),
        code: 200,
        attributes: Vec::new(),
        children: vec![ChildSpan {
            id: SpanId([3; 8]),
            name: "authentication".to_owned(),
            is_call: false,
            from: Duration::ZERO,
            to: Duration::from_nanos(1),
            failed: false,
            attributes: Vec::new(),
        }],
    }
}

#[test]
fn a_span_is_encoded_as_otlp_defines_it() {
    let bytes = encode(&[], &[request()]);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("get pods") && text.contains("authentication"));
    // trace_id is field 1 with 16 bytes, span_id field 2 with 8, parent_span_id field 4 with 8.
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(&[&[0x0a, 16][..], &[1; 16]].concat()));
    assert!(has(&[&[0x12, 8][..], &[3; 8]].concat()));
    assert!(has(&[&[0x22, 8][..], &[2; 8]].concat()));
}
