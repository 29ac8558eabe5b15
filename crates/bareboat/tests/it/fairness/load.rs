//! Fairness under load, over real sockets.

use super::{LEVELS, SCHEMAS, level, schema};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::api::Status;
use bareboat::api::admission::{Lookup, Review, Validator};
use bareboat::api::kind::BoxFuture;
use bareboat::prelude::AllowAll;
use bareboat_testing::TestServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

const NOISY: (&str, &str) = ("authorization", "Bearer noisy-token");
const QUIET: (&str, &str) = ("authorization", "Bearer quiet-token");
const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

async fn start(reads: usize, writes: usize) -> TestServer {
    TestServer::builder()
        .with(move |builder| {
            // Requests wait in queues for a quarter of it. A slow build on a busy machine needs longer than usual.
            let limit = Duration::from_secs(20 * 60);
            let builder = builder.request_timeout(limit);
            builder.max_in_flight(reads, writes).authorizer(AllowAll)
        })
        .token("noisy-token", "noisy", &[])
        .token("quiet-token", "quiet", &[])
        .default_flow_control()
        .listening()
        .start()
        .await
}

/// A validator that blocks writes of objects whose names begin with `held`, while they hold their seats.
struct Gate {
    reached: Notify,
    open: Semaphore,
}

impl Validator for Gate {
    fn name(&self) -> &'static str {
        "Gate"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let object = review.object.as_ref();
        let held = object.is_some_and(|object| object.name().starts_with("held"));
        Box::pin(async move {
            if held {
                self.reached.notify_one();
                let permit = self.open.acquire().await;
                permit.map_err(Status::internal)?.forget();
            }
            Ok(())
        })
    }
}

fn gate(server: &TestServer) -> Arc<Gate> {
    let gate = Arc::new(Gate {
        reached: Notify::new(),
        open: Semaphore::new(0),
    });
    let validator: Arc<dyn Validator> = gate.clone();
    server.server().validate_with(&validator);
    gate
}

/// Sends a request on its own connection.
async fn send(
    server: &TestServer,
    method: &'static str,
    path: &str,
    who: (&'static str, &'static str),
    body: String,
) -> tokio::task::JoinHandle<Answer> {
    let mut connection = Connection::http1(server, As::Nobody).await;
    let path = path.to_owned();
    tokio::spawn(async move { connection.send(method, &path, &[who], body).await })
}

