//! Conversion of objects between the versions of a kind.

use crate::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future, for traits that must stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The error of a failed conversion; clients see the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConvertError(pub String);

/// Converts one object in this process. Takes the object, the wanted apiVersion, and on writes the
/// stored object, so that a write in one version can keep fields that only another version has.
pub type PureConvert =
    Arc<dyn Fn(Value, &str, Option<&Value>) -> Result<Value, ConvertError> + Send + Sync>;

/// Converts batches of objects outside this process.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::{AsyncConvert, BoxFuture, Conversion, ConvertError};
/// use bareboat::api::Value;
/// use std::sync::Arc;
///
/// /// Changes the version and nothing else; a real one would call a service.
/// struct Rename;
///
/// impl AsyncConvert for Rename {
///     fn convert<'a>(&'a self, mut objects: Vec<Value>, to: &'a str) -> BoxFuture<'a, Result<Vec<Value>, ConvertError>> {
///         for object in &mut objects {
///             object.make_object().insert("apiVersion", Value::string(to));
///         }
///         Box::pin(std::future::ready(Ok(objects)))
///     }
/// }
///
/// let conversion = Conversion::Remote(Arc::new(Rename));
/// # drop(conversion);
/// ```
pub trait AsyncConvert: Send + Sync {
    /// Converts objects of one kind to the wanted apiVersion, keeping their order.
    fn convert<'a>(
        &'a self,
        objects: Vec<Value>,
        to: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, ConvertError>>;
}

/// How objects are converted between versions.
#[derive(Clone)]
pub enum Conversion {
    /// All versions have the same schema: only `apiVersion` (and `kind`) change.
    Rename,
    /// By a function.
    Pure(PureConvert),
    /// By a service.
    Remote(Arc<dyn AsyncConvert>),
}

crate::opaque_debug!(Conversion);
