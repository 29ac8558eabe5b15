//! The values of expressions.
//!
//! Data is not copied: lists, maps, objects and strings from JSON are references, converted one
//! element at a time by the declared type (`value::json`).

mod compare;
mod json;
mod map;
mod print;
mod special;
pub(crate) mod time;

pub(crate) use compare::{compare, equal, same_keys};
pub use map::{Entries, MapVal};
use print::shown;
pub(crate) use print::{float_text, print};
pub(crate) use special::Special;
pub use time::Moment;

use std::fmt;
use std::sync::Arc;

use bareboat_api::{Map, Value};

use crate::decl::{DeclType, ObjectType};
use crate::error::EvalError;
use crate::types::Type;

/// A value of the language, borrowed from the data and the program where possible.
#[derive(Clone)]
pub enum Val<'a> {
    /// `null`.
    Null,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `uint`.
    Uint(u64),
    /// `double`.
    Double(f64),
    /// `string`.
    String(Text<'a>),
    /// `bytes`.
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Moment),
    /// `list`.
    List(List<'a>),
    /// `map`.
    Map(MapVal<'a>),
    /// An object of a declared type.
    Object(Object<'a>),
    /// A type.
    Type(Type),
    /// A value that may be absent.
    Optional(Option<Arc<Val<'a>>>),
    /// A value of one of Kubernetes' own types.
    Special(SpecialVal),
}

/// A value of one of Kubernetes' own types: quantity, IP address, URL, authorizer and the like.
#[derive(Clone)]
pub struct SpecialVal(pub(crate) Arc<Special>);

bareboat_api::opaque_debug!(SpecialVal);

/// A string, borrowed or shared.
#[derive(Clone)]
pub enum Text<'a> {
    /// Borrowed from the data or the program.
    Ref(&'a str),
    /// Created during evaluation.
    Own(Arc<str>),
}

bareboat_api::opaque_debug!(Text<'_>);

impl Text<'_> {
    /// Returns the text itself.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Ref(text) => text,
            Text::Own(text) => text,
        }
    }
}

/// A list: a borrowed JSON array, or values created during evaluation.
#[derive(Clone)]
pub enum List<'a> {
    /// A JSON array.
    Json {
        /// The elements of the array.
        items: &'a [Value],
        /// The type of the list, if declared.
        decl: Option<&'a DeclType>,
    },
    /// Values created during evaluation.
    Values {
        /// The elements.
        items: Arc<Vec<Val<'a>>>,
        /// The declared type of the list, if it is not atomic; it decides about order.
        decl: Option<&'a DeclType>,
    },
}