/// Waits until a number of requests is queued.
async fn until_waiting(server: &TestServer, count: usize) -> String {
    let path = "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1";
    let found = async {
        loop {
            let text = server.get(path).await.expect(200).text();
            if text.lines().count() == count + 1 {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(found).await
}

#[tokio::test]
async fn responses_name_the_schema_and_the_level_of_a_request() {
    let server = start(400, 200).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let uid = async |collection: &str, name: &str| {
        let object = server.get(&format!("{collection}/{name}")).await.json();
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let answer = connection.send("GET", MAPS, &[QUIET], "").await.expect(200);
    assert_eq!(
        answer.header(SCHEMA_UID),
        uid(SCHEMAS, "global-default").await
    );
    assert_eq!(
        answer.header(LEVEL_UID),
        uid(LEVELS, "global-default").await
    );
    let mine = schema("mine", "workload-high", "quiet");
    let mine = server.post(SCHEMAS, &mine).await.expect(201).json();
    let answer = connection.send("GET", MAPS, &[QUIET], "").await.expect(200);
    assert_eq!(answer.header(SCHEMA_UID), mine["metadata"]["uid"]);
    assert_eq!(answer.header(LEVEL_UID), uid(LEVELS, "workload-high").await);
    let mut admin = Connection::http1(&server, As::Admin).await;
    let answer = admin.send("GET", MAPS, &[], "").await.expect(200);
    assert_eq!(answer.header(LEVEL_UID), uid(LEVELS, "exempt").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_lists_of_one_user_do_not_affect_another_user() {
    // As many seats as by default; the lists of one user still queue.
    let server = start(400, 200).await;
    for number in 0..300 {
        let mut object = config_map(&format!("map-{number}"));
        object["data"]["a"] = json!("x".repeat(200));
        server.post(MAPS, &object).await.expect(201);
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut noise = Vec::new();
    for _ in 0..10 {
        for _ in 0..20 {
            let mut connection = Connection::http1(&server, As::Nobody).await;
            let stopped = stopped.clone();
            noise.push(tokio::spawn(async move {
                let (mut served, mut refused) = (0, 0);
                while !*stopped.borrow() {
                    let headers = [NOISY, ("accept", TABLE)];
                    let answer = connection.send("GET", MAPS, &headers, "").await;
                    match answer.code {
                        200 => served += 1,
                        429 => refused += 1,
                        other => panic!("{other}: {}", answer.text()),
                    }
                }
                (served, refused)
            }));
        }
    }
    // The load has started when requests are queued.
    let waits = async {
        let path = "/debug/api_priority_and_fairness/dump_requests";
        while server.get(path).await.text().lines().count() < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(waits).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for number in 0..30 {
        let one = format!("{MAPS}/map-{number}");
        let answer = soon(connection.send("GET", &one, &[QUIET], "")).await;
        answer.expect(200);
        let body = config_map(&format!("quiet-{number}")).to_string();
        let answer = soon(connection.send("POST", MAPS, &[QUIET], body)).await;
        answer.expect(201);
        let health = soon(connection.send("GET", "/livez", &[], "")).await;
        health.expect(200);
    }
    stop.send_replace(true);
    // Nobody is refused or starved: the noisy user waits, and each connection has its turn.
    for one in noise {
        let (served, refused) = soon(one).await.unwrap();
        assert!(
            served > 0,
            "a connection of the noisy user was never served"
        );
        assert_eq!(refused, 0, "the noisy user waits and is not refused");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_rejects_and_more_seats_release_queued_requests() {
    let server = start(10, 10).await;
    let gate = gate(&server);
    let queue =
        json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}});
    let mut narrow = level("narrow", 1, queue);
    narrow["spec"]["limited"]["borrowingLimitPercent"] = json!(0);
    server.post(LEVELS, &narrow).await.expect(201);
    server
        .post(SCHEMAS, &schema("narrow", "narrow", "noisy"))
        .await
        .expect(201);
    // One request has the only seat.
    let held = config_map("held").to_string();
    let held = send(&server, "POST", MAPS, NOISY, held).await;
    soon(gate.reached.notified()).await;
    // One request is queued.
    let waiting = send(&server, "GET", MAPS, NOISY, String::new()).await;
    let rows = until_waiting(&server, 1).await;
    let row = rows.lines().nth(1).unwrap();
    for part in ["narrow,", "noisy,", "list,", "configmaps,", "default,"] {
        assert!(row.contains(part), "{rows}");
    }
    // The queue is full.
    let refused = send(&server, "GET", MAPS, NOISY, String::new()).await;
    let refused = soon(refused).await.unwrap().expect(429);
    assert_eq!(
        refused.text(),
        "Too many requests, please try again later.\n"
    );
    assert_eq!(refused.header("retry-after"), "1");
    assert!(refused.header("content-type").starts_with("text/plain"));
    assert!(!refused.header(LEVEL_UID).is_empty());
    // Other users are not affected.
    let other = send(&server, "GET", MAPS, QUIET, String::new()).await;
    soon(other).await.unwrap().expect(200);
    let levels = server
        .get("/debug/api_priority_and_fairness/dump_priority_levels")
        .await;
    let levels = levels.expect(200).text();
    let mut row = levels.lines().filter(|line| line.starts_with("narrow,"));
    let row: Vec<&str> = row.next().unwrap().split(',').map(str::trim).collect();
    assert_eq!(
        row[..6],
        ["narrow", "1", "false", "false", "1", "1"],
        "{levels}"
    );
    let queues = server
        .get("/debug/api_priority_and_fairness/dump_queues")
        .await;
    assert!(queues.expect(200).text().contains("narrow,"));
    let metrics = server.get("/metrics").await.text();
    for line in [
        "apiserver_flowcontrol_rejected_requests_total{flow_schema=\"narrow\",priority_level=\"narrow\",reason=\"queue-full\"} 1",
        "apiserver_flowcontrol_current_inqueue_requests{flow_schema=\"narrow\",priority_level=\"narrow\"} 1",
        "apiserver_flowcontrol_current_executing_requests{flow_schema=\"narrow\",priority_level=\"narrow\"} 1",
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"narrow\"} 1",
        "apiserver_flowcontrol_current_limit_seats{priority_level=\"exempt\"}",
        "# TYPE apiserver_flowcontrol_request_wait_duration_seconds histogram",
    ] {
        let sorted = |line: &str| {
            let mut parts: Vec<String> = line.split(['{', '}', ',']).map(str::to_owned).collect();
            parts.sort();
            parts.join(" ")
        };
        let wanted = sorted(line);
        let found = metrics
            .lines()
            .any(|known| sorted(known) == wanted || known.starts_with(line));
        assert!(found, "{line}\n{metrics}");
    }
    // With more seats, the queued request runs although the first has not ended.
    let more = json!({"spec": {"limited": {"nominalConcurrencyShares": 1000}}});
    server
        .patch(&format!("{LEVELS}/narrow"), MERGE, &more)
        .await
        .expect(200);
    soon(waiting).await.unwrap().expect(200);
    gate.open.add_permits(1);
    soon(held).await.unwrap().expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_level_without_queues_rejects_at_once() {
    let server = start(10, 10).await;
    let gate = gate(&server);
    let mut strict = level("strict", 1, json!({"type": "Reject"}));
    strict["spec"]["limited"]["borrowingLimitPercent"] = json!(0);
    server.post(LEVELS, &strict).await.expect(201);
    server
        .post(SCHEMAS, &schema("strict", "strict", "noisy"))
        .await
        .expect(201);
    let held = send(&server, "POST", MAPS, NOISY, config_map("held").to_string()).await;
    soon(gate.reached.notified()).await;
    let refused = send(&server, "GET", MAPS, NOISY, String::new()).await;
    soon(refused).await.unwrap().expect(429);
    // A watch needs a seat to start, too.
    let watch = send(
        &server,
        "GET",
        &format!("{MAPS}?watch=1"),
        NOISY,
        String::new(),
    )
    .await;
    soon(watch).await.unwrap().expect(429);
    // Health checks need no seat.
    let health = send(&server, "GET", "/livez", NOISY, String::new()).await;
    soon(health).await.unwrap().expect(200);
    gate.open.add_permits(1);
    soon(held).await.unwrap().expect(201);
    // An open watch holds no seat.
    let mut watching = Connection::http1(&server, As::Nobody).await;
    let path = format!("{MAPS}?watch=1&timeoutSeconds=300");
    let response = watching.start("GET", &path, &[NOISY], "").await;
    assert_eq!(response.status(), 200);
    let other = send(&server, "GET", MAPS, NOISY, String::new()).await;
    soon(other).await.unwrap().expect(200);
}

#[tokio::test]
async fn dumps_need_permission() {
    let server = TestServer::builder()
        .token("quiet-token", "quiet", &[])
        .listening()
        .start()
        .await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for dump in ["dump_priority_levels", "dump_queues", "dump_requests"] {
        let path = format!("/debug/api_priority_and_fairness/{dump}");
        connection
            .send("GET", &path, &[QUIET], "")
            .await
            .expect(403);
        let text = server.get(&path).await.expect(200).text();
        assert!(text.starts_with("PriorityLevelName,"), "{text}");
    }
    server
        .get("/debug/api_priority_and_fairness/dump_all")
        .await
        .expect(404);
}

#[tokio::test]
async fn without_priority_and_fairness_there_are_plain_limits() {
    let server = TestServer::builder()
        .with(|builder| builder.without_flow_control())
        .listening()
        .start()
        .await;
    let mut connection = Connection::http1(&server, As::Admin).await;
    let answer = connection.send("GET", MAPS, &[], "").await.expect(200);
    assert_eq!(answer.header(LEVEL_UID), "");
    server
        .get("/debug/api_priority_and_fairness/dump_queues")
        .await
        .expect(404);
    let metrics = server.get("/metrics").await.text();
    assert!(!metrics.contains("apiserver_flowcontrol_"));
}
