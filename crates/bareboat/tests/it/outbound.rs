//! Every caller of destinations that clients configure, against every kind of bad destination: what is refused, and
//! what clients read about it.
//!
//! A new caller joins by one line in [`CALLERS`].

mod aggregated;
mod kubelets;
mod peers;

use crate::support::*;
use bareboat_testing::TestServer;
use peers::Peers;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What makes the server call a destination.
#[derive(Clone, Copy)]
struct Caller {
    name: &'static str,
    /// Code and beginning of the message if a call fails.
    fails: (u16, &'static str),
    /// Whether it reads whole answers; others pass them on as they come.
    reads: bool,
    /// Plans the requests for a destination, with a group of their own.
    plan: fn(&str, &Value) -> Plan,
}

/// Requests that make the server call a destination.
struct Plan {
    /// Objects to create: paths and bodies.
    setup: Vec<(String, Value)>,
    /// The request that causes the call: method, path and body.
    request: (&'static str, String, String),
}

const CALLERS: [Caller; 4] = [
    Caller {
        name: "conversion",
        fails: (500, "conversion webhook for GROUP/v1, Kind=Thing failed: "),
        reads: true,
        plan: |group, client| {
            let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
            let mut made = definition(group);
            made["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
            let read = format!("/apis/{group}/v2/namespaces/default/things/one");
            Plan {
                setup: vec![(DEFINITIONS.to_owned(), made), thing(group)],
                request: ("GET", read, String::new()),
            }
        },
    },
    Caller {
        name: "subresource",
        fails: (503, "error trying to reach service: "),
        reads: false,
        plan: |group, client| {
            let part = json!([{"name": "go", "verbs": ["get"], "timeoutSeconds": 12, "clientConfig": client}]);
            let mut made = definition(group);
            made["metadata"]["annotations"] =
                json!({"bareboat.dev/subresources": part.to_string()});
            let read = format!("/apis/{group}/v1/namespaces/default/things/one/go");
            Plan {
                setup: vec![(DEFINITIONS.to_owned(), made), thing(group)],
                request: ("GET", read, String::new()),
            }
        },
    },
    Caller {
        name: "mutating",
        fails: (500, HOOK),
        reads: true,
        plan: |group, client| hooked("Mutating", group, client),
    },
    Caller {
        name: "validating",
        fails: (500, HOOK),
        reads: true,
        plan: |group, client| hooked("Validating", group, client),
    },
];

/// The beginning of messages about admission webhooks.
const HOOK: &str =
    "Internal error occurred: failed calling webhook \"hook.GROUP\": failed to call webhook: ";

/// Plans a creation that an admission webhook reviews.
fn hooked(stage: &str, group: &str, client: &Value) -> Plan {
    let kind = format!("{stage}WebhookConfiguration");
    let plural = format!("{}s", kind.to_lowercase());
    let rule = json!({"apiGroups": [group], "apiVersions": ["*"], "resources": ["things"], "operations": ["CREATE"]});
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": group},
        "webhooks": [{
            "name": format!("hook.{group}"), "clientConfig": client, "rules": [rule], "timeoutSeconds": 12,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let (path, thing) = thing(group);
    Plan {
        setup: vec![
            (DEFINITIONS.to_owned(), definition(group)),
            (
                format!("/apis/admissionregistration.k8s.io/v1/{plural}"),
                hook,
            ),
        ],
        request: ("POST", path, thing.to_string()),
    }
}

/// Returns the path of things, and one of them.
fn thing(group: &str) -> (String, Value) {
    let thing = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "one"}, "spec": {}});
    (format!("/apis/{group}/v1/namespaces/default/things"), thing)
}

fn definition(group: &str) -> Value {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1"), version("v2")],
        },
    })
}

/// Has a caller call a destination; returns the code, and the message after the caller's beginning.
async fn call(server: &TestServer, caller: Caller, case: &str, client: &Value) -> (u16, String) {
    let group = format!("{case}.{}.example.com", caller.name);
    let plan = (caller.plan)(&group, client);
    for (path, object) in plan.setup {
        server.post(&path, &object).await.expect(201);
    }
    let (method, path, body) = plan.request;
    let answer = server.send(method, &path, &[], body).await;
    let (code, _, message) = answer.status();
    let beginning = caller.fails.1.replace("GROUP", &group);
    let rest = message.strip_prefix(&beginning).map(str::to_owned);
    let id = answer.header("audit-id");
    let rest = rest.unwrap_or(format!("? {message}"));
    (
        code,
        if id.is_empty() {
            rest
        } else {
            rest.replace(id, "ID")
        },
    )
}