bareboat_api::opaque_debug!(List<'_>);

/// An object of a declared type.
#[derive(Clone)]
pub enum Object<'a> {
    /// A JSON object.
    Json {
        /// The members of the object.
        map: &'a Map,
        /// The declared type of the object.
        ty: &'a Arc<ObjectType>,
    },
    /// An object built by the expression.
    Built(Arc<Built<'a>>),
}

bareboat_api::opaque_debug!(Object<'_>);

/// An object built by an expression.
pub struct Built<'a> {
    pub(crate) ty: Arc<ObjectType>,
    pub(crate) fields: Vec<(bareboat_api::Str, Val<'a>)>,
}

bareboat_api::opaque_debug!(Built<'_>);

impl<'a> Built<'a> {
    /// Returns the name of the type, such as `Object.spec`.
    pub fn type_name(&self) -> &str {
        self.ty.name()
    }

    /// Returns the fields that the expression set.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Val<'a>)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }
}

impl<'a> Val<'a> {
    /// Returns a string value.
    pub fn text(text: impl Into<Arc<str>>) -> Val<'a> {
        Val::String(Text::Own(text.into()))
    }

    /// Returns a borrowed string.
    pub fn str(text: &'a str) -> Val<'a> {
        Val::String(Text::Ref(text))
    }

    /// Returns a value of type `bytes`.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Val<'a> {
        Val::Bytes(bytes.into())
    }

    /// Returns a list of values.
    pub fn list(items: Vec<Val<'a>>) -> Val<'a> {
        Val::List(List::Values {
            items: Arc::new(items),
            decl: None,
        })
    }

    /// Returns a map; fails for a duplicate key or a key of an invalid type.
    pub fn map(
        entries: impl IntoIterator<Item = (Val<'a>, Val<'a>)>,
    ) -> Result<Val<'a>, EvalError> {
        let mut map = Entries::default();
        for (key, value) in entries {
            let shown = key.clone();
            if !map.insert(key, value)? {
                return Err(EvalError::new(format!("repeated key: {shown}")));
            }
        }
        Ok(Val::Map(MapVal::Values(Arc::new(map))))
    }

    /// Returns a list of strings.
    pub(crate) fn strings<T: Into<Arc<str>>>(items: impl IntoIterator<Item = T>) -> Val<'a> {
        Val::list(items.into_iter().map(Val::text).collect())
    }

    /// Returns a present optional.
    pub fn some(value: Val<'a>) -> Val<'a> {
        Val::Optional(Some(Arc::new(value)))
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Val::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Val::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Val::List(list) => Some(list),
            _ => None,
        }
    }

    pub(crate) fn as_special(&self) -> Option<&Special> {
        match self {
            Val::Special(special) => Some(&special.0),
            _ => None,
        }
    }

    pub(crate) fn special(special: Special) -> Val<'a> {
        Val::Special(SpecialVal(Arc::new(special)))
    }

    /// Returns the type as `type()` shows it: without parameters, objects as maps.
    pub fn type_of(&self) -> Type {
        match self {
            Val::Null => Type::Null,
            Val::Bool(_) => Type::Bool,
            Val::Int(_) => Type::Int,
            Val::Uint(_) => Type::Uint,
            Val::Double(_) => Type::Double,
            Val::String(_) => Type::String,
            Val::Bytes(_) => Type::Bytes,
            Val::Duration(_) => Type::Duration,
            Val::Timestamp(_) => Type::Timestamp,
            Val::List(_) => Type::list(Type::Dyn),
            Val::Map(_) | Val::Object(Object::Json { .. }) => Type::map(Type::Dyn, Type::Dyn),
            Val::Object(Object::Built(built)) => Type::Object(built.ty.clone()),
            Val::Type(_) => Type::Type(None),
            Val::Optional(_) => Type::optional(Type::Dyn),
            Val::Special(special) => special.0.ty(),
        }
    }

    /// Returns the `size()` for cost calculations: one for values without a size.
    pub(crate) fn cost_size(&self) -> u64 {
        match self {
            Val::Optional(Some(inner)) => inner.cost_size(),
            other => other.size().map_or(1, |size| size as u64),
        }
    }

    /// Returns `size()`, for values that have one.
    pub(crate) fn size(&self) -> Option<usize> {
        Some(match self {
            Val::String(text) => characters(text.as_str()),
            Val::Bytes(bytes) => bytes.len(),
            Val::List(list) => list.len(),
            Val::Map(map) => map.len(),
            Val::Object(object) => object.len(),
            Val::Special(special) => return special.0.size(),
            _ => return None,
        })
    }
}

/// Returns the number of characters; fast for ASCII strings.
pub(crate) fn characters(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

impl<'a> List<'a> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            List::Json { items, .. } => items.len(),
            List::Values { items, .. } => items.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element at an index, converted by its type.
    pub fn get(&self, index: usize) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            List::Json { items, decl } => {
                let item = items.get(index)?;
                Some(Val::of_item(item, *decl))
            }
            List::Values { items, .. } => items.get(index).cloned().map(Ok),
        }
    }

    /// Returns the elements, converted by their type.
    pub fn iter(&self) -> impl Iterator<Item = Result<Val<'a>, EvalError>> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    pub(crate) fn to_vec(&self) -> Result<Vec<Val<'a>>, EvalError> {
        self.iter().collect()
    }

    pub(crate) fn decl(&self) -> Option<&'a DeclType> {
        match self {
            List::Json { decl, .. } | List::Values { decl, .. } => *decl,
        }
    }
}

impl<'a> Object<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Json { map, .. } => map.len(),
            Object::Built(built) => built.fields.len(),
        }
    }

    /// Returns the value of a field by its name in expressions; null counts as absent.
    pub(crate) fn field(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            Object::Json { map, ty } => {
                let Some(field) = ty.field(name) else {
                    return match map.get(name) {
                        Some(value) if ty.is_open() => Some(Ok(Val::of_json(value))),
                        _ => None,
                    };
                };
                match map.get(field.property())? {
                    Value::Null => None,
                    value => Some(Val::of(value, &field.decl)),
                }
            }
            Object::Built(built) => {
                let found = built.fields.iter().find(|(field, _)| field == name)?;
                Some(Ok(found.1.clone()))
            }
        }
    }

    /// Returns the names of the present fields, as in expressions.
    pub(crate) fn names(&self) -> Vec<bareboat_api::Str> {
        match self {
            Object::Json { map, ty } => map
                .iter()
                .filter_map(|(property, _)| ty.property(property))
                .map(|field| field.name.clone())
                .collect(),
            Object::Built(built) => built.fields.iter().map(|(name, _)| name.clone()).collect(),
        }
    }
}

impl fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self))
    }
}

/// Prints a value as in messages.
impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self))
    }
}
