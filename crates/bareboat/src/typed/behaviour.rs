//! Rules of a typed kind: functions, subresources, what users see and search.

use super::{Convert, TypedKind, TypedKindError, own_part};
use crate::typed::shape::TypedShape;
use bareboat_api::kind::{
    Acted, Action, BoxFuture, Kind, ObjectAccess, OnGet, Posted, PostedType, ReadFilter, Search,
    Strategy, Subresource, Verb, Verbs, WriteContext,
};
use bareboat_api::value::{from_value, to_value};
use bareboat_api::{FieldError, Object, Status, Str, Value};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;

type Check =
    Arc<dyn Fn(&Value, Option<&Value>, &WriteContext<'_>) -> Vec<FieldError> + Send + Sync>;

/// A function that validates objects of one version.
pub(super) struct VersionCheck {
    version: Str,
    check: Check,
}

impl TypedKind {
    /// Validates objects by a function of the last version's type `T`. Writes in other versions are converted first, so that no
    /// version avoids it. The function gets the new object and, for updates, the old one.
    ///
    /// ```
    /// use bareboat::prelude::*;
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Boat {
    ///     spec: Spec,
    /// }
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Spec {
    ///     crew: u32,
    ///     berths: u32,
    /// }
    ///
    /// # fn main() -> Result<(), bareboat::TypedKindError> {
    /// let boats = TypedKind::new("sea.example.com", "boats", "Boat")
    ///     .version::<Boat>("v1")
    ///     .rule("self.spec.berths < 1000", "no boat is so large")
    ///     .validate(|new: &Boat, _old: Option<&Boat>, _: &WriteContext<'_>| {
    ///         let crew = FieldPath::new("spec").child("crew");
    ///         match new.spec.crew > new.spec.berths {
    ///             true => vec![FieldError::invalid(crew, new.spec.crew as i64, "there are fewer berths")],
    ///             false => vec![],
    ///         }
    ///     })
    ///     .build()?;
    /// # drop(boats);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn validate<T: DeserializeOwned + 'static>(
        mut self,
        check: impl Fn(&T, Option<&T>, &WriteContext<'_>) -> Vec<FieldError> + Send + Sync + 'static,
    ) -> TypedKind {
        let Some(version) = self.versions.last().map(|version| version.name.clone()) else {
            self.fail(TypedKindError::BeforeVersions("a function".to_owned()));
            return self;
        };
        let check: Check = Arc::new(move |new, old, context| {
            let read = |value: &Value| from_value::<T>(value).ok();
            let old = old.and_then(read);
            match read(new) {
                Some(new) => check(&new, old.as_ref(), context),
                // The schema has reported why.
                None => Vec::new(),
            }
        });
        self.checks.push(VersionCheck { version, check });
        self
    }

    /// Adds a subresource to the last version. [`Server::builder`](crate::Server::builder) connects those of
    /// [`Subresource::connection`] with a function.
    #[must_use]
    pub fn subresource(mut self, part: Subresource) -> TypedKind {
        match self.versions.last_mut() {
            Some(version) => version.subresources.push(part),
            None => {
                let part = format!("the subresource {}", part.name);
                self.fail(TypedKindError::BeforeVersions(part));
            }
        }
        self
    }

    /// Adds an action to the last version: clients post an object of type `B`, whose kind is named here, to a subresource. The
    /// function carries it out and returns the object of the answer.
    #[must_use]
    pub fn action<B>(
        mut self,
        name: &str,
        kind: &str,
        act: impl for<'a> Fn(ActionCall<'a, B>) -> BoxFuture<'a, Result<B, Status>>
        + Send
        + Sync
        + 'static,
    ) -> TypedKind
    where
        B: JsonSchema + Serialize + DeserializeOwned + Send + 'static,
    {
        let mut shape = TypedShape::new(super::structural::schema_of::<B>());
        if let Some(source) = shape.take_fault() {
            let of = format!("the kind {kind}");
            self.fail(TypedKindError::Schema { of, source });
        }
        let version = self.versions.last().map_or("", |version| &version.name);
        let api_version = format!("{}/{version}", self.group);
        let action = TypedAction {
            types: [PostedType {
                api_version: Str::new(&api_version),
                kind: Str::new(kind),
                shape: Arc::new(shape),
            }],
            act: Box::new(act),
        };
        let response = (self.group.clone(), version.to_owned(), kind.to_owned());
        let response = (&*response.0, &*response.1, &*response.2);
        let part = Subresource::action(name, response, action);
        self.subresource(part)
    }

    /// Decides which objects users see.
    #[must_use]
    pub fn reader(mut self, filter: impl ReadFilter + 'static) -> TypedKind {
        self.reader = Some(Arc::new(filter));
        self
    }

    /// Adds a name in field selectors whose matches a function finds.
    #[must_use]
    pub fn search(mut self, search: Search) -> TypedKind {
        self.searches.push(search);
        self
    }

    /// Completes objects that are read by their name, for fields that are computed then. Lists and watches do not have them.
    #[must_use]
    pub fn on_get<F, R>(mut self, complete: F) -> TypedKind
    where
        F: Fn(Object) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Object, Status>> + Send + 'static,
    {
        self.on_get = Some(Arc::new(move |object| Box::pin(complete(object))));
        self
    }

    /// Limits the verbs, for example to `get`, `list` and `watch`.
    #[must_use]
    pub fn verbs(mut self, verbs: &[Verb]) -> TypedKind {
        self.verbs = Some(Verbs::of(verbs));
        self
    }

    /// Adds the rules to a kind that is being built.
    pub(super) fn add_behaviour(
        kind: &mut Kind,
        rules: Behaviour,
        conversions: &HashMap<(String, String), Convert>,
    ) {
        if let Some(strategy) = rules.strategy {
            kind.strategy = strategy;
        }
        if !rules.checks.is_empty() {
            kind.strategy = Arc::new(CheckedStrategy {
                inner: kind.strategy.clone(),
                checks: rules.checks,
                conversions: conversions.clone(),
            });
        }
        if let Some(verbs) = rules.verbs {
            kind.verbs = verbs;
        }
        kind.reader = rules.reader;
        kind.searches = rules.searches;
        kind.on_get = rules.on_get;
    }
}

/// The rules of a kind, apart from its versions.
pub(super) struct Behaviour {
    pub(super) strategy: Option<Arc<dyn Strategy>>,
    pub(super) checks: Vec<VersionCheck>,
    pub(super) verbs: Option<Verbs>,
    pub(super) reader: Option<Arc<dyn ReadFilter>>,
    pub(super) searches: Vec<Search>,
    pub(super) on_get: Option<OnGet>,
}

/// A request to an action.
pub struct ActionCall<'a, B> {
    /// The posted object, without type and metadata.
    pub body: B,
    /// The namespace and the name of the object in the URL, the user, and whether it is a dry run.
    pub posted: Posted<'a>,
    /// Reads and changes stored objects. The rights of the user do not limit it.
    pub objects: &'a dyn ObjectAccess,
}

impl<B> std::fmt::Debug for ActionCall<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ActionCall")
    }
}

