//! Issues tokens: handles TokenRequests posted to the subresource `token` of a service account.

use super::{ServiceAccounts, now};
use bareboat_api::kind::{Acted, Action, BoxFuture, ObjectAccess, ObjectRef, Posted, PostedType};
use bareboat_api::status::GroupResource;
use bareboat_api::time::Timestamp;
use bareboat_api::{FieldError, FieldPath, Object, Status, Str, Value, value};
use bareboat_tokens::account::{self, Claims, Reference};

/// The default lifetime of a token, in seconds.
const USUAL: i64 = 3600;
/// The minimum lifetime of a token, in seconds.
const SHORTEST: i64 = 600;

/// The action of the subresource `token`.
pub(crate) struct TokenAction {
    accounts: ServiceAccounts,
    types: [PostedType; 1],
}

impl TokenAction {
    pub(crate) fn new(accounts: ServiceAccounts) -> TokenAction {
        TokenAction {
            accounts,
            types: [bareboat_builtin::posted_type(
                "authentication.k8s.io",
                "v1",
                "TokenRequest",
            )],
        }
    }
}

impl Action for TokenAction {
    fn types(&self) -> &[PostedType] {
        &self.types
    }

    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        objects: &'a dyn ObjectAccess,
    ) -> BoxFuture<'a, Result<Acted, Status>> {
        let answer = self.accounts.issue(posted, objects).map(Acted::Object);
        Box::pin(std::future::ready(answer))
    }
}

fn resource(name: &str) -> GroupResource<'_> {
    GroupResource {
        group: "",
        resource: name,
    }
}

impl ServiceAccounts {
    fn issue(&self, posted: Posted<'_>, objects: &dyn ObjectAccess) -> Result<Object, Status> {
        let at = |resource: &'static str, namespace, name| ObjectRef {
            group: "",
            resource,
            namespace,
            name,
        };
        let account = objects
            .get(at("serviceaccounts", posted.namespace, posted.name))
            .ok_or_else(|| Status::not_found(resource("serviceaccounts"), posted.name))?;
        let request = &posted.object;
        check(request, &posted)?;
        if !request.uid().is_empty() && request.uid() != account.uid() {
            return Err(Status::conflict(
                resource("serviceaccounts"),
                posted.name,
                format!(
                    "the UID in the token request ({}) does not match the UID of the service account ({})",
                    request.uid(),
                    account.uid()
                ),
            ));
        }
        let (secret, pod, node) = bound(request, &posted, objects)?;
        let audiences: Vec<Str> = request
            .at(&["spec", "audiences"])
            .and_then(Value::as_array)
            .unwrap_or(&[])
            .iter()
            .filter_map(Value::as_str)
            .map(Str::new)
            .collect();
        let audiences = match audiences.is_empty() {
            true => self.shared.audiences.clone(),
            false => audiences,
        };
        let asked = seconds(request);
        let longest = i64::try_from(self.shared.settings.longest.as_secs()).unwrap_or(i64::MAX);
        let life = asked.min(longest.max(SHORTEST));
        if life < asked {
            objects.warn(format!(
                "requested expiration of {asked} seconds shortened to {life} seconds"
            ));
        }
        let (now, keys) = (now(), self.shared.keys.load());
        let claims = Claims {
            namespace: Str::new(posted.namespace),
            account: Reference {
                name: Str::new(posted.name),
                uid: Str::new(account.uid()),
            },
            secret,
            pod,
            node,
            audiences,
            id: Str::new(uuid::Uuid::new_v4().to_string()),
            expires: Some(now.saturating_add(life)),
            legacy: false,
        };
        let token = account::issue(&keys.signing, self.issuer(), &claims, now)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let mut answer = posted.object;
        let metadata = answer.metadata_mut();
        metadata.insert("name", Value::from(posted.name));
        metadata.insert("namespace", Value::from(posted.namespace));
        metadata.insert("creationTimestamp", Value::from(posted.now));
        let spec = answer.map_mut().object_mut("spec");
        spec.insert("audiences", claims.audiences.into_iter().collect::<Value>());
        spec.insert("expirationSeconds", Value::from(life));
        let ends = Timestamp {
            seconds: now.saturating_add(life),
            nanos: 0,
        };
        answer.map_mut().insert(
            "status",
            value!({"token": (token), "expirationTimestamp": (ends.print_seconds())}),
        );
        Ok(answer)
    }
}

