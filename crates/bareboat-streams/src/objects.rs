//! Reads pods and their containers, as far as streams need them.

use bareboat_api::admission::Lookup;
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status, Value};
use bareboat_server::Visit;
use bareboat_server::authz::Decision;
use bareboat_server::kinds::computed::Question;
use bareboat_server::request::info::RequestInfo;
use http::{Method, Uri};

pub(crate) const PODS: &str = "core/pods";
pub(crate) const NODES: &str = "core/nodes";

pub(crate) fn resource(resource: &str) -> GroupResource<'_> {
    GroupResource {
        group: "",
        resource,
    }
}

/// Returns a pod.
pub(crate) fn pod(objects: &dyn Lookup, namespace: &str, name: &str) -> Result<Object, Status> {
    let found = objects.get(PODS, namespace, name);
    found.ok_or_else(|| Status::not_found(resource("pods"), name))
}

pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.at(path).and_then(Value::as_str).unwrap_or("")
}

pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or(&[])
}

/// Returns the name of the container that the client asked for. If `asked` is empty, returns the only container of the
/// pod, and fails if there are several.
pub(crate) fn container(pod: &Object, asked: &str) -> Result<String, Status> {
    let spec = |field| list(pod.value(), &["spec", field]);
    let names = || {
        let fields = ["initContainers", "containers", "ephemeralContainers"];
        let all = fields.into_iter().flat_map(spec);
        all.map(|container| text(container, &["name"]))
    };
    if !asked.is_empty() {
        if names().any(|name| name == asked) {
            return Ok(asked.to_owned());
        }
        return Err(Status::bad_request(format!(
            "container {asked} is not valid for pod {}",
            pod.name()
        )));
    }
    match spec("containers") {
        [only] => Ok(text(only, &["name"]).to_owned()),
        [] => Err(Status::bad_request(format!(
            "a container name must be specified for pod {}",
            pod.name()
        ))),
        _ => {
            let all: Vec<&str> = names().collect();
            Err(Status::bad_request(format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                pod.name(),
                all.join(" ")
            )))
        }
    }
}

/// The parts of a request that decide whether a stream may be opened. Unlike [`Visit`], this type can be shared.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    question: &'a Question,
    method: &'a Method,
    pub(crate) uri: &'a Uri,
}

impl<'a> Opening<'a> {
    pub(crate) fn of(visit: &'a Visit) -> Opening<'a> {
        Opening {
            question: &visit.question,
            method: visit.request.method(),
            uri: visit.request.uri(),
        }
    }

    /// Fails unless the user may create the subresource. A GET that opens a stream also needs this right, because the
    /// stream can change things.
    pub(crate) async fn may_create(self, plural: &str) -> Result<(), Status> {
        if self.method == Method::POST {
            return Ok(());
        }
        let question = self.question;
        let info = RequestInfo {
            is_resource: true,
            path: self.uri.path().to_owned(),
            verb: "create".into(),
            version: question.version.clone(),
            resource: plural.into(),
            subresource: question.subresource.clone(),
            namespace: question.namespace.clone(),
            name: question.name.clone(),
            ..RequestInfo::default()
        };
        match question.access.may(&question.user, &info).await {
            Decision::Allow(_) => Ok(()),
            Decision::Deny(why) | Decision::NoOpinion(why) => {
                Err(Status::forbidden(resource(plural), &question.name, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn pod(spec: Value) -> Object {
        let pod = value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": (spec)});
        Object::try_from(pod).expect("a pod")
    }

    #[test]
    fn the_only_container_needs_no_name() {
        let one = pod(value!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}));
        assert_eq!(container(&one, ""), Ok("a".to_owned()));
        assert_eq!(container(&one, "i"), Ok("i".to_owned()));
        let wrong = container(&one, "x").expect_err("it has none");
        assert_eq!(wrong.message, "container x is not valid for pod web");
    }

    #[test]
    fn one_of_several_containers_must_be_named() {
        let two = pod(value!({
            "containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}],
            "ephemeralContainers": [{"name": "debug"}]
        }));
        let status = container(&two, "").expect_err("it is ambiguous");
        assert_eq!(
            status.message,
            "a container name must be specified for pod web, choose one of: [i a b debug]"
        );
        assert_eq!(container(&two, "debug"), Ok("debug".to_owned()));
    }
}
