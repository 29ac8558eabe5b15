//! Runs the example as a client of a server. The session of the README runs it as the server.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::disallowed_names,
    reason = "foo is what an object of this kind is called"
)]

use bareboat_testing::TestServer;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(300);

/// The running program; killed when the test ends.
struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command) -> Program {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Program { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends SIGTERM, as an init system does.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that observes the controller's work.
struct User {
    foos: Api<DynamicObject>,
    kind: ApiResource,
    deployments: Api<Deployment>,
    events: Api<Event>,
}

impl User {
    fn new(client: Client) -> User {
        let gvk = GroupVersionKind::gvk("samplecontroller.k8s.io", "v1alpha1", "Foo");
        let kind = ApiResource::from_gvk_with_plural(&gvk, "foos");
        User {
            foos: Api::default_namespaced_with(client.clone(), &kind),
            deployments: Api::default_namespaced(client.clone()),
            events: Api::default_namespaced(client),
            kind,
        }
    }

    async fn create(&self, name: &str, spec: Value) -> Result<DynamicObject, kube::Error> {
        let foo = DynamicObject::new(name, &self.kind).data(json!({ "spec": spec }));
        self.foos.create(&PostParams::default(), &foo).await
    }

    async fn deletes_deployment(&self, name: &str) {
        let parameters = DeleteParams::default();
        self.deployments.delete(name, &parameters).await.unwrap();
    }

    /// Waits until a Deployment meets a condition and returns it.
    async fn deployment(&self, name: &str, is: impl Fn(&Deployment) -> bool) -> Deployment {
        eventually(name, async || {
            self.deployments.get_opt(name).await.unwrap().filter(&is)
        })
        .await
    }

    /// Waits for an event about a Foo.
    async fn hears(&self, foo: &str, reason: &str) -> Event {
        let about = |event: &Event| {
            let regarding = event.regarding.as_ref().and_then(|it| it.name.as_deref());
            regarding == Some(foo) && event.reason.as_deref() == Some(reason)
        };
        eventually(reason, async || {
            let events = self.events.list(&ListParams::default()).await.unwrap();
            events.into_iter().find(about)
        })
        .await
    }

    async fn available(&self, foo: &str, wanted: i64) {
        eventually("the status", async || {
            let foo = self.foos.get(foo).await.unwrap();
            (foo.data["status"]["availableReplicas"] == wanted).then_some(())
        })
        .await;
    }
}

async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref().and_then(|spec| spec.replicas)
}

fn program(server: &TestServer) -> Program {
    let mut program = Program::start(
        Command::new(env!("CARGO_BIN_EXE_sample-controller"))
            .env("KUBECONFIG", server.kubeconfig_path()),
    );
    assert_eq!(program.line(), "reconciling foos.samplecontroller.k8s.io");
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foo_owns_a_deployment_until_it_is_deleted() {
    let server = TestServer::listening().await;
    let program = program(&server);
    let user = User::new(server.client());

    let spec = json!({ "deploymentName": "web", "replicas": 2 });
    let owner = user.create("web-of-foo", spec).await.unwrap();
    let first = user.deployment("web", |_| true).await;
    assert_eq!(replicas(&first), Some(2));
    let reference = &first.owner_references()[0];
    assert_eq!(
        (&reference.kind, &reference.uid, reference.controller),
        (&"Foo".to_owned(), &owner.uid().unwrap(), Some(true))
    );
    user.available("web-of-foo", 0).await;
    let event = user.hears("web-of-foo", "Synced").await;
    assert_eq!(event.note.as_deref(), Some("Foo synced successfully"));

    // The status of the Deployment is copied to the Foo.
    let ready = json!({ "status": { "replicas": 2, "readyReplicas": 2, "availableReplicas": 2 } });
    let parameters = PatchParams::default();
    let ready = Patch::Merge(&ready);
    let patched = user.deployments.patch_status("web", &parameters, &ready);
    patched.await.unwrap();
    user.available("web-of-foo", 2).await;

    let more = json!({ "spec": { "replicas": 3 } });
    let more = Patch::Merge(&more);
    let patched = user.foos.patch("web-of-foo", &parameters, &more);
    patched.await.unwrap();
    user.deployment("web", |it| replicas(it) == Some(3)).await;

    // A deleted one is created again.
    user.deletes_deployment("web").await;
    user.deployment("web", |it| it.uid() != first.uid()).await;

    let refused = user.create("big", json!({ "deploymentName": "big", "replicas": 11 }));
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("less than or equal to 10"), "{refused}");

    user.foos
        .delete("web-of-foo", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the deployment is deleted", async || {
        let found = user.deployments.get_opt("web").await.unwrap();
        found.is_none().then_some(())
    })
    .await;
    program.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_of_another_owner_is_left_alone() {
    let server = TestServer::listening().await;
    let user = User::new(server.client());
    let theirs: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "taken" },
        "spec": {
            "selector": { "matchLabels": { "app": "theirs" } },
            "template": {
                "metadata": { "labels": { "app": "theirs" } },
                "spec": { "containers": [{ "name": "theirs", "image": "theirs" }] },
            },
        },
    }))
    .unwrap();
    let parameters = PostParams::default();
    let theirs = user.deployments.create(&parameters, &theirs);
    let theirs = theirs.await.unwrap();
    let _program = program(&server);

    user.create("late", json!({ "deploymentName": "taken" }))
        .await
        .unwrap();
    let event = user.hears("late", "ErrResourceExists").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(
        event.note.as_deref(),
        Some("Resource \"taken\" already exists and is not managed by Foo")
    );
    let left = user.deployments.get("taken").await.unwrap();
    assert_eq!(left.resource_version(), theirs.resource_version());

    // It retries: when the name is free, the Foo gets its Deployment.
    user.deletes_deployment("taken").await;
    let ours = user
        .deployment("taken", |it| it.uid() != theirs.uid())
        .await;
    assert_eq!(ours.owner_references()[0].name, "late");
}
