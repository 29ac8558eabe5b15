//! Managed fields: records which manager owns which field, and performs server-side apply.
//!
//! `bareboat-merge` implements the rules; this module gives it what it needs to know about the kind.

use crate::kinds::stored_kind::StoredKind;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::verbs::{Edit, Edited, KindRequest};
use bareboat_api::kind::{BoxFuture, Conversion, Fields, Shape, SubresourceRole, Typing};
use bareboat_api::typing::TypeNode;
use bareboat_api::{Object, Status, Str, Value};
use bareboat_merge::apply::{
    ApplyError, Conversions, ConvertError, Converter, FieldManager, Versions, Writer, describe,
};
use bareboat_merge::fields::FieldSet;
use std::sync::OnceLock;

/// Records the creator of an object as manager of its fields.
pub(crate) async fn on_create(
    call: &KindRequest,
    object: Object,
    manager: &str,
    now: &str,
) -> Result<Object, Status> {
    record(&Known::of(call), None, object, writer(call, manager, now)).await
}

/// Records the writer of changed fields as their manager.
pub(crate) async fn on_update(
    call: &KindRequest,
    object: Object,
    live: &Object,
    manager: &str,
    now: &str,
) -> Result<Object, Status> {
    let writer = writer(call, manager, now);
    record(&Known::of(call), Some(live), object, writer).await
}

/// Records the manager of a change that the server made without a request for it, in the storage version.
pub(crate) async fn on_behalf(
    served: &StoredKind,
    version: usize,
    object: Object,
    live: &Object,
    writer: Writer<'_>,
) -> Result<Object, Status> {
    let known = Known::new(served, version, writer.subresource);
    record(&known, Some(live), object, writer).await
}

fn writer<'a>(call: &'a KindRequest, manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer {
        manager,
        subresource: &call.ask.info.subresource,
        now,
    }
}

async fn record(
    kind: &Known<'_>,
    live: Option<&Object>,
    object: Object,
    writer: Writer<'_>,
) -> Result<Object, Status> {
    let recorded = kind
        .with_fields(Value::from(object), |fields, object| {
            fields.update(live.map(Object::value), object, writer)
        })
        .await
        .map_err(apply_error)?;
    Object::try_from(recorded)
        .map_err(|_| Status::internal("field management returned a value that is not an object"))
}

/// What field management needs to know about the kind of a request.
struct Known<'a> {
    served: &'a StoredKind,
    version: usize,
    /// Fields that writes through this endpoint do not change.
    reset: FieldSet,
    /// If set, the only fields that such writes change.
    kept: Option<FieldSet>,
    /// Whether conversion is forbidden.
    raw: bool,
    /// The types of the versions used so far.
    types: Vec<OnceLock<Typing<'a>>>,
}

impl<'a> Known<'a> {
    fn of(call: &'a KindRequest) -> Known<'a> {
        let known = Known::new(&call.served, call.version, &call.ask.info.subresource);
        Known {
            raw: call.ask.raw,
            ..known
        }
    }

    fn new(served: &'a StoredKind, index: usize, subresource: &str) -> Known<'a> {
        let version = served.version(index);
        let role = version
            .subresource(subresource)
            .map(|subresource| &subresource.role);
        let mut reset = FieldSet::new();
        match role {
            None if version.has_status() => reset.insert_names(&["status"]),
            Some(SubresourceRole::Status) => {
                reset.insert_names(&["spec"]);
                if !served.kind.policy.status_keeps_metadata {
                    reset.insert_names(&["metadata"]);
                }
            }
            _ => {}
        }
        let policy = &served.kind.policy;
        for list in [policy.resets, policy.unowned] {
            for path in Fields::at(list, subresource) {
                reset.insert_names(path);
            }
        }
        let mut kept = FieldSet::new();
        for path in Fields::at(policy.touches, subresource) {
            kept.insert_names(path);
        }
        Known {
            served,
            version: index,
            reset,
            kept: (!kept.is_empty()).then_some(kept),
            raw: false,
            types: served
                .kind
                .versions
                .iter()
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Runs a pure computation on an object; performs each conversion the computation asks for and runs it again.
    async fn with_fields<T: Clone>(
        &self,
        given: T,
        compute: impl Fn(FieldManager<'_>, T) -> Result<Value, ApplyError>,
    ) -> Result<Value, ApplyError> {
        let empty = || self.served.version(self.version).shape.empty();
        let fields = |converter: &dyn Converter, given: T| {
            let fields = FieldManager {
                api_version: self.served.api_version(self.version),
                kind: &self.served.kind.names.kind,
                versions: self,
                converter,
                empty: &empty,
            };
            compute(fields, given)
        };
        if self.raw {
            return fields(&NoConverter, given);
        }
        let Conversion::Remote(_) = &self.served.kind.conversion else {
            return fields(&InProcess(self.served), given);
        };
        let mut conversions = Conversions::default();
        loop {
            match fields(&conversions, given.clone()) {
                Err(ApplyError::NeedsConversion) => {}
                done => return done,
            }
            let Some((object, to)) = conversions.wanted() else {
                return Err(ApplyError::NeedsConversion);
            };
            let converted = self.convert_remotely(object.clone(), &to).await;
            conversions.add(object, to, converted);
        }
    }

    async fn convert_remotely(&self, object: Value, to: &Str) -> Result<Value, ConvertError> {
        let version = self.served.index_of(to);
        let version = version.ok_or(ConvertError::UnknownVersion)?;
        let object =
            Object::try_from(object).map_err(|_| ConvertError::Failed("no object".to_owned()))?;
        let converted = self.served.convert(vec![object], version, None).await;
        let mut converted = converted.map_err(|status| ConvertError::Failed(status.message))?;
        converted
            .pop()
            .map(Value::from)
            .ok_or_else(|| ConvertError::Failed("a conversion lost an object".to_owned()))
    }
}

impl Versions for Known<'_> {
    fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode> {
        let index = self.served.index_of(api_version)?;
        let shape = &self.served.version(index).shape;
        let typing = self.types[index].get_or_init(|| shape.typing());
        Some(&**typing)
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        (!self.reset.is_empty()).then_some(&self.reset)
    }

    fn kept_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        self.kept.as_ref()
    }
}

/// A converter for objects in their storage version: managers of other versions keep their fields.
struct NoConverter;

impl Converter for NoConverter {
    fn convert(&self, _object: &Value, _to: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::Failed("nothing is converted".to_owned()))
    }
}

/// Conversion inside this process.
struct InProcess<'a>(&'a StoredKind);

impl Converter for InProcess<'_> {
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(to) {
            return Ok(object.clone());
        }
        let kind = &self.0.kind;
        let shape = |api_version: &str| {
            let index = self.0.index_of(api_version);
            index.map(|index| &kind.versions[index].shape)
        };
        let to_shape = shape(to).ok_or(ConvertError::UnknownVersion)?;
        let mut converted = object.clone();
        if let Conversion::Pure(convert) = &kind.conversion {
            // A merged object may lack members that a typed object always has, and versions differ in them.
            let from = object.get("apiVersion").and_then(Value::as_str);
            if let Some(from) = from.and_then(shape) {
                in_form(from.as_ref(), &mut converted)?;
            }
            converted =
                convert(converted, to, None).map_err(|error| ConvertError::Failed(error.0))?;
            in_form(to_shape.as_ref(), &mut converted)?;
        }
        converted
            .make_object()
            .insert("apiVersion", Value::string(to));
        Ok(converted)
    }
}

