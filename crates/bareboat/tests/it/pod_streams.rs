//! exec, log, port-forward and proxy without a kubelet: what discovery shows, and what is refused before a connection.

use crate::support::{Requests as _, Value, json};
use bareboat_testing::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name, "image": "i"}))
        .collect();
    json!({"metadata": {"name": name}, "spec": {"containers": containers}})
}

#[tokio::test]
async fn discovery_shows_streams_with_their_options() {
    let server = TestServer::start().await;
    let list = server.get("/api/v1").await.expect(200).json();
    let part = |name: &str| {
        let mut all = list["resources"].as_array().unwrap().iter();
        let found = all.find(|part| part["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} is missing"));
        (found["kind"].clone(), found["verbs"].clone())
    };
    let connect = json!(["create", "get"]);
    let proxy = json!(["create", "delete", "get", "patch", "update"]);
    for (name, kind, verbs) in [
        ("pods/exec", "PodExecOptions", &connect),
        ("pods/attach", "PodAttachOptions", &connect),
        ("pods/portforward", "PodPortForwardOptions", &connect),
        ("pods/log", "Pod", &json!(["get"])),
        ("pods/proxy", "PodProxyOptions", &proxy),
        ("services/proxy", "ServiceProxyOptions", &proxy),
        ("nodes/proxy", "NodeProxyOptions", &proxy),
    ] {
        assert_eq!(part(name), (json!(kind), verbs.clone()), "{name}");
    }
}

#[tokio::test]
async fn openapi_has_the_options_of_streams() {
    let server = TestServer::start().await;
    let index = server.get("/openapi/v3").await.expect(200).json();
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str();
    let third = server.get(url.unwrap()).await.expect(200).json();
    let second = server.get("/openapi/v2").await.expect(200).json();
    let options = |document: &Value, path: &str| -> Vec<String> {
        let parameters = document["paths"][path]["parameters"].as_array();
        let parameters = parameters.unwrap_or_else(|| panic!("no parameters of {path}"));
        let ty = |found: &Value| match &found["schema"]["type"] {
            Value::Null => found["type"].clone(),
            ty => ty.clone(),
        };
        let options = parameters.iter().filter(|found| found["in"] == "query");
        let options = options.map(|found| format!("{} {}", found["name"], ty(found)));
        options.map(|text| text.replace('"', "")).collect()
    };
    for (path, wanted) in [
        (
            "pods/{name}/exec",
            "stdin boolean, stdout boolean, stderr boolean, tty boolean, container string, command string",
        ),
        ("pods/{name}/portforward", "ports integer"),
        ("pods/{name}/proxy/{path}", "path string"),
        (
            "pods/{name}/log",
            "container string, follow boolean, previous boolean, sinceSeconds integer, sinceTime string, \
             timestamps boolean, tailLines integer, limitBytes integer, insecureSkipTLSVerifyBackend boolean, \
             stream string",
        ),
    ] {
        let path = format!("/api/v1/namespaces/{{namespace}}/{path}");
        let mut wanted: Vec<&str> = wanted.split(", ").collect();
        wanted.sort_unstable();
        for document in [&third, &second] {
            let mut found = options(document, &path);
            found.sort_unstable();
            assert_eq!(found, wanted, "{path}");
        }
    }
}

#[tokio::test]
async fn streams_are_refused_with_the_messages_of_kubernetes() {
    let server = TestServer::start().await;
    server.post(PODS, &pod("one", &["a"])).await.expect(201);
    server
        .post(PODS, &pod("two", &["a", "b"]))
        .await
        .expect(201);
    let refused = async |path: &str, code: u16| {
        let answer = server.get(&format!("{PODS}/{path}")).await;
        answer.expect(code).status().2
    };
    assert_eq!(refused("none/log", 404).await, "pods \"none\" not found");
    assert_eq!(
        refused("two/log", 400).await,
        "a container name must be specified for pod two, choose one of: [a b]"
    );
    assert_eq!(
        refused("one/log?container=x", 400).await,
        "container x is not valid for pod one"
    );
    assert_eq!(
        refused("one/log?limitBytes=0", 422).await,
        "PodLogOptions \"one\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"
    );
    assert_eq!(
        refused("one/exec?command=ls&stdout=1", 400).await,
        "pod one does not have a host assigned"
    );
    assert_eq!(refused("one/proxy/x", 400).await, "address not allowed");
    // A pod without a node has an empty log.
    server.get(&format!("{PODS}/one/log")).await.expect(204);
    let answer = server
        .get("/api/v1/nodes/none/proxy/healthz")
        .await
        .expect(404);
    assert_eq!(answer.status().2, "nodes \"none\" not found");
    let answer = server.get("/api/v1/nodes/none/proxy").await.expect(404);
    assert_eq!(answer.status().2, "nodes \"none\" not found");
}
