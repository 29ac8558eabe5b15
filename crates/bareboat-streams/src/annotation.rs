//! The annotation on Nodes and Pods with the URL of a server that answers like a kubelet.
//!
//! The user who writes the annotation decides where this server connects with its kubelet certificate. On a Node, the
//! right to write nodes is enough. On a Pod, the user needs the right to create `nodes/proxy`.

use bareboat_api::admission::{Lookup, Operation, Review, Right, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status};

/// The annotation of a Node or Pod whose streams another server answers. Its value is the base URL of a server that answers like a kubelet, `https` or `http`.
pub const KUBELET_URL: &str = "bareboat.dev/kubelet-url";

/// Rejects pods and bindings with the annotation if the user does not have the right to create `nodes/proxy`.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubeletUrl;

fn url(object: Option<&Object>) -> Option<&str> {
    object.and_then(|object| object.annotation(KUBELET_URL))
}

impl Validator for KubeletUrl {
    fn name(&self) -> &'static str {
        "KubeletURL"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        // The annotations of a binding are added to the pod.
        let is_pod = review.kind.group.is_empty()
            && matches!(review.kind.names.plural.as_str(), "pods" | "bindings");
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        let new = url(review.object.as_deref()).filter(|_| is_pod && writes);
        // A binding has no old object.
        if new.is_none() || new == url(review.old) {
            return decided(Ok(()));
        }
        Box::pin(async move {
            let right = Right {
                verb: "create",
                resource: "nodes",
                subresource: "proxy",
                ..Right::default()
            };
            if lookup.may(review.user, right).await {
                return Ok(());
            }
            let what = GroupResource {
                group: "",
                resource: "pods",
            };
            let why = format!(
                "the annotation {KUBELET_URL} needs the right to create nodes/proxy, which user {:?} does not have",
                review.user.name
            );
            Err(Status::forbidden(what, review.name, why))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::admission::Brief;
    use bareboat_api::kind::{Kind, Names, Reservations, Scope, User};
    use bareboat_api::{Str, Value, value};

    struct Nothing;

    impl Lookup for Nothing {
        fn brief(&self, _: &str, _: &str, _: &str) -> Option<Brief> {
            None
        }

        fn get(&self, _: &str, _: &str, _: &str) -> Option<Object> {
            None
        }

        fn list(&self, _: &str, _: &str) -> Vec<Object> {
            Vec::new()
        }
    }

    async fn created(
        (plural, kind, subresource): (&str, &str, &str),
        annotation: &str,
        group: &str,
    ) -> bool {
        let mut annotations = value!({});
        let text = Value::string("https://10.0.0.1");
        annotations.make_object().insert(annotation, text);
        let object = value!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "annotations": annotations},
        });
        let mut object = Object::try_from(object).expect("an object");
        let kind = Kind::new("", Names::new(plural, kind), Scope::Namespaced);
        let user = User {
            name: "jane".into(),
            groups: vec![Str::new(group)],
            ..User::default()
        };
        let mut review = Review {
            operation: Operation::Create,
            kind: &kind,
            version: "v1",
            subresource,
            namespace: "default",
            name: "a",
            object: Some(&mut object),
            old: None,
            options: &(),
            user: &user,
            dry_run: false,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            reservations: Reservations::default(),
        };
        KubeletUrl.validate(&mut review, &Nothing).await.is_ok()
    }

    #[tokio::test]
    async fn pods_and_bindings_need_the_right_to_reach_nodes() {
        for what in [
            ("pods", "Pod", ""),
            ("pods", "Binding", "binding"),
            ("bindings", "Binding", ""),
        ] {
            assert!(!created(what, KUBELET_URL, "users").await, "{what:?}");
            assert!(
                created(what, KUBELET_URL, "system:masters").await,
                "{what:?}"
            );
            assert!(created(what, "other", "users").await, "{what:?}");
        }
        assert!(created(("nodes", "Node", ""), KUBELET_URL, "users").await);
    }
}
