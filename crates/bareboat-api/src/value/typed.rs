//! Conversion between Rust structs and values.

use super::{Map, Str, Value};
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::ser::{self, Serialize};
use std::fmt;

/// The error of a value that does not fit the Rust type, or the reverse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromValueError(String);

impl fmt::Display for FromValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for FromValueError {}
impl de::Error for FromValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        FromValueError(message.to_string())
    }
}
impl ser::Error for FromValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        FromValueError(message.to_string())
    }
}

/// Reads a Rust value out of a [`Value`] without going through text.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, FromValueError> {
    T::deserialize(value)
}

impl<'de> IntoDeserializer<'de, FromValueError> for &'de Value {
    type Deserializer = &'de Value;
    fn into_deserializer(self) -> &'de Value {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Value {
    type Error = FromValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FromValueError> {
        match self {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Object(map) => visitor.visit_map(MapDeserializer::new(map.iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FromValueError> {
        match self {
            Value::Null => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FromValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FromValueError> {
        match self {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Object(map) => visitor.visit_enum(de::value::MapAccessDeserializer::new(
                MapDeserializer::new(map.iter()),
            )),
            other => Err(de::Error::custom(format_args!(
                "expected a string or an object, found {}",
                other.type_name()
            ))),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Writes a Rust value as a [`Value`] without going through text.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, FromValueError> {
    value.serialize(Writer)
}

struct Writer;

struct Items(Vec<Value>);

struct Members {
    members: Vec<(Str, Value)>,
    key: Option<Str>,
    /// The name of the enum variant that wraps the members, if any.
    variant: Option<&'static str>,
}

struct VariantItems(&'static str, Vec<Value>);

fn wrap(variant: &'static str, value: Value) -> Value {
    Value::Object(Map::from_unsorted(vec![(Str::const_new(variant), value)]))
}

macro_rules! integers {
    ($($name:ident: $type:ty),*) => {$(
        fn $name(self, value: $type) -> Result<Value, FromValueError> {
            Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
        }
    )*};
}

impl ser::Serializer for Writer {
    type Ok = Value;
    type Error = FromValueError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = VariantItems;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    integers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
              serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);

    fn serialize_bool(self, value: bool) -> Result<Value, FromValueError> {
        Ok(Value::Bool(value))
    }
    fn serialize_f32(self, value: f32) -> Result<Value, FromValueError> {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<Value, FromValueError> {
        if value.is_finite() {
            Ok(Value::Float(value))
        } else {
            Err(ser::Error::custom("JSON has no number for NaN or infinity"))
        }
    }
    fn serialize_char(self, value: char) -> Result<Value, FromValueError> {
        Ok(Value::string(value.encode_utf8(&mut [0; 4])))
    }
    fn serialize_str(self, text: &str) -> Result<Value, FromValueError> {
        Ok(Value::string(text))
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, FromValueError> {
        Ok(bytes.iter().map(|byte| i64::from(*byte)).collect())
    }
    fn serialize_none(self) -> Result<Value, FromValueError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, FromValueError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, FromValueError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, FromValueError> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Value, FromValueError> {
        Ok(Value::string(variant))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Value, FromValueError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, FromValueError> {
        Ok(wrap(variant, value.serialize(self)?))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Items, FromValueError> {
        Ok(Items(Vec::with_capacity(len.unwrap_or(0))))
    }
    fn serialize_tuple(self, len: usize) -> Result<Items, FromValueError> {
        Ok(Items(Vec::with_capacity(len)))
    }
    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        len: usize,
    ) -> Result<Items, FromValueError> {
        Ok(Items(Vec::with_capacity(len)))
    }
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<VariantItems, FromValueError> {
        Ok(VariantItems(variant, Vec::with_capacity(len)))
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Members, FromValueError> {
        Ok(Members {
            members: Vec::with_capacity(len.unwrap_or(0)),
            key: None,
            variant: None,
        })
    }
    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Members, FromValueError> {
        self.serialize_map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Members, FromValueError> {
        Ok(Members {
            members: Vec::with_capacity(len),
            key: None,
            variant: Some(variant),
        })
    }
}

impl ser::SerializeSeq for Items {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_element<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), FromValueError> {
        self.0.push(value.serialize(Writer)?);
        Ok(())
    }
    fn end(self) -> Result<Value, FromValueError> {
        Ok(Value::Array(self.0))
    }
}
impl ser::SerializeTuple for Items {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_element<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), FromValueError> {
        ser::SerializeSeq::serialize_element(self, value)
    }
    fn end(self) -> Result<Value, FromValueError> {
        ser::SerializeSeq::end(self)
    }
}
impl ser::SerializeTupleStruct for Items {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), FromValueError> {
        ser::SerializeSeq::serialize_element(self, value)
    }
    fn end(self) -> Result<Value, FromValueError> {
        ser::SerializeSeq::end(self)
    }
}
impl ser::SerializeTupleVariant for VariantItems {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), FromValueError> {
        self.1.push(value.serialize(Writer)?);
        Ok(())
    }
    fn end(self) -> Result<Value, FromValueError> {
        Ok(wrap(self.0, Value::Array(self.1)))
    }
}

impl Members {
    fn finish(self) -> Value {
        let value = Value::Object(Map::from_unsorted(self.members));
        match self.variant {
            Some(variant) => wrap(variant, value),
            None => value,
        }
    }
}
impl ser::SerializeMap for Members {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), FromValueError> {
        self.key = Some(match key.serialize(Writer)? {
            Value::String(text) => text,
            Value::Int(number) => Str::new(itoa::Buffer::new().format(number)),
            Value::Bool(flag) => Str::new(if flag { "true" } else { "false" }),
            _ => return Err(ser::Error::custom("the keys of a JSON object are strings")),
        });
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), FromValueError> {
        let key = self
            .key
            .take()
            .ok_or_else(|| <FromValueError as ser::Error>::custom("a value came before its key"))?;
        self.members.push((key, value.serialize(Writer)?));
        Ok(())
    }
    fn end(self) -> Result<Value, FromValueError> {
        Ok(self.finish())
    }
}
impl ser::SerializeStruct for Members {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), FromValueError> {
        self.members
            .push((Str::const_new(key), value.serialize(Writer)?));
        Ok(())
    }
    fn end(self) -> Result<Value, FromValueError> {
        Ok(self.finish())
    }
}
impl ser::SerializeStructVariant for Members {
    type Ok = Value;
    type Error = FromValueError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), FromValueError> {
        ser::SerializeStruct::serialize_field(self, key, value)
    }
    fn end(self) -> Result<Value, FromValueError> {
        Ok(self.finish())
    }
}
