//! Who manages which field: the bookkeeping of writes, and server-side apply.
//!
//! The rules are those of `bareboat-merge`; this room tells it what it must know of the kind.

use crate::kinds::served::Served;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::verbs::{Call, Edit, Edited};
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
    call: &Call,
    object: Object,
    manager: &str,
    now: &str,
) -> Result<Object, Status> {
    record(&Known::of(call), None, object, writer(call, manager, now)).await
}

/// Records the writer of changed fields as their manager.
pub(crate) async fn on_update(
    call: &Call,
    object: Object,
    live: &Object,
    manager: &str,
    now: &str,
) -> Result<Object, Status> {
    let writer = writer(call, manager, now);
    record(&Known::of(call), Some(live), object, writer).await
}

/// Records who made a change that no request of its own asked for, in the version of the store.
pub(crate) async fn on_behalf(
    served: &Served,
    version: usize,
    object: Object,
    live: &Object,
    writer: Writer<'_>,
) -> Result<Object, Status> {
    let known = Known::new(served, version, writer.subresource);
    record(&known, Some(live), object, writer).await
}

fn writer<'a>(call: &'a Call, manager: &'a str, now: &'a str) -> Writer<'a> {
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
        .with_fields(live.is_none(), Value::from(object), |fields, object| {
            fields.update(live.map(Object::value), object, writer)
        })
        .await
        .map_err(apply_error)?;
    Object::try_from(recorded).map_err(|_| Status::internal("an object was lost on the way"))
}

/// What managing fields must know of the kind of a request.
struct Known<'a> {
    served: &'a Served,
    version: usize,
    /// What writes through this endpoint do not touch.
    reset: FieldSet,
    /// What alone they touch.
    kept: Option<FieldSet>,
    /// Nothing may be converted.
    as_stored: bool,
    /// The types of the versions that were looked at.
    types: Vec<OnceLock<Typing<'a>>>,
}

impl<'a> Known<'a> {
    fn of(call: &'a Call) -> Known<'a> {
        let known = Known::new(&call.served, call.version, &call.ask.info.subresource);
        Known {
            as_stored: call.ask.as_stored,
            ..known
        }
    }

    fn new(served: &'a Served, index: usize, subresource: &str) -> Known<'a> {
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
            as_stored: false,
            types: served
                .kind
                .versions
                .iter()
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Runs a pure computation on something, converting for it what it turns out to need.
    async fn with_fields<T: Clone>(
        &self,
        needs_empty: bool,
        given: T,
        compute: impl Fn(FieldManager<'_>, T) -> Result<Value, ApplyError>,
    ) -> Result<Value, ApplyError> {
        let empty = if needs_empty {
            self.served.version(self.version).shape.empty()
        } else {
            None
        };
        let fields = |converter: &dyn Converter, given: T| {
            let fields = FieldManager {
                api_version: self.served.api_version(self.version),
                kind: &self.served.kind.names.kind,
                versions: self,
                converter,
                empty: empty.as_ref(),
            };
            compute(fields, given)
        };
        if self.as_stored {
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
        let version = self.served.place_of(to);
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
        let place = self.served.place_of(api_version)?;
        let shape = &self.served.version(place).shape;
        let typing = self.types[place].get_or_init(|| shape.typing());
        Some(&**typing)
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        (!self.reset.is_empty()).then_some(&self.reset)
    }

    fn kept_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        self.kept.as_ref()
    }
}

/// For objects as they are stored: managers who spoke other versions keep what they have.
struct NoConverter;

impl Converter for NoConverter {
    fn convert(&self, _object: &Value, _to: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::Failed("nothing is converted".to_owned()))
    }
}

/// Conversion without leaving the process.
struct InProcess<'a>(&'a Served);

impl Converter for InProcess<'_> {
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(to) {
            return Ok(object.clone());
        }
        let kind = &self.0.kind;
        let shape = |api_version: &str| {
            let place = self.0.place_of(api_version);
            place.map(|place| &kind.versions[place].shape)
        };
        let to_shape = shape(to).ok_or(ConvertError::UnknownVersion)?;
        let mut converted = object.clone();
        if let Conversion::Pure(convert) = &kind.conversion {
            // What was merged may lack members that a typed object always has, and versions differ in them.
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

/// A server-side apply on its way.
pub(crate) struct Apply {
    config: Value,
    /// Members of it that stand there twice, and what the client thinks of that.
    duplicates: Vec<String>,
    validation: FieldValidation,
    manager: String,
    force: bool,
    now: Str,
}

impl Apply {
    /// Checks a configuration as far as that is possible without the live object.
    pub(crate) fn new(
        call: &Call,
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

    /// The object an apply creates where there is none.
    pub(crate) async fn create(&self, call: &Call) -> Result<Object, Status> {
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

    async fn applied(&self, call: &Call, live: Option<&Object>) -> Result<Object, Status> {
        let known = Known::of(call);
        let writer = writer(call, &self.manager, &self.now);
        let applied = known
            .with_fields(true, (), |fields, ()| {
                fields.apply(live.map(Object::value), &self.config, self.force, writer)
            })
            .await
            .map_err(apply_error)?;
        let mut object = Object::try_from(applied)
            .map_err(|_| Status::internal("an object was lost on the way"))?;
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
        call: &'a Call,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        Box::pin(async move {
            let mut object = self.applied(call, Some(live)).await?;
            // The configuration may name the version it is meant for; otherwise any will do.
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

/// What managing fields refuses, as an answer.
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
