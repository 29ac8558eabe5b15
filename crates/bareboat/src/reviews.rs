//! Kinds that are answered and not stored: token reviews, access reviews, component statuses.

mod selectors;

use bareboat_api::kind::{Kind, User};
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Map, Object, Status, Str, Value, value};
use bareboat_server::Computed;
use bareboat_server::authn::BadCredentials;
use bareboat_server::authz::{Decision, UserRules};
use bareboat_server::kinds::computed::Question;
use bareboat_server::request::info::RequestInfo;

/// Returns the computed form of an answered kind, or the kind itself if it is stored.
pub(crate) fn computed(kind: Kind) -> Result<Computed, Box<Kind>> {
    let group = kind.group.clone();
    let plural = kind.names.plural.clone();
    let computed = match (group.as_str(), plural.as_str()) {
        ("authentication.k8s.io", "selfsubjectreviews") => Computed::new(kind).create(self_subject),
        ("authentication.k8s.io", "tokenreviews") => Computed::new(kind).create(token),
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            Computed::new(kind).create(self_access)
        }
        ("authorization.k8s.io", "subjectaccessreviews") => Computed::new(kind).create(access),
        ("authorization.k8s.io", "localsubjectaccessreviews") => {
            Computed::new(kind).create(local_access)
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            Computed::new(kind).create(self_rules)
        }
        ("", "componentstatuses") => Computed::new(kind).get(component).list(components),
        _ => return Err(Box::new(kind)),
    };
    Ok(computed)
}

/// Returns no components; there is only one program.
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
    if token.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences: Vec<Str> = review
        .at(&["spec", "audiences"])
        .and_then(Value::as_array)
        .unwrap_or(&[])
        .iter()
        .filter_map(Value::as_str)
        .map(Str::new)
        .collect();
    let mut status = Map::new();
    match question.access.who(&token, &audiences).await {
        Ok(Some(found)) => {
            status.insert("authenticated", Value::Bool(true));
            status.insert("user", user_info(&found.user));
            if let Some(audiences) = found.audiences.filter(|list| !list.is_empty()) {
                status.insert("audiences", audiences.into_iter().collect::<Value>());
            }
        }
        Ok(None) => {
            status.insert("user", Value::object());
        }
        Err(BadCredentials(why)) => {
            status.insert("user", Value::object());
            status.insert(
                "error",
                Value::from(format!("[invalid bearer token, {why}]")),
            );
        }
    }
    // The response need not repeat a secret.
    review.map_mut().object_mut("spec").remove("token");
    review.map_mut().insert("status", Value::Object(status));
    Ok(review)
}

async fn self_access((question, review): (Question, Object)) -> Result<Object, Status> {
    let mut wrong = Vec::new();
    check_attributes(&review, &mut wrong);
    refuse("SelfSubjectAccessReview", &wrong)?;
    let user = User::clone(&question.user);
    decide(&question, review, &user).await
}

async fn access((question, review): (Question, Object)) -> Result<Object, Status> {
    let user = subject(&review);
    refuse("SubjectAccessReview", &check_subject(&review, &user))?;
    decide(&question, review, &user).await
}

async fn local_access((question, review): (Question, Object)) -> Result<Object, Status> {
    let user = subject(&review);
    let mut wrong = check_subject(&review, &user);
    if let Some(paths) = present(&review, "nonResourceAttributes") {
        wrong.push(FieldError::invalid(
            spec("nonResourceAttributes"),
            paths.clone(),
            "disallowed on this kind of request",
        ));
    }
    refuse("LocalSubjectAccessReview", &wrong)?;
    let asked = present(&review, "resourceAttributes")
        .and_then(|asked| asked.get("namespace"))
        .and_then(Value::as_str)
        .unwrap_or("");
    if asked != question.namespace {
        return Err(Status::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {}",
            question.namespace
        )));
    }
    decide(&question, review, &user).await
}

