//! Decodes messages into values.

use super::budget::{ALLOCATION, Budget, weight};
use super::envelope::{text, wrong_wire};
use super::raw::{Reader, Wire};
use super::{ProtoError, decode_envelope};
use crate::json;
use bareboat_api::facts::{Cardinality, Field, Message, MessageRef, SchemaUnion, Type};
use bareboat_api::time::{Timestamp, print_duration};
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{Map, Str, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Decodes an envelope and the object inside; `find` returns the message of an apiVersion and kind.
pub fn decode_object(
    body: &[u8],
    find: impl FnOnce(&str, &str) -> Option<MessageRef>,
) -> Result<Value, ProtoError> {
    let envelope = decode_envelope(body)?;
    let (api_version, kind) = (envelope.api_version, envelope.kind);
    if !envelope.content_encoding.is_empty() {
        return Err(ProtoError::new("the content encoding is not supported"));
    }
    if envelope.content_type == "application/json" {
        let parsed = json::parse(envelope.raw);
        return parsed
            .map(|parsed| parsed.value)
            .map_err(|error| ProtoError::new(error.to_string()));
    }
    let message = find(api_version, kind).ok_or_else(|| {
        ProtoError::new(format!(
            "no kind {kind:?} is registered for version {api_version:?}"
        ))
    })?;
    let mut object = decode_message(message.get(), envelope.raw)?;
    let map = object.make_object();
    map.insert("apiVersion", Value::string(api_version));
    map.insert("kind", Value::string(kind));
    Ok(object)
}

/// Decodes a message without an envelope.
pub fn decode_message(message: &Message, bytes: &[u8]) -> Result<Value, ProtoError> {
    let mut decoder = Decoder(Budget::of(bytes.len()));
    decoder.message(message, bytes, 0).map(Value::Object)
}

/// Decodes a message and counts the memory of the result.
struct Decoder(Budget);

/// The content of a field so far.
enum Slot {
    Empty,
    One(Value),
    List(Vec<Value>),
    Map(Vec<(Str, Value)>),
}

impl Decoder {
    /// Invariant: all recursion passes through here, and `depth` counts the open collections of the
    /// value, so neither the stack nor the value gets deeper than `MAX_DEPTH`.
    fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Map, ProtoError> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        let mut slots: Vec<Slot> = Vec::new();
        slots.resize_with(message.fields.len(), || Slot::Empty);
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let (number, wire) = reader.tag()?;
            let known = message
                .fields
                .iter()
                .position(|field| field.number == number);
            match known {
                Some(index) => {
                    let field = &message.fields[index];
                    self.field(field, wire, &mut reader, &mut slots[index], depth)
                        .map_err(|error| {
                            if field.json.is_empty() {
                                error
                            } else {
                                error.inside(&field.json)
                            }
                        })?;
                }
                None => reader.skip(wire)?,
            }
        }
        self.members(message, slots)
    }

    fn field(
        &mut self,
        field: &Field,
        wire: Wire,
        reader: &mut Reader<'_>,
        slot: &mut Slot,
        depth: usize,
    ) -> Result<(), ProtoError> {
        match field.cardinality {
            Cardinality::One => *slot = Slot::One(self.value(field.ty, wire, reader, depth)?),
            Cardinality::List => {
                if !matches!(slot, Slot::List(_)) {
                    *slot = Slot::List(Vec::new());
                }
                let Slot::List(items) = slot else {
                    return Ok(());
                };
                let varints = matches!(field.ty, Type::Bool | Type::Int32 | Type::Int64);
                if varints && wire == Wire::Bytes {
                    let mut packed = Reader::new(reader.bytes()?);
                    while !packed.is_empty() {
                        items.push(self.value(field.ty, Wire::Varint, &mut packed, depth + 1)?);
                    }
                } else {
                    items.push(self.value(field.ty, wire, reader, depth + 1)?);
                }
            }
            Cardinality::Map => {
                if !matches!(slot, Slot::Map(_)) {
                    *slot = Slot::Map(Vec::new());
                }
                let Slot::Map(entries) = slot else {
                    return Ok(());
                };
                // Twice the size, because a growing vector has up to that much capacity.
                self.0.spend(2 * size_of::<(Str, Value)>())?;
                entries.push(self.entry(field, payload(wire, reader)?, depth + 1)?);
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        field: &Field,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(Str, Value), ProtoError> {
        let mut key = Str::default();
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.tag()? {
                (1, wire) => key = self.text(payload(wire, &mut reader)?)?,
                (2, wire) => value = Some(self.value(field.ty, wire, &mut reader, depth)?),
                (_, wire) => reader.skip(wire)?,
            }
        }
        match value {
            Some(value) => Ok((key, value)),
            None => Ok((key, self.zero(field.ty)?)),
        }
    }

    fn value(
        &mut self,
        ty: Type,
        wire: Wire,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Value, ProtoError> {
        self.0.spend(2 * size_of::<Value>())?;
        match (ty, wire) {
            (Type::Bool, Wire::Varint) => Ok(Value::Bool(reader.varint()? != 0)),
            // Like Go, an int32 keeps the low half of the number.
            (Type::Int32, Wire::Varint) => Ok(Value::Int(i64::from(reader.varint()? as i32))),
            (Type::Int64, Wire::Varint) => Ok(Value::Int(reader.varint()? as i64)),
            (Type::Double, Wire::Fixed64) => {
                let float = f64::from_bits(reader.fixed64()?);
                if !float.is_finite() {
                    return Err(ProtoError::new("JSON has no such number"));
                }
                Ok(Value::Float(float))
            }
            (_, Wire::Bytes) => self.delimited(ty, reader.bytes()?, depth),
            (_, wire) => Err(ProtoError::new(format!("unexpected wire type {wire:?}"))),
        }
    }

    fn delimited(&mut self, ty: Type, bytes: &[u8], depth: usize) -> Result<Value, ProtoError> {
        match ty {
            Type::Bool | Type::Int32 | Type::Int64 | Type::Double => {
                Err(ProtoError::new("unexpected wire type Bytes"))
            }
            Type::String => self.text(bytes).map(Value::String),
            Type::Bytes => {
                self.0.spend(2 * bytes.len())?;
                Ok(Value::from(BASE64.encode(bytes)))
            }
            Type::Time | Type::MicroTime => time(ty, bytes),
            Type::Duration => {
                let [nanos] = numbers(bytes, [1])?;
                Ok(Value::from(print_duration(nanos.unwrap_or(0) as i64)))
            }
            Type::Quantity => {
                let text = text(bytes_under(bytes, 1)?)?;
                Ok(Value::string(if text.is_empty() { "0" } else { text }))
            }
            Type::IntOrString => int_or_string(bytes),
            Type::RawExtension | Type::Json | Type::FieldsV1 => self.embedded(bytes, depth),
            Type::Strings => self.strings(bytes),
            Type::SchemaUnion(union, schema) => self.union(union, schema.get(), bytes, depth),
            Type::Message(message) => self
                .message(message.get(), bytes, depth + 1)
                .map(Value::Object),
        }
    }

    /// Parses JSON inside a message.
    fn embedded(&mut self, bytes: &[u8], depth: usize) -> Result<Value, ProtoError> {
        let raw = bytes_under(bytes, 1)?;
        if raw.is_empty() {
            return Ok(Value::Null);
        }
        let parsed = json::parse(raw)
            .map_err(|error| ProtoError::new(format!("the embedded JSON is invalid: {error}")))?;
        if depth + 1 + nesting(&parsed.value) > MAX_DEPTH {
            return Err(too_deep());
        }
        // The JSON parser has limits in proportion to its text.
        self.0.spend(weight(&parsed.value))?;
        Ok(parsed.value)
    }

    fn strings(&mut self, bytes: &[u8]) -> Result<Value, ProtoError> {
        let mut items = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.tag()? {
                (1, wire) => {
                    self.0.spend(2 * size_of::<Value>())?;
                    items.push(Value::String(self.text(payload(wire, &mut reader)?)?));
                }
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(Value::Array(items))
    }

    fn union(
        &mut self,
        union: SchemaUnion,
        schema: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtoError> {
        let mut allows = false;
        let mut alone = None;
        let mut list = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            self.0.spend(2 * size_of::<Value>())?;
            let (number, wire) = reader.tag()?;
            match (union, number) {
                (SchemaUnion::OrBool, 1) if wire == Wire::Varint => {
                    allows = reader.varint()? != 0;
                }
                (SchemaUnion::OrBool, 2)
                | (SchemaUnion::OrArray | SchemaUnion::OrStringArray, 1) => {
                    let bytes = payload(wire, &mut reader)?;
                    alone = Some(self.message(schema, bytes, depth + 1)?);
                }
                (SchemaUnion::OrArray, 2) => {
                    let bytes = payload(wire, &mut reader)?;
                    list.push(Value::Object(self.message(schema, bytes, depth + 2)?));
                }
                (SchemaUnion::OrStringArray, 2) => {
                    list.push(Value::String(self.text(payload(wire, &mut reader)?)?));
                }
                (_, number @ 1..=2) => return Err(wrong_wire(number, wire)),
                (_, _) => reader.skip(wire)?,
            }
        }
        Ok(match (alone, union) {
            (Some(schema), _) => Value::Object(schema),
            (None, SchemaUnion::OrBool) => Value::Bool(allows),
            (None, _) if list.is_empty() => Value::Null,
            (None, _) => Value::Array(list),
        })
    }

    /// Returns the members in their JSON form: zero values appear where Go prints them.
    fn members(&mut self, message: &Message, slots: Vec<Slot>) -> Result<Map, ProtoError> {
        let shown =
            (message.fields.iter().zip(&slots)).filter(|(field, slot)| is_shown(field, slot));
        let shown = shown.count();
        self.0
            .spend(ALLOCATION + shown * size_of::<(Str, Value)>())?;
        let mut members: Vec<(Str, Value)> = Vec::with_capacity(shown);
        for (field, slot) in message.fields.iter().zip(slots) {
            if !is_shown(field, &slot) {
                continue;
            }
            let value = match slot {
                Slot::Empty if field.cardinality != Cardinality::One => Value::Null,
                Slot::Empty => self.zero(field.ty)?,
                Slot::One(value) => value,
                Slot::List(mut items) => {
                    items.shrink_to_fit();
                    Value::Array(items)
                }
                Slot::Map(mut entries) => {
                    entries.shrink_to_fit();
                    Value::Object(Map::from_unsorted(entries))
                }
            };
            match value {
                Value::Object(inline) if field.json.is_empty() => members.extend(inline),
                value => members.push((field.json.clone(), value)),
            }
        }
        Ok(Map::from_unsorted(members))
    }

    /// Returns the value that Go prints for a field that was never set.
    fn zero(&mut self, ty: Type) -> Result<Value, ProtoError> {
        Ok(match ty {
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::IntOrString => Value::Int(0),
            Type::Double => Value::Float(0.0),
            Type::String => Value::string(""),
            Type::Duration => Value::string("0s"),
            Type::Quantity => Value::string("0"),
            Type::Bytes
            | Type::Time
            | Type::MicroTime
            | Type::RawExtension
            | Type::Json
            | Type::FieldsV1
            | Type::Strings
            | Type::SchemaUnion(..) => Value::Null,
            // No Go struct contains itself by value, so this recursion ends.
            Type::Message(message) => {
                let slots = message.fields.iter().map(|_| Slot::Empty).collect();
                Value::Object(self.members(message.get(), slots)?)
            }
        })
    }

    fn text(&mut self, bytes: &[u8]) -> Result<Str, ProtoError> {
        let text = text(bytes)?;
        if text.len() > size_of::<Str>() {
            self.0.spend(ALLOCATION + text.len())?;
        }
        Ok(Str::new(text))
    }
}

/// Returns whether a field becomes a member: Go omits unset and empty fields that are `omitempty`.
fn is_shown(field: &Field, slot: &Slot) -> bool {
    match slot {
        _ if field.number == 0 => false,
        Slot::Empty => !(field.optional || field.omit_empty && !field.json.is_empty()),
        Slot::One(value) => !(field.omit_empty && !field.optional && is_empty(field.ty, value)),
        Slot::List(_) | Slot::Map(_) => true,
    }
}

/// Returns the nesting depth of a value.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

#[cold]
fn too_deep() -> ProtoError {
    ProtoError::new(format!("nested deeper than {MAX_DEPTH} levels"))
}

/// Returns whether Go omits the value of an `omitempty` field.
fn is_empty(ty: Type, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Float(value) => *value == 0.0,
        Value::String(text) if matches!(ty, Type::Duration) => text == "0s",
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn payload<'a>(wire: Wire, reader: &mut Reader<'a>) -> Result<&'a [u8], ProtoError> {
    if wire != Wire::Bytes {
        return Err(ProtoError::new(format!("unexpected wire type {wire:?}")));
    }
    reader.bytes()
}

fn time(ty: Type, bytes: &[u8]) -> Result<Value, ProtoError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let [seconds, nanos] = numbers(bytes, [1, 2])?;
    let time = Timestamp {
        seconds: seconds.unwrap_or(0) as i64,
        nanos: nanos.unwrap_or(0) as u32,
    };
    // Years 1 to 9999, the range of RFC 3339.
    let sayable = (Timestamp::ZERO.seconds..253_402_300_800).contains(&time.seconds);
    if !sayable || time.nanos >= 1_000_000_000 {
        return Err(ProtoError::new("the time is out of range"));
    }
    Ok(Value::from(match ty {
        Type::MicroTime => time.print_micros(),
        _ => time.print_seconds(),
    }))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ProtoError> {
    let [kind, integer] = numbers(bytes, [1, 2])?;
    let text = text(bytes_under(bytes, 3)?)?;
    Ok(match kind.unwrap_or(0) {
        1 => Value::string(text),
        _ => Value::Int(i64::from(integer.unwrap_or(0) as i32)),
    })
}

/// Returns the numbers found under some field numbers.
fn numbers<const N: usize>(bytes: &[u8], wanted: [u32; N]) -> Result<[Option<u64>; N], ProtoError> {
    let mut found = [None; N];
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let (number, wire) = reader.tag()?;
        match wanted.iter().position(|wanted| *wanted == number) {
            Some(index) if wire == Wire::Varint => found[index] = Some(reader.varint()?),
            Some(_) => return Err(wrong_wire(number, wire)),
            None => reader.skip(wire)?,
        }
    }
    Ok(found)
}

/// Returns the bytes found under a field number.
fn bytes_under(bytes: &[u8], wanted: u32) -> Result<&[u8], ProtoError> {
    let mut found: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            (number, wire) if number == wanted => found = payload(wire, &mut reader)?,
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(found)
}
