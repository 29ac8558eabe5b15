//! A server with all built-in kinds in memory and its controllers, and functions to use it.
//!
//! Roles decide who may do what. Controllers have exactly the roles they need; tests write as a member of `system:masters`.

use bareboat::rbac::Rbac;
use bareboat_api::{Kind, Object, Status, Value, value};
use bareboat_builtin::admission::NamespaceLifecycle;
use bareboat_builtin::{facts, kinds};
use bareboat_controllers::{Client, Controllers, DefaultRoles, Options};
use bareboat_server::{Server, ServerBuilder};
use std::time::{Duration, Instant};

/// How long a condition may take to come true on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server and its controllers.
pub(crate) struct Fixture {
    pub(crate) client: Client,
    controllers: Controllers,
}

impl Fixture {
    /// A server with every controller.
    pub(crate) async fn new() -> Fixture {
        Fixture::with(Options::default(), |_| {}).await
    }

    /// A server with some controllers, after a function has changed its kinds.
    pub(crate) async fn with(options: Options, change: impl Fn(&mut Kind)) -> Fixture {
        let server = builder(change).mutator(NamespaceLifecycle).build().unwrap();
        Fixture::over(server, options).await
    }

    /// A server that creates objects in namespaces that do not exist.
    pub(crate) async fn without_admission() -> Fixture {
        Fixture::over(builder(|_| {}).build().unwrap(), Options::default()).await
    }

    /// A server of the test's own.
    pub(crate) async fn over(server: Server, mut options: Options) -> Fixture {
        options.default_roles = DefaultRoles::ControllersOnly;
        let controllers = Controllers::start_with(server.clone(), options).await;
        Fixture {
            client: Client::new(server),
            controllers,
        }
    }

    /// The same server after its controllers were stopped and others were started.
    pub(crate) async fn restarted(mut self, options: Options) -> Fixture {
        self.controllers.stop().await;
        Fixture::over(self.client.server().clone(), options).await
    }

    /// Stops the controllers.
    pub(crate) async fn stop(mut self) {
        self.controllers.stop().await;
    }

    pub(crate) async fn namespace(&self, name: &str) {
        let namespace =
            value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create("/api/v1/namespaces", namespace).await;
    }

    pub(crate) async fn create(&self, path: &str, object: Value) -> Object {
        let created = self.client.create(path, &object).await;
        Object::try_from(created.expect("it can be created")).unwrap()
    }

    /// A config map with owners and finalizers in the namespace `default`.
    pub(crate) async fn config(
        &self,
        name: &str,
        owners: Vec<Value>,
        finalizers: &[&str],
    ) -> Object {
        self.config_in("default", name, owners, finalizers).await
    }

    pub(crate) async fn config_in(
        &self,
        namespace: &str,
        name: &str,
        owners: Vec<Value>,
        finalizers: &[&str],
    ) -> Object {
        let finalizers: Vec<Value> = finalizers.iter().map(Value::string).collect();
        let object = value!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers},
        });
        self.create(&configs(namespace), object).await
    }

    pub(crate) async fn delete(&self, path: &str, policy: &str) {
        let options = value!({"kind": "DeleteOptions", "propagationPolicy": policy});
        self.client
            .delete(path, &options)
            .await
            .expect("it can be deleted");
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Object> {
        match self.client.get(path).await {
            Ok(object) => Some(object),
            Err(Status { code: 404, .. }) => None,
            Err(status) => panic!("{path}: {status}"),
        }
    }

    pub(crate) async fn exists(&self, path: &str) -> bool {
        self.get(path).await.is_some()
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(&format!("{path} is gone"), async || {
            !self.exists(path).await
        })
        .await;
    }

    /// Waits until a condition holds for an object.
    pub(crate) async fn until_it(&self, path: &str, holds: impl Fn(&Object) -> bool) {
        self.until(&format!("{path} meets the condition"), async || {
            self.get(path).await.is_some_and(|object| holds(&object))
        })
        .await;
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < PATIENCE, "does not come true: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the garbage collector has done something else, so that a wrong action would have happened by now.
    pub(crate) async fn settle(&self) {
        let canary = self
            .config("canary", vec![ghost("canary-owner")], &[])
            .await;
        self.until_gone(&config("canary")).await;
        assert!(!canary.uid().is_empty());
    }
}

/// A server where roles decide.
pub(crate) fn builder(change: impl Fn(&mut Kind)) -> ServerBuilder {
    Rbac::new().install(builder_without_roles(change))
}

/// A server where only members of `system:masters` may do anything.
pub(crate) fn builder_without_roles(change: impl Fn(&mut Kind)) -> ServerBuilder {
    let mut all = kinds::all();
    all.iter_mut().for_each(change);
    let is_definitions = |kind: &Kind| kind.names.plural == "customresourcedefinitions";
    let (definitions, others): (Vec<Kind>, Vec<Kind>) = all.into_iter().partition(is_definitions);
    Server::builder()
        .kinds(others)
        .protobuf(facts::message, facts::kind)
        .custom_resources(definitions.into_iter().next().unwrap())
}

/// The URL of config maps.
pub(crate) fn configs(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// The URL of a config map in `default`.
pub(crate) fn config(name: &str) -> String {
    format!("{}/{name}", configs("default"))
}

/// A reference to an owner.
pub(crate) fn owner(object: &Object) -> Value {
    value!({
        "apiVersion": (object.api_version()),
        "kind": (object.kind()),
        "name": (object.name()),
        "uid": (object.uid()),
    })
}

/// A reference that blocks the foreground deletion of the owner.
pub(crate) fn blocking(object: &Object) -> Value {
    let mut reference = owner(object);
    reference
        .make_object()
        .insert("blockOwnerDeletion", Value::Bool(true));
    reference
}

/// A reference to a config map that never existed.
pub(crate) fn ghost(name: &str) -> Value {
    value!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name,
        "uid": "00000000-0000-4000-8000-000000000000",
    })
}

/// A patch that removes all finalizers.
pub(crate) fn no_finalizers() -> Value {
    value!({"metadata": {"finalizers": null}})
}

/// A definition of a namespaced or cluster-wide kind.
pub(crate) fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    value!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": (format!("{plural}.example.com"))},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// The URL of definitions.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A member of a condition.
pub(crate) fn condition<'a>(object: &'a Object, kind: &str, member: &str) -> &'a str {
    object
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or(&[])
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
        .and_then(|condition| condition.get(member)?.as_str())
        .unwrap_or("")
}