fn in_form(shape: &dyn Shape, object: &mut Value) -> Result<(), ConvertError> {
    shape
        .conform(object, &mut Vec::new())
        .map_err(ConvertError::Failed)
}

/// A server-side apply in progress.
pub(crate) struct Apply {
    config: Value,
    /// The members that occur twice, and how the client wants them handled.
    duplicates: Vec<String>,
    validation: FieldValidation,
    manager: String,
    force: bool,
    now: Str,
}

impl Apply {
    /// Parses and checks an applied configuration as far as possible without the live object.
    pub(crate) fn new(
        call: &KindRequest,
        config: Object,
        duplicates: Vec<String>,
        options: &WriteOptions,
        now: Str,
    ) -> Result<Apply, Status> {
        let name = config.name();
        if !name.is_empty() && name != call.ask.info.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.ask.info.name
            )));
        }
        Ok(Apply {
            config: config.into(),
            duplicates,
            validation: options.field_validation,
            manager: call
                .ask
                .manager(options.field_manager.as_deref())
                .to_owned(),
            force: options.force,
            now,
        })
    }

    /// Returns the object that an apply creates when none exists.
    pub(crate) async fn create(&self, call: &KindRequest) -> Result<Object, Status> {
        let object = self.applied(call, None).await?;
        if object.name().is_empty() {
            return Err(crate::verbs::nameless(&call.ask.info.name));
        }
        if !object.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                object.uid()
            );
            let resource = call.served.kind.group_resource();
            return Err(Status::conflict(resource, &call.ask.info.name, why));
        }
        Ok(object)
    }

    async fn applied(&self, call: &KindRequest, live: Option<&Object>) -> Result<Object, Status> {
        let known = Known::of(call);
        let writer = writer(call, &self.manager, &self.now);
        let applied = known
            .with_fields((), |fields, ()| {
                fields.apply(live.map(Object::value), &self.config, self.force, writer)
            })
            .await
            .map_err(apply_error)?;
        let mut object = Object::try_from(applied).map_err(|_| {
            Status::internal("field management returned a value that is not an object")
        })?;
        let shape = &call.version().shape;
        shape.conform_applied(object.value_mut()).map_err(|why| {
            let what = describe(
                call.served.api_version(call.version),
                &call.served.kind.names.kind,
                &self.config,
            );
            let text = format!("failed to convert new object ({what}) to proper version: {why}");
            Status::new(500, "", text)
        })?;
        crate::verbs::judge_duplicates(call, &self.duplicates, self.validation)?;
        crate::verbs::fill_in(&*call.version().shape, &mut object)?;
        Ok(object)
    }
}

impl Edit for Apply {
    fn edit<'a>(
        &'a self,
        call: &'a KindRequest,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        Box::pin(async move {
            let mut object = self.applied(call, Some(live)).await?;
            // The configuration may name a resourceVersion; without one, any version matches.
            let wanted = self
                .config
                .at(&["metadata", "resourceVersion"])
                .and_then(Value::as_str);
            object.set_meta(
                "resourceVersion",
                Value::string(wanted.unwrap_or(live.resource_version())),
            );
            Ok(Edited {
                object,
                managed: true,
            })
        })
    }

    fn is_conditional(&self) -> bool {
        self.config.at(&["metadata", "resourceVersion"]).is_some()
    }
}

/// Converts an apply error into a Status.
pub(crate) fn apply_error(error: ApplyError) -> Status {
    match error {
        ApplyError::WrongType(_) | ApplyError::HasManagedFields => {
            Status::bad_request(error.to_string())
        }
        ApplyError::Conflicts(conflicts) => {
            let mut status = Status::new(409, "Conflict", conflicts.to_string());
            for (message, field) in conflicts.causes() {
                status = status.with_cause("FieldManagerConflict", message, &field);
            }
            status
        }
        other => Status::new(500, "", other.to_string()),
    }
}