fn seconds(request: &Object) -> i64 {
    let asked = request.at(&["spec", "expirationSeconds"]);
    asked.and_then(Value::as_i64).unwrap_or(USUAL)
}

/// Validates a request without looking at other objects.
fn check(request: &Object, posted: &Posted<'_>) -> Result<(), Status> {
    let mut wrong = Vec::new();
    for (member, found, wanted, text) in [
        (
            "name",
            request.name(),
            posted.name,
            "must match the service account name if specified",
        ),
        (
            "namespace",
            request.namespace(),
            posted.namespace,
            "must match the service account namespace if specified",
        ),
    ] {
        if !found.is_empty() && found != wanted {
            let place = FieldPath::new("metadata").child(member);
            wrong.push(FieldError::invalid(place, found, text));
        }
    }
    let asked = seconds(request);
    let place = || FieldPath::new("spec").child("expirationSeconds");
    if asked < SHORTEST {
        wrong.push(FieldError::invalid(
            place(),
            asked,
            "may not specify a duration less than 10 minutes",
        ));
    }
    if asked > 1 << 32 {
        wrong.push(FieldError::invalid(
            place(),
            asked,
            "may not specify a duration larger than 2^32 seconds",
        ));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let what = GroupResource {
        group: "authentication.k8s.io",
        resource: "TokenRequest",
    };
    Err(Status::invalid(what, posted.name, &wrong))
}

type Bound = (Option<Reference>, Option<Reference>, Option<Reference>);

/// Returns the Secret, pod and node that a token is bound to.
fn bound(
    request: &Object,
    posted: &Posted<'_>,
    objects: &dyn ObjectAccess,
) -> Result<Bound, Status> {
    let Some(wanted) = request
        .at(&["spec", "boundObjectRef"])
        .filter(|wanted| !wanted.is_null())
    else {
        return Ok((None, None, None));
    };
    let text = |key: &str| wanted.get(key).and_then(Value::as_str).unwrap_or("");
    let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
    let plural = match (text("apiVersion"), kind) {
        ("v1", "Pod") => "pods",
        ("v1", "Secret") => "secrets",
        ("v1", "Node") => "nodes",
        (version, _) => {
            let shown = match version.split_once('/') {
                Some((group, version)) => format!("{group}/{version}, Kind={kind}"),
                None => format!("/{version}, Kind={kind}"),
            };
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {shown}"
            )));
        }
    };
    let find = |resource: &'static str, name: &str| {
        objects.get(ObjectRef {
            group: "",
            resource,
            namespace: match resource {
                "nodes" => "",
                _ => posted.namespace,
            },
            name,
        })
    };
    let object = find(plural, name).ok_or_else(|| Status::not_found(resource(plural), name))?;
    if !uid.is_empty() && uid != object.uid() {
        return Err(Status::conflict(
            resource(plural),
            name,
            format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
                 deleted and then recreated"
            ),
        ));
    }
    let reference = |object: &Object| Reference {
        name: Str::new(object.name()),
        uid: Str::new(object.uid()),
    };
    let of_spec = |key: &str| {
        let found = object.at(&["spec", key]).and_then(Value::as_str);
        found.unwrap_or("").to_owned()
    };
    Ok(match plural {
        "secrets" => (Some(reference(&object)), None, None),
        "nodes" => (None, None, Some(reference(&object))),
        _ => {
            if of_spec("serviceAccountName") != posted.name {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                    bareboat_api::field::go_quote(posted.name)
                )));
            }
            let node = find("nodes", &of_spec("nodeName"));
            (None, Some(reference(&object)), node.as_ref().map(reference))
        }
    })
}