/// A server; `None` leaves a setting at its default.
async fn server(loopback: Option<bool>, causes: Option<bool>) -> TestServer {
    let builder = TestServer::builder().with(move |mut builder| {
        if let Some(allowed) = loopback {
            builder = builder.loopback_destinations(allowed);
        }
        if let Some(shown) = causes {
            builder = builder.outbound_error_details(shown);
        }
        builder
    });
    builder.listening().start().await
}

/// Returns addresses that a server does not call: whether only one does not that refuses loopback addresses, a name,
/// the URL, and the reason.
fn forbidden(server: &TestServer) -> [(bool, &'static str, String, &'static str); 8] {
    let own = format!("https://127.0.0.1:{}", server.address().port());
    let link = "link-local addresses may not be called";
    let loopback = "loopback addresses may not be called";
    [
        (
            false,
            "own",
            own.as_str(),
            "this server may not call itself",
        ),
        (false, "link", "https://169.254.169.254", link),
        (false, "mapped", "https://[::ffff:169.254.1.1]", link),
        (false, "six", "https://[fe80::1]", link),
        (
            false,
            "meta",
            "https://[fd00:ec2::254]",
            "metadata services may not be called",
        ),
        (
            false,
            "any",
            "https://0.0.0.0:443",
            "unspecified addresses may not be called",
        ),
        (true, "loop", "https://127.0.0.1:9", loopback),
        (true, "name", "https://localhost:9", loopback),
    ]
    .map(|(loopback, case, url, why)| (loopback, case, url.to_owned(), why))
}

#[tokio::test]
async fn forbidden_addresses_are_not_called() {
    let peers = Peers::start().await;
    let open = server(None, None).await;
    let closed = server(Some(false), Some(true)).await;
    for caller in CALLERS {
        for (loopback, case, url, expected) in forbidden(&open) {
            let server = if loopback { &closed } else { &open };
            let client = json!({"url": url, "caBundle": peers.bundle()});
            let (code, rest) = call(server, caller, case, &client).await;
            assert_eq!(code, caller.fails.0, "{} {case}: {rest}", caller.name);
            assert!(rest.contains(expected), "{} {case}: {rest}", caller.name);
        }
    }
}

#[tokio::test]
async fn a_service_does_not_lead_to_forbidden_addresses() {
    let peers = Peers::start().await;
    let open = server(None, None).await;
    let cases = [
        (
            "leads-to-link",
            "169.254.169.254",
            443,
            "link-local addresses may not be called",
        ),
        (
            "leads-to-own",
            "localhost",
            open.address().port(),
            "this server may not call itself",
        ),
    ];
    for (name, host, _, _) in cases {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "ExternalName", "externalName": host}});
        let services = "/api/v1/namespaces/default/services";
        open.post(services, &service).await.expect(201);
    }
    for caller in CALLERS {
        for (name, _, port, expected) in cases {
            let service = json!({"namespace": "default", "name": name, "port": port});
            let client = json!({"service": service, "caBundle": peers.bundle()});
            let (code, rest) = call(&open, caller, name, &client).await;
            assert_eq!(code, caller.fails.0, "{} {name}: {rest}", caller.name);
            assert!(rest.contains(expected), "{} {name}: {rest}", caller.name);
        }
    }
}

#[tokio::test]
async fn failures_are_explained_only_to_those_who_may_know() {
    let peers = Peers::start().await;
    let open = server(None, None).await;
    let discreet = server(None, Some(false)).await;
    let sentence = "the call failed; the cause is in the log of the server under audit-id ID";
    let mut running = Vec::new();
    for caller in CALLERS {
        for (case, client, cause, passes_on) in peers.cases() {
            if passes_on && !caller.reads {
                continue;
            }
            let (open, discreet) = (&open, &discreet);
            running.push(async move {
                let what = format!("{} {case}", caller.name);
                if let Some(cause) = cause {
                    let (_, rest) = call(open, caller, case, &client).await;
                    assert!(rest.contains(cause), "{what}: {rest}");
                }
                let found = call(discreet, caller, case, &client).await;
                assert_eq!(found, (caller.fails.0, sentence.to_owned()), "{what}");
            });
        }
    }
    futures_util::future::join_all(running).await;
}

#[tokio::test]
async fn no_caller_follows_redirects() {
    let peers = Peers::start().await;
    let open = server(None, None).await;
    for caller in CALLERS {
        for code in [301, 302, 303, 307, 308] {
            let case = format!("r{code}");
            let client = peers.https(&format!("/redirect/{code}"));
            let (found, rest) = call(&open, caller, &case, &client).await;
            match caller.reads {
                true => assert!(rest.contains(&code.to_string()), "{found} {rest}"),
                false => {
                    assert_eq!(found, 502, "{rest}");
                    assert!(
                        rest.contains("attempted to redirect this request"),
                        "{rest}"
                    );
                }
            }
        }
    }
    assert_eq!(peers.followed(), 0);
}
