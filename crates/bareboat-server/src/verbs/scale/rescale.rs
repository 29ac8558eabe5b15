//! Writes replicas through a Scale: changes the object, and the managers of its replicas field.

use super::body::{ScaleEdit, drop_unknown};
use super::{API_VERSION, MESSAGE, members, of_parent};
use crate::admission::Scaled;
use crate::managed::apply_error;
use crate::request::options::WriteOptions;
use crate::verbs::kind_request::KindRequest;
use crate::verbs::patch::{inapplicable, judge};
use crate::verbs::write::change::{Edit, Edited};
use bareboat_api::kind::{BoxFuture, ScalePaths, ScaleStyle, SubresourceRole};
use bareboat_api::status::GroupResource;
use bareboat_api::typing::{NodeType, TypeNode};
use bareboat_api::{FieldError, FieldPath, Object, Status, Str, Value};
use bareboat_merge::apply::{FieldManager, NoConversion, Versions, Writer};
use bareboat_merge::managed::scale::{ReplicasPaths, to_parent, to_scale};
use bareboat_merge::merge_patch;

/// A write to a Scale.
pub(super) struct Rescale<'p> {
    pub(super) call: &'p KindRequest,
    pub(super) paths: &'p ScalePaths,
    pub(super) change: ScaleEdit,
    pub(super) manager: &'p str,
    pub(super) options: &'p WriteOptions,
    pub(super) now: Str,
}

impl Rescale<'_> {
    fn rescaled(&self, call: &KindRequest, live: &Object) -> Result<Object, Status> {
        let paths = replicas_paths(call);
        let mut before = Value::from(of_parent(call, self.paths, live)?);
        to_scale(live.value(), &mut before, &paths);
        let scale = self.scale(call, &before)?;
        let text = |key: &str| {
            let found = scale.at(&["metadata", key]).and_then(Value::as_str);
            found.unwrap_or("")
        };
        let name = &call.ask.info.name;
        if !text("name").is_empty() && text("name") != name {
            let own = text("name");
            return Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            )));
        }
        let replicas = self.replicas(call, &scale)?;
        let mut object = live.clone();
        self.set_replicas(&mut object, replicas)?;
        let api_version = call.served.api_version(call.version);
        to_parent(&scale, object.value_mut(), api_version, &paths);
        // A uid or resourceVersion in the body is a precondition, checked when the object is written.
        for key in ["uid", "resourceVersion"] {
            if !matches!(text(key), "" | "0") {
                object.set_meta(key, Value::string(text(key)));
            }
        }
        Ok(object)
    }

    /// Returns the new Scale, with its managers.
    fn scale(&self, call: &KindRequest, before: &Value) -> Result<Value, Status> {
        let message = call.messages().named(MESSAGE);
        let types = Types(match &message {
            Some(message) => message.get(),
            None => &Untyped,
        });
        let fields = FieldManager {
            api_version: API_VERSION,
            kind: "Scale",
            versions: &types,
            converter: &NoConversion,
            empty: &|| None,
        };
        let writer = Writer {
            manager: self.manager,
            subresource: "scale",
            now: &self.now,
        };
        let mut scale = match &self.change {
            ScaleEdit::Apply(config) => {
                let applied = fields.apply(Some(before), config, self.options.force, writer);
                return applied.map_err(apply_error);
            }
            ScaleEdit::Replace(scale) => scale.clone(),
            ScaleEdit::Merge(patch) => {
                let mut scale = before.clone();
                merge_patch(&mut scale, patch.clone());
                scale
            }
            ScaleEdit::Json(patch) => {
                let mut scale = before.clone();
                let applied = patch.apply(&mut scale);
                applied.map_err(|error| inapplicable(&error))?;
                scale
            }
        };
        if !matches!(self.change, ScaleEdit::Replace(_)) {
            let shown = scale.clone();
            let findings = drop_unknown(&mut scale);
            judge(call, &shown, self.options.field_validation, findings)?;
        }
        let map = scale.make_object();
        map.insert("apiVersion", API_VERSION.into());
        map.insert("kind", "Scale".into());
        map.object_mut("metadata");
        // The type omits zero, so that writing zero over zero changes nothing.
        let spec = map.object_mut("spec");
        if spec.get("replicas") == Some(&Value::Int(0)) {
            spec.remove("replicas");
        }
        // A subresource cannot set the list of managers; it starts from the current one.
        fields
            .update(Some(before), scale, writer)
            .map_err(apply_error)
    }

    fn set_replicas(&self, object: &mut Object, replicas: i64) -> Result<(), Status> {
        let path = members(&self.paths.spec_replicas);
        let Some((last, parents)) = path.split_last() else {
            return Err(Status::internal("the kind has no path for its replicas"));
        };
        let mut place = object.map_mut();
        for member in parents {
            place = place.object_mut(member);
        }
        place.insert(*last, Value::Int(replicas));
        Ok(())
    }

    fn replicas(&self, call: &KindRequest, scale: &Value) -> Result<i64, Status> {
        let given = scale
            .at(&["spec", "replicas"])
            .filter(|value| !value.is_null());
        let declared = call.served.kind.conventions.scale == ScaleStyle::Declared;
        let Some(given) = given else {
            // A typed Scale omits zero, so a missing number means zero.
            return if declared && scale.get("spec").is_none() {
                Err(Status::bad_request(format!(
                    "the spec replicas field \"{}\" cannot be empty",
                    self.paths.spec_replicas
                )))
            } else {
                Ok(0)
            };
        };
        let number = given
            .as_i64()
            .filter(|_| matches!(given, Value::Int(_)))
            .ok_or_else(|| {
                Status::bad_request("spec.replicas of a Scale must be a whole number")
            })?;
        // With declared paths, the object's schema checks the number.
        if declared || (0..=i64::from(i32::MAX)).contains(&number) {
            return Ok(number);
        }
        let why = if number < 0 {
            "must be greater than or equal to 0"
        } else {
            "must be less than or equal to 2147483647"
        };
        let error = FieldError::invalid(FieldPath::new("spec.replicas"), number, why);
        let what = GroupResource {
            group: "autoscaling",
            resource: "Scale",
        };
        Err(Status::invalid(what, &call.ask.info.name, &[error]))
    }
}

