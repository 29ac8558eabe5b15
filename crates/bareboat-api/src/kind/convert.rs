//! How objects change between the versions of a kind.

use crate::Value;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A future on the heap, as traits that must stay object-safe return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why objects could not be converted; the text is shown to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError(pub String);

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for ConvertError {}

/// Converts one object in this process: the object, the apiVersion wanted, and on writes the
/// stored object, so that a write in one version need not erase what only another version has.
pub type PureConvert =
    Arc<dyn Fn(Value, &str, Option<&Value>) -> Result<Value, ConvertError> + Send + Sync>;

/// Converts batches of objects somewhere else.
pub trait AsyncConvert: Send + Sync {
    /// Converts objects of one kind to the wanted apiVersion, keeping their order.
    fn convert<'a>(
        &'a self,
        objects: Vec<Value>,
        to: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, ConvertError>>;
}

/// How objects change between versions.
#[derive(Clone)]
pub enum Conversion {
    /// All versions have one form: only `apiVersion` (and `kind`) change.
    Rename,
    /// A function.
    Pure(PureConvert),
    /// A service.
    Remote(Arc<dyn AsyncConvert>),
}