type Act<B> =
    Box<dyn for<'a> Fn(ActionCall<'a, B>) -> BoxFuture<'a, Result<B, Status>> + Send + Sync>;

struct TypedAction<B> {
    types: [PostedType; 1],
    act: Act<B>,
}

impl<B: Serialize + DeserializeOwned + Send + 'static> Action for TypedAction<B> {
    fn types(&self) -> &[PostedType] {
        &self.types
    }

    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        objects: &'a dyn ObjectAccess,
    ) -> BoxFuture<'a, Result<Acted, Status>> {
        Box::pin(async move {
            let mut answer = posted.object.clone();
            let body: B = from_value(&own_part(posted.object.value()))
                .map_err(|error| Status::bad_request(error.to_string()))?;
            let call = ActionCall {
                body,
                posted,
                objects,
            };
            let done = (self.act)(call).await?;
            let mut done = to_value(&done).map_err(|error| Status::internal(error.to_string()))?;
            super::drop_nulls(&mut done);
            if let Value::Object(members) = done {
                for (name, member) in members.iter() {
                    answer.map_mut().insert(name, member.clone());
                }
            }
            Ok(Acted::Object(answer))
        })
    }
}

/// A strategy with functions that validate objects in one version each.
struct CheckedStrategy {
    inner: Arc<dyn Strategy>,
    checks: Vec<VersionCheck>,
    conversions: HashMap<(String, String), Convert>,
}

impl CheckedStrategy {
    /// Returns an object in a version; `None` if it cannot be converted, which the conversion to the storage version reports.
    fn in_version(&self, object: &Object, from: &str, to: &str) -> Option<Value> {
        let own = own_part(object.value());
        if from == to {
            return Some(own);
        }
        let convert = self.conversions.get(&(from.to_owned(), to.to_owned()))?;
        let mut converted = convert(&own).ok()?;
        super::drop_nulls(&mut converted);
        Some(converted)
    }

    fn check(
        &self,
        new: &Object,
        old: Option<&Object>,
        context: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for VersionCheck { version, check } in &self.checks {
            let convert = |object| self.in_version(object, context.version, version);
            let old = old.and_then(convert);
            if let Some(new) = convert(new) {
                errors.extend(check(&new, old.as_ref(), context));
            }
        }
        errors
    }
}

impl Strategy for CheckedStrategy {
    fn inner(&self) -> Option<&dyn Strategy> {
        Some(self.inner.as_ref())
    }

    fn validate_create(&self, new: &Object, context: &WriteContext<'_>) -> Vec<FieldError> {
        let mut errors = self.inner.validate_create(new, context);
        errors.extend(self.check(new, None, context));
        errors
    }

    fn validate_update(
        &self,
        new: &Object,
        old: &Object,
        context: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        let mut errors = self.inner.validate_update(new, old, context);
        errors.extend(self.check(new, Some(old), context));
        errors
    }
}
