//! Conversion between versions, which the caller provides.

use bareboat_api::{Str, Value};
use std::cell::RefCell;

/// The error of a conversion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The version no longer exists; the entries of its managers are dropped.
    #[error("the version is not known")]
    UnknownVersion,
    /// The result is not available yet; see [`Conversions`].
    #[error("the object has to be converted first")]
    NeedsConversion,
    /// The conversion failed.
    #[error("{0}")]
    Failed(String),
}

/// Converts objects between the versions of a kind.
///
/// Called only when some manager used another version than the request. An object that already has
/// the version must be returned unchanged.
///
/// ```
/// use bareboat_api::{Value, value};
/// use bareboat_merge::apply::{ConvertError, Converter};
///
/// /// `v2` calls `sails` `canvases`.
/// struct Renamed;
/// impl Converter for Renamed {
///     fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
///         let mut object = object.clone();
///         let Some(map) = object.as_object_mut() else {
///             return Err(ConvertError::Failed("it is not an object".to_owned()));
///         };
///         let (from, into) = match to {
///             "v1" => ("canvases", "sails"),
///             "v2" => ("sails", "canvases"),
///             _ => return Err(ConvertError::UnknownVersion),
///         };
///         if let Some(value) = map.remove(from) {
///             map.insert(into, value);
///         }
///         map.insert("apiVersion", Value::string(to));
///         Ok(object)
///     }
/// }
///
/// let old = value!({"apiVersion": "v1", "sails": 2});
/// let new = Renamed.convert(&old, "v2").expect("it has the field");
/// assert_eq!(new, value!({"apiVersion": "v2", "canvases": 2}));
/// assert_eq!(Renamed.convert(&new, "v2").expect("nothing to do"), new);
/// assert!(Renamed.convert(&new, "v3").is_err());
/// ```
pub trait Converter {
    /// Converts the object to another version.
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError>;
}

/// The converter of kinds with one version.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConversion;

impl Converter for NoConversion {
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
        match object.get("apiVersion").and_then(Value::as_str) {
            Some(version) if version != to => Err(ConvertError::UnknownVersion),
            _ => Ok(object.clone()),
        }
    }
}

/// Results of asynchronous conversions (webhooks).
///
/// Apply and update are pure, so they can be run again: they record a missing conversion and fail
/// with `NeedsConversion`. The caller then converts the object, adds the result and starts over:
///
/// ```text
/// let mut conversions = Conversions::default();
/// let object = loop {
///     match field_manager(&conversions).apply(live, &config, force, writer) {
///         Err(ApplyError::NeedsConversion) => {
///             let (object, version) = conversions.wanted().expect("just asked for");
///             let converted = webhook.convert(&object, &version).await;
///             conversions.add(object, version, converted);
///         }
///         other => break other?,
///     }
/// };
/// ```
#[derive(Debug, Default)]
pub struct Conversions {
    known: Vec<(Value, Str, Result<Value, ConvertError>)>,
    wanted: RefCell<Option<(Value, Str)>>,
}

impl Conversions {
    /// Returns the missing conversion.
    pub fn wanted(&mut self) -> Option<(Value, Str)> {
        self.wanted.get_mut().take()
    }

    /// Adds the result of a conversion.
    pub fn add(&mut self, object: Value, to: Str, result: Result<Value, ConvertError>) {
        self.known.push((object, to, result));
    }
}

impl Converter for Conversions {
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(to) {
            return Ok(object.clone());
        }
        let known = self
            .known
            .iter()
            .find(|(known, version, _)| version == to && known == object);
        if let Some((_, _, result)) = known {
            return result.clone();
        }
        *self.wanted.borrow_mut() = Some((object.clone(), Str::new(to)));
        Err(ConvertError::NeedsConversion)
    }
}
