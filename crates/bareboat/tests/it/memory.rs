//! Memory: a list is streamed, so its size does not matter for memory.

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;
use http_body_util::BodyExt as _;

const OBJECTS: usize = 20_000;
const FILLER: usize = 1_000;

/// Returns the resident memory of this process, in bytes.
pub(crate) fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Fills the server with many concurrent writers.
async fn fill(server: &TestServer) {
    let filler = "x".repeat(FILLER);
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..32 {
        let client = server.server().clone();
        let filler = filler.clone();
        tasks.spawn(async move {
            let user = bareboat::api::kind::User {
                name: "filler".into(),
                groups: vec!["system:masters".into()],
                ..Default::default()
            };
            for number in (lane..OBJECTS).step_by(32) {
                let mut object = config_map(&format!("m{number:05}"));
                object["data"]["filler"] = json!(filler);
                let body = bytes::Bytes::from(object.to_string());
                let request = request("POST", MAPS, &[], body);
                let request = request.map(bareboat::server::request::body::RequestBody::Memory);
                assert_eq!(client.call(user.clone(), request).await.status(), 201);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// Reads a body without keeping it; returns its length and the peak growth of memory.
async fn drain(response: http::Response<hyper::body::Incoming>, base: u64) -> (usize, u64) {
    let mut body = response.into_body();
    let (mut length, mut highest) = (0, 0);
    while let Some(frame) = soon(body.frame()).await {
        length += frame.unwrap().data_ref().map_or(0, bytes::Bytes::len);
        highest = highest.max(resident().unwrap_or(base).saturating_sub(base));
    }
    (length, highest)
}

/// The variable that is set in the measuring process.
const ALONE: &str = "BAREBOAT_TEST_ALONE";

/// Runs a test in its own process, so that other tests' allocations are not measured.
pub(crate) fn alone(name: &str, test: impl Future<Output = ()>) {
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(test);
    }
    let program = std::env::current_exe().unwrap();
    let child = std::process::Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let complained = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn a_list_of_twenty_thousand_objects_streams() {
    alone(
        "memory::a_list_of_twenty_thousand_objects_streams",
        measure(),
    );
}

async fn measure() {
    let server = TestServer::listening().await;
    fill(&server).await;
    let mut connection = Connection::http2(&server, As::Admin).await;
    // The first reader may fill caches; later ones must not allocate.
    let warm = connection.start("GET", MAPS, &[], "").await;
    let (length, _) = drain(warm, 0).await;
    assert!(length > OBJECTS * FILLER, "{length}");
    let Some(base) = resident() else {
        println!("memory cannot be measured here; nothing was tested");
        return;
    };
    let mut readers = Vec::new();
    // One connection each: on a shared one, unread responses would block the one that is read.
    for _ in 0..4 {
        let mut connection = Connection::http2(&server, As::Admin).await;
        readers.push((connection.start("GET", MAPS, &[], "").await, connection));
    }
    for (reader, _connection) in readers {
        let (again, growth) = drain(reader, base).await;
        assert_eq!(again, length);
        assert!(
            growth < length as u64 / 2,
            "memory grew by {growth} bytes for four lists of {length}"
        );
    }
}
