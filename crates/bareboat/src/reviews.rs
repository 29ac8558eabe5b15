//! Questions that are answered, not stored: who am I, who is this, may they do that, which components are there.

use bareboat_api::kind::{Kind, User};
use bareboat_api::status::GroupResource;
use bareboat_api::{Map, Object, Status, Str, Value};
use bareboat_server::Computed;
use bareboat_server::kinds::computed::Question;
use bareboat_server::request::info::RequestInfo;

/// The computed form of a kind that is answered; the kind back if it is none.
pub(crate) fn computed(kind: Kind) -> Result<Computed, Box<Kind>> {
    let group = kind.group.clone();
    let plural = kind.names.plural.clone();
    let computed = match (group.as_str(), plural.as_str()) {
        ("authentication.k8s.io", "selfsubjectreviews") => Computed::new(kind).create(self_subject),
        ("authentication.k8s.io", "tokenreviews") => Computed::new(kind).create(token),
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            Computed::new(kind).create(self_access)
        }
        ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
            Computed::new(kind).create(access)
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            Computed::new(kind).create(self_rules)
        }
        ("", "componentstatuses") => Computed::new(kind).get(component).list(components),
        _ => return Err(Box::new(kind)),
    };
    Ok(computed)
}

/// There is one program, and no components to watch over.
async fn components(_: Question) -> Result<Vec<Object>, Status> {
    Ok(Vec::new())
}

async fn component(question: Question) -> Result<Object, Status> {
    let what = GroupResource {
        group: "",
        resource: "componentstatuses",
    };
    Err(Status::not_found(what, &question.name))
}

async fn self_subject((question, mut review): (Question, Object)) -> Result<Object, Status> {
    let mut status = Map::new();
    status.insert("userInfo", user_info(&question.user));
    review.map_mut().insert("status", Value::Object(status));
    Ok(review)
}

async fn token((question, mut review): (Question, Object)) -> Result<Object, Status> {
    let token = review
        .at(&["spec", "token"])
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    let mut status = Map::new();
    match question.access.who(&token).await {
        Some(user) => {
            status.insert("authenticated", Value::Bool(true));
            status.insert("user", user_info(&user));
        }
        None => {
            status.insert("user", Value::object());
        }
    }
    // The answer need not repeat a secret.
    review.map_mut().object_mut("spec").remove("token");
    review.map_mut().insert("status", Value::Object(status));
    Ok(review)
}

async fn self_access((question, review): (Question, Object)) -> Result<Object, Status> {
    let user = User::clone(&question.user);
    decide(&question, review, &user).await
}

async fn access((question, review): (Question, Object)) -> Result<Object, Status> {
    let text = |key: &str| {
        review
            .at(&["spec", key])
            .and_then(Value::as_str)
            .map(Str::new)
            .unwrap_or_default()
    };
    let groups = review
        .at(&["spec", "groups"])
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    let user = User {
        name: text("user"),
        uid: text("uid"),
        groups: groups
            .iter()
            .filter_map(Value::as_str)
            .map(Str::new)
            .collect(),
        ..User::default()
    };
    if user.name.is_empty() && user.groups.is_empty() {
        return Err(Status::bad_request(
            "spec.user or spec.groups must be given: about whom is the question?",
        ));
    }
    decide(&question, review, &user).await
}

async fn decide(question: &Question, mut review: Object, user: &User) -> Result<Object, Status> {
    let info = wanted(question, &review)?;
    let mut status = Map::new();
    match question.access.may(user, &info).await {
        Ok(()) => {
            status.insert("allowed", Value::Bool(true));
        }
        Err(why) => {
            status.insert("allowed", Value::Bool(false));
            if !why.is_empty() {
                status.insert("reason", Value::from(why));
            }
        }
    }
    review.map_mut().insert("status", Value::Object(status));
    Ok(review)
}

/// What the question is about, as a request for it would be.
fn wanted(question: &Question, review: &Object) -> Result<RequestInfo, Status> {
    let resource = review
        .at(&["spec", "resourceAttributes"])
        .filter(|value| !value.is_null());
    let other = review
        .at(&["spec", "nonResourceAttributes"])
        .filter(|value| !value.is_null());
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .map(Str::new)
            .unwrap_or_default()
    };
    match (resource, other) {
        (Some(asked), None) => {
            let namespace = text(asked, "namespace");
            if !question.namespace.is_empty() && namespace != question.namespace {
                return Err(Status::bad_request(
                    "spec.resourceAttributes.namespace must be the namespace of the review",
                ));
            }
            Ok(RequestInfo {
                is_resource: true,
                verb: text(asked, "verb"),
                group: text(asked, "group"),
                version: text(asked, "version"),
                namespace,
                resource: text(asked, "resource"),
                subresource: text(asked, "subresource"),
                name: text(asked, "name"),
                ..RequestInfo::default()
            })
        }
        (None, Some(asked)) => Ok(RequestInfo {
            verb: text(asked, "verb"),
            path: text(asked, "path").to_string(),
            ..RequestInfo::default()
        }),
        _ => Err(Status::bad_request(
            "exactly one of spec.resourceAttributes and spec.nonResourceAttributes must be given",
        )),
    }
}

/// What somebody may do at all: with no rules to list, everything or nothing.
async fn self_rules((question, mut review): (Question, Object)) -> Result<Object, Status> {
    let everything = RequestInfo {
        is_resource: true,
        verb: Str::const_new("*"),
        group: Str::const_new("*"),
        resource: Str::const_new("*"),
        ..RequestInfo::default()
    };
    let all = question
        .access
        .may(&question.user, &everything)
        .await
        .is_ok();
    let (rules, paths) = if all {
        (
            bareboat_api::value!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]),
            bareboat_api::value!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]),
        )
    } else {
        let public = bareboat_api::value!([{
            "verbs": ["get"],
            "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version"],
        }]);
        (Value::Array(Vec::new()), public)
    };
    let status = bareboat_api::value!({"resourceRules": rules, "nonResourceRules": paths, "incomplete": false});
    review.map_mut().insert("status", status);
    Ok(review)
}

fn user_info(user: &User) -> Value {
    let mut map = Map::new();
    map.insert("username", Value::string(&user.name));
    if !user.uid.is_empty() {
        map.insert("uid", Value::string(&user.uid));
    }
    if !user.groups.is_empty() {
        map.insert("groups", user.groups.iter().cloned().collect());
    }
    if !user.extra.is_empty() {
        let extra: Map = user
            .extra
            .iter()
            .map(|(key, values)| {
                (
                    Str::new(key),
                    values.iter().map(String::as_str).collect::<Value>(),
                )
            })
            .collect();
        map.insert("extra", Value::Object(extra));
    }
    Value::Object(map)
}