/// Returns the user that a review is about.
fn subject(review: &Object) -> User {
    let text = |key: &str| {
        review
            .at(&["spec", key])
            .and_then(Value::as_str)
            .map(Str::new)
            .unwrap_or_default()
    };
    let strings = |value: Option<&Value>| -> Vec<Str> {
        let list = value.and_then(Value::as_array).unwrap_or(&[]);
        list.iter()
            .filter_map(Value::as_str)
            .map(Str::new)
            .collect()
    };
    let extra = review.at(&["spec", "extra"]).and_then(Value::as_object);
    User {
        name: text("user"),
        uid: text("uid"),
        groups: strings(review.at(&["spec", "groups"])),
        extra: extra
            .into_iter()
            .flat_map(|extra| extra.iter())
            .map(|(key, value)| {
                let values = strings(Some(value)).iter().map(Str::to_string).collect();
                (key.to_owned(), values)
            })
            .collect(),
    }
}

fn spec(member: &str) -> FieldPath {
    FieldPath::new("spec").child(member)
}

/// Returns a member of the spec unless it is missing or null.
fn present<'a>(review: &'a Object, member: &str) -> Option<&'a Value> {
    review
        .at(&["spec", member])
        .filter(|value| !value.is_null())
}

fn check_subject(review: &Object, user: &User) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    check_attributes(review, &mut wrong);
    if user.name.is_empty() && user.groups.is_empty() {
        wrong.push(FieldError::invalid(
            spec("user"),
            "",
            "at least one of user or group must be specified",
        ));
    }
    wrong
}

fn check_attributes(review: &Object, wrong: &mut Vec<FieldError>) {
    let resource = present(review, "resourceAttributes");
    let path = present(review, "nonResourceAttributes");
    match (resource, path) {
        (Some(_), Some(path)) => wrong.push(FieldError::invalid(
            spec("nonResourceAttributes"),
            path.clone(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => wrong.push(FieldError::invalid(
            spec("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
}

fn refuse(kind: &str, wrong: &[FieldError]) -> Result<(), Status> {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(
        GroupResource {
            group: "authorization.k8s.io",
            resource: kind,
        },
        "",
        wrong,
    ))
}

async fn decide(question: &Question, mut review: Object, user: &User) -> Result<Object, Status> {
    let info = wanted(&review);
    let mut status = Map::new();
    let (allowed, denied, reason) = match question.access.may(user, &info).await {
        Decision::Allow(reason) => (true, false, reason),
        Decision::Deny(reason) => (false, true, reason),
        Decision::NoOpinion(reason) => (false, false, reason),
    };
    status.insert("allowed", Value::Bool(allowed));
    if denied {
        status.insert("denied", Value::Bool(true));
    }
    if !reason.is_empty() {
        status.insert("reason", Value::from(reason));
    }
    review.map_mut().insert("status", Value::Object(status));
    Ok(review)
}

/// Returns the request that a review is about.
fn wanted(review: &Object) -> RequestInfo {
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .map(Str::new)
            .unwrap_or_default()
    };
    match present(review, "resourceAttributes") {
        Some(asked) => RequestInfo {
            is_resource: true,
            verb: text(asked, "verb"),
            group: text(asked, "group"),
            version: text(asked, "version"),
            namespace: text(asked, "namespace"),
            resource: text(asked, "resource"),
            subresource: text(asked, "subresource"),
            name: text(asked, "name"),
            field_selector: selectors::of_fields(asked.get("fieldSelector")),
            label_selector: selectors::of_labels(asked.get("labelSelector")),
            ..RequestInfo::default()
        },
        None => {
            let asked = present(review, "nonResourceAttributes");
            let asked = asked.unwrap_or(&Value::Null);
            RequestInfo {
                verb: text(asked, "verb"),
                path: text(asked, "path").to_string(),
                ..RequestInfo::default()
            }
        }
    }
}

/// Lists what the user may do in a namespace.
async fn self_rules((question, mut review): (Question, Object)) -> Result<Object, Status> {
    let namespace = review
        .at(&["spec", "namespace"])
        .and_then(Value::as_str)
        .unwrap_or("");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let rules = question.access.rules(&question.user, namespace);
    let rules = rules.unwrap_or_else(|| UserRules {
        incomplete: true,
        error: "the authorizer of this server cannot list rules".to_owned(),
        ..UserRules::default()
    });
    let mut status = value!({
        "resourceRules": (Value::Array(rules.resources)),
        "nonResourceRules": (Value::Array(rules.urls)),
        "incomplete": (rules.incomplete),
    });
    if !rules.error.is_empty() {
        status
            .make_object()
            .insert("evaluationError", Value::from(rules.error));
    }
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
