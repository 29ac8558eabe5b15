//! Conversion between versions, as the caller offers it.

use bareboat_api::{Str, Value};
use std::cell::RefCell;

/// Why an object could not be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The version does not exist any more; what its managers owned is forgotten.
    #[error("the version is not known")]
    UnknownVersion,
    /// The result is not at hand yet; see [`Conversions`].
    #[error("the object has to be converted first")]
    NeedsConversion,
    /// The conversion failed.
    #[error("{0}")]
    Failed(String),
}

/// Converts objects between the versions of a kind.
///
/// Asked only when some manager used another version than the request. An object that already has
/// the version is to be given back as it is.
pub trait Converter {
    /// The object in another version.
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

/// Conversions made ahead, for converters that can only be asked asynchronously (webhooks).
///
/// Apply and update are pure, so they can simply be run again: what they need and is not here yet is
/// noted, and they give up with `NeedsConversion`. The caller converts what was asked for, adds it
/// and starts over:
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
    /// What was asked for and is missing.
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
