//! Distributed tracing: spans arrive at a collector by OTLP over HTTP, and a collector that is gone harms nothing.

use crate::process::run;
use crate::server::{Home, Running, bareboat};
use crate::tools;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use serde_json::Value;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The head and the body of each request.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that keeps what it gets.
struct Collector {
    port: u16,
    got: Requests,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Requests::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), kept.clone());
                std::thread::spawn(move || {
                    let mut writer = stream.try_clone().unwrap();
                    let mut reader = BufReader::new(stream);
                    while let Some(request) = read(&mut reader) {
                        kept.lock().unwrap().push(request);
                        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                        writer.write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        Collector { port, got }
    }
}

/// Reads a request with a Content-Length; `None` at the end of the connection.
fn read(reader: &mut impl std::io::BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut len) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Decodes requests with the published messages of OpenTelemetry.
fn decode(python: PathBuf, home: &Home, bodies: &[(String, Vec<u8>)]) -> Vec<Value> {
    let mut command = Command::new(python);
    command.arg(tools::workspace().join("tests/python/read_spans.py"));
    for (number, (_, body)) in bodies.iter().enumerate() {
        let file = home.path().join(format!("spans-{number}"));
        std::fs::write(&file, body).unwrap();
        command.arg(file);
    }
    let output = run(&mut command, "");
    assert!(output.status.success(), "{}", output.all());
    let lines = output.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_the_spans_of_requests() {
    let Some(python) = tools::python() else {
        return;
    };
    let collector = Collector::start();
    let endpoint = format!("http://127.0.0.1:{}", collector.port);
    let headers = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(headers.path(), "X-Tenant: yard\n").unwrap();
    let home = Home::with(&[
        "--otlp-endpoint",
        &endpoint,
        "--otlp-sample-ratio",
        "0",
        "--otlp-headers-file",
        headers.path().to_str().unwrap(),
    ]);
    let server = home.serve();
    let client = home.client().await;
    let send = async |sampled: bool, name: &str| {
        let context = format!("00-{TRACE}-00f067aa0ba902b7-0{}", u8::from(sampled));
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"a":"hunter2"}}}}"#);
        let request = http::Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .header("traceparent", context)
            .body(body.into_bytes())
            .unwrap();
        client.request::<Value>(request).await.unwrap();
    };
    send(true, "sampled").await;
    send(false, "not-sampled").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.list(&ListParams::default()).await.unwrap();
    // What is not sent yet is sent when the server stops.
    assert!(tokio::task::block_in_place(|| server.stop()).0.success());
    let got = std::mem::take(&mut *collector.got.lock().unwrap());
    assert!(!got.is_empty(), "nothing arrived");
    for (head, body) in &got {
        assert!(head.starts_with("post /v1/traces "), "{head}");
        assert!(
            head.contains("content-type: application/x-protobuf"),
            "{head}"
        );
        assert!(head.contains("x-tenant: yard"), "{head}");
        let text = String::from_utf8_lossy(body);
        assert!(!text.contains("hunter2"), "a body is in a span");
    }
    let spans = tokio::task::block_in_place(|| decode(python, &home, &got));
    let requests: Vec<&Value> = spans
        .iter()
        .filter(|span| span["kind"] == "SPAN_KIND_SERVER")
        .collect();
    assert_eq!(requests.len(), 1, "one request is sampled: {spans:?}");
    let request = requests[0];
    assert_eq!(request["name"], "create configmaps");
    assert_eq!(request["trace"], TRACE);
    assert_eq!(request["parent"], "00f067aa0ba902b7");
    assert_eq!(request["attributes"]["http.response.status_code"], 201);
    assert_eq!(request["attributes"]["k8s.object.name"], Value::Null);
    assert_eq!(request["resource"]["service.name"], "bareboat");
    let commit = spans.iter().find(|span| span["name"] == "commit");
    let commit = commit.expect("the stages are children of the request");
    assert_eq!(commit["parent"], request["id"]);
    assert!(commit["nanoseconds"].as_u64() <= request["nanoseconds"].as_u64());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_harms_no_request() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let home = Home::new();
    let mut command = bareboat(["serve", "--data-dir"]);
    command.arg(home.data()).args(["--bind", &home.address()]);
    // The variables of OpenTelemetry do the same as the flags.
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_BSP_MAX_QUEUE_SIZE", "2");
    let mut server = Running::start(command);
    server.ready();
    let client = home.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for _ in 0..50 {
        maps.list(&ListParams::default()).await.unwrap();
    }
    let dropped = async || {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let text = client.request_text(request).await.unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(r#"bareboat_otlp_spans_total{outcome="dropped"} "#));
        line.unwrap().parse::<u64>().unwrap()
    };
    let deadline = std::time::Instant::now() + crate::process::PATIENCE;
    while dropped().await == 0 {
        assert!(
            std::time::Instant::now() < deadline,
            "nothing is counted as dropped"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let (status, output) = tokio::task::block_in_place(|| server.stop());
    assert!(status.success());
    let warnings = output.matches("the collector does not take spans").count();
    assert_eq!(warnings, 1, "{output}");
}