/// Policies and webhooks see the Scale, and may change its replicas.
impl Scaled for Rescale<'_> {
    fn show(&self, whole: &Object) -> Result<Object, Status> {
        of_parent(self.call, self.paths, whole)
    }

    fn write_back(&self, scale: &Object, whole: &mut Object) -> Result<(), Status> {
        let replicas = self.replicas(self.call, scale.value())?;
        self.set_replicas(whole, replicas)
    }
}

/// Returns the replicas path of each version of the kind.
fn replicas_paths(call: &KindRequest) -> ReplicasPaths {
    let kind = &call.served.kind;
    kind.versions
        .iter()
        .fold(ReplicasPaths::new(), |paths, version| {
            let scaled = version.subresource("scale").map(|part| &part.role);
            let path = match scaled {
                Some(SubresourceRole::Scale(paths)) => Some(members(&paths.spec_replicas)),
                _ => None,
            };
            paths.with(&kind.api_version(&version.name), path.as_deref())
        })
}

/// The types of the only version of Scale.
struct Types<'a>(&'a dyn TypeNode);

impl Versions for Types<'_> {
    fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode> {
        (api_version == API_VERSION).then_some(self.0)
    }
}

/// The type of a Scale without a protobuf message.
struct Untyped;

impl TypeNode for Untyped {
    fn node_type(&self) -> NodeType {
        NodeType::Untyped
    }

    fn field(&self, _name: &str) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }

    fn items(&self) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }
}

impl Edit for Rescale<'_> {
    fn edit<'a>(
        &'a self,
        call: &'a KindRequest,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        let edited = self.rescaled(call, live).map(|object| Edited {
            object,
            managed: true,
        });
        Box::pin(std::future::ready(edited))
    }

    fn scaled(&self) -> Option<&dyn Scaled> {
        Some(self)
    }

    fn is_conditional(&self) -> bool {
        self.change.is_conditional()
    }

    fn is_whole(&self) -> bool {
        matches!(self.change, ScaleEdit::Replace(_))
    }
}
