//! Protobuf messages to values and back.

#![allow(clippy::unwrap_used)]

use super::raw::{Wire, write_bytes, write_nested, write_number, write_tag, write_varint};
use super::*;
use crate::encode::ListMeta;
use crate::json;
use bareboat_api::facts::{
    Cardinality, Element, Field, LazyMessage, Message, MessageRef, SchemaUnion, Type,
};
use bareboat_api::typing::ListType;
use bareboat_api::{Str, Value, value};
use proptest::prelude::*;
use std::convert::Infallible;

/// Builds a message from lines `json number type`; `?` marks pointers, `+` members that are always
/// printed, `[]` lists, `{}` maps, and `~` an inline member.
fn table(source: &'static str) -> Message {
    let mut lines = source.lines();
    let name = lines.next().unwrap().trim();
    let mut fields: Vec<Field> = lines
        .filter(|line| !line.trim().is_empty())
        .map(field)
        .collect();
    fields.sort_by(|a, b| a.json.cmp(&b.json));
    Message {
        by_number: Default::default(),
        name: Str::new(name),
        fields,
        atomic: false,
    }
}

fn field(line: &str) -> Field {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ty = words[2].trim_end_matches(['?', '+']);
    let (ty, cardinality) = match (ty.strip_prefix("[]"), ty.strip_prefix("{}")) {
        (Some(ty), _) => (ty, Cardinality::List),
        (_, Some(ty)) => (ty, Cardinality::Map),
        _ => (ty, Cardinality::One),
    };
    let ty = match ty {
        "bool" => Type::Bool,
        "int" => Type::Int32,
        "long" => Type::Int64,
        "double" => Type::Double,
        "str" => Type::String,
        "strs" => Type::Strings,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "duration" => Type::Duration,
        "quantity" => Type::Quantity,
        "intstr" => Type::IntOrString,
        "raw" => Type::RawExtension,
        "fields" => Type::FieldsV1,
        "schemaOrArray" => Type::SchemaUnion(SchemaUnion::OrArray, MessageRef::new(&SCHEMA)),
        "schemaOrBool" => Type::SchemaUnion(SchemaUnion::OrBool, MessageRef::new(&SCHEMA)),
        "schemaOrStrings" => {
            Type::SchemaUnion(SchemaUnion::OrStringArray, MessageRef::new(&SCHEMA))
        }
        "ObjectMeta" => Type::Message(MessageRef::new(&OBJECT_META)),
        "OwnerReference" => Type::Message(MessageRef::new(&OWNER)),
        "ManagedFieldsEntry" => Type::Message(MessageRef::new(&MANAGED)),
        "LeaseSpec" => Type::Message(MessageRef::new(&LEASE_SPEC)),
        "ObjectReference" => Type::Message(MessageRef::new(&REFERENCE)),
        "EventSource" => Type::Message(MessageRef::new(&SOURCE)),
        "EventSeries" => Type::Message(MessageRef::new(&SERIES)),
        "Schema" => Type::Message(MessageRef::new(&SCHEMA)),
        other => panic!("no type {other}"),
    };
    Field {
        json: Str::new(if words[0] == "~" { "" } else { words[0] }),
        number: words[1].parse().unwrap(),
        ty,
        cardinality,
        omit_empty: !words[2].ends_with('+'),
        optional: words[2].contains('?'),
        list: ListType::Atomic,
        keys: Vec::new(),
        atomic: false,
        granular: false,
        patch_merge: false,
        retain_keys: false,
        patch_replaces: false,
        merge_key: None,
        default: None,
        values: Vec::new(),
        element: Element(ty),
    }
}

static OBJECT_META: LazyMessage = LazyMessage::new(
    "ObjectMeta
    name 1 str
    generateName 2 str
    namespace 3 str
    selfLink 4 str
    uid 5 str
    resourceVersion 6 str
    generation 7 long
    creationTimestamp 8 time
    deletionTimestamp 9 time?
    deletionGracePeriodSeconds 10 long?
    labels 11 {}str
    annotations 12 {}str
    ownerReferences 13 []OwnerReference
    finalizers 14 []str
    managedFields 17 []ManagedFieldsEntry",
    table,
);
static OWNER: LazyMessage = LazyMessage::new(
    "OwnerReference
    kind 1 str+
    name 3 str+
    uid 4 str+
    apiVersion 5 str+
    controller 6 bool?
    blockOwnerDeletion 7 bool?",
    table,
);
static MANAGED: LazyMessage = LazyMessage::new(
    "ManagedFieldsEntry
    manager 1 str
    operation 2 str
    apiVersion 3 str
    time 4 time?
    fieldsType 6 str
    fieldsV1 7 fields?
    subresource 8 str",
    table,
);
static CONFIG_MAP: LazyMessage = LazyMessage::new(
    "ConfigMap
    metadata 1 ObjectMeta
    data 2 {}str
    binaryData 3 {}bytes
    immutable 4 bool?",
    table,
);
static LEASE: LazyMessage = LazyMessage::new(
    "Lease
    metadata 1 ObjectMeta
    spec 2 LeaseSpec",
    table,
);
static LEASE_SPEC: LazyMessage = LazyMessage::new(
    "LeaseSpec
    holderIdentity 1 str?
    leaseDurationSeconds 2 int?
    acquireTime 3 microtime?
    renewTime 4 microtime?
    leaseTransitions 5 int?
    strategy 6 str?
    preferredHolder 7 str?",
    table,
);
static EVENT: LazyMessage = LazyMessage::new(
    "Event
    metadata 1 ObjectMeta+
    involvedObject 2 ObjectReference+
    reason 3 str
    message 4 str
    source 5 EventSource
    firstTimestamp 6 time
    lastTimestamp 7 time
    count 8 int
    type 9 str
    eventTime 10 microtime+
    series 11 EventSeries?
    action 12 str
    related 13 ObjectReference?
    reportingComponent 14 str+
    reportingInstance 15 str+",
    table,
);
static REFERENCE: LazyMessage = LazyMessage::new(
    "ObjectReference
    kind 1 str
    namespace 2 str
    name 3 str
    uid 4 str
    apiVersion 5 str
    resourceVersion 6 str
    fieldPath 7 str",
    table,
);
static SOURCE: LazyMessage = LazyMessage::new(
    "EventSource
    component 1 str
    host 2 str",
    table,
);
static SERIES: LazyMessage = LazyMessage::new(
    "EventSeries
    count 1 int
    lastObservedTime 2 microtime",
    table,
);
/// A message with a field of every odd type.
static SCHEMA: LazyMessage = LazyMessage::new(
    "Schema
    items 1 schemaOrArray?
    extra 2 schemaOrBool?
    deps 3 {}schemaOrStrings
    ratio 4 double?
    numbers 5 []int
    port 6 intstr
    amount 7 quantity+
    wait 8 duration?
    any 9 raw
    verbs 10 strs
    ~ 11 EventSource
    flag 12 bool
    children 13 []Schema
    data 14 bytes",
    table,
);

fn schema(value: Value) -> Value {
    let mut out = Vec::new();
    let message = MessageRef::new(&SCHEMA);
    encode_message(&message, &value, &mut out).unwrap();
    decode_message(&message, &out).unwrap()
}

#[test]
fn golden_objects_are_decoded_and_encoded() {
    let Some(folder) = bareboat_vectors::folder("kinds") else {
        return;
    };
    for (name, message) in [
        ("core.v1.ConfigMap", &CONFIG_MAP),
        ("coordination.k8s.io.v1.Lease", &LEASE),
        ("core.v1.Event", &EVENT),
    ] {
        let message = MessageRef::new(message);
        let bytes = std::fs::read(folder.join(format!("{name}.pb"))).unwrap();
        let text = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
        let object = json::parse(&text).unwrap().value;
        assert_eq!(
            decode_object(&bytes, |_, _| Some(message)).unwrap(),
            object,
            "{name}"
        );
        assert_eq!(encode_object(&message, &object).unwrap(), bytes, "{name}");
    }
}

#[test]
fn plain_members_are_written_even_when_empty() {
    let mut out = Vec::new();
    encode_message(&MessageRef::new(&SERIES), &Value::object(), &mut out).unwrap();
    assert_eq!(out, [0x08, 0, 0x12, 0]);
    let mut out = Vec::new();
    encode_message(&MessageRef::new(&LEASE_SPEC), &Value::object(), &mut out).unwrap();
    assert_eq!(out, [0u8; 0]);
    // Members that were written empty do not come back where JSON omits them.
    let empty = decode_message(&MessageRef::new(&SERIES), &[0x08, 0, 0x12, 0]).unwrap();
    assert_eq!(empty, Value::object());
    let event = decode_message(&MessageRef::new(&EVENT), &[]).unwrap();
    let expected = value!({
        "metadata": {}, "involvedObject": {}, "eventTime": null,
        "reportingComponent": "", "reportingInstance": "",
    });
    assert_eq!(event, expected);
}

#[test]
fn every_type_survives_a_round_trip() {
    let object = value!({
        "items": {"amount": "1Gi", "port": 3},
        "extra": false,
        "deps": {"a": ["x", "y"], "b": {"amount": "1", "flag": true}},
        "ratio": 2.5,
        "numbers": [1, (-2), 3],
        "port": "http",
        "amount": "500m",
        "wait": "1m30s",
        "any": {"kind": "X", "list": [1, null]},
        "verbs": ["get", "list"],
        "component": "inline", "host": "h",
        "flag": true,
        "children": [{"amount": "2"}],
        "data": "AQI=",
    });
    assert_eq!(schema(object.clone()), object);
    let arrays = value!({"amount": "0", "items": [{"amount": "1"}, {"amount": "2"}], "extra": {"amount": "3"}});
    assert_eq!(schema(arrays.clone()), arrays);
    assert_eq!(schema(Value::object()), value!({"amount": "0"}));
    assert_eq!(schema(value!({"amount": 3})), value!({"amount": "3"}));
}

#[test]
fn packed_lists_of_other_encoders_are_read() {
    let mut out = Vec::new();
    let Ok(()) = write_nested(5, &mut out, |out| -> Result<(), Infallible> {
        [1, 200, u64::MAX]
            .into_iter()
            .for_each(|number| write_varint(number, out));
        Ok(())
    });
    let value = decode_message(&MessageRef::new(&SCHEMA), &out).unwrap();
    assert_eq!(value.get("numbers"), Some(&value!([1, 200, (-1)])));
}

#[test]
fn unknown_members_are_skipped() {
    let mut out = Vec::new();
    write_number(90, 5, &mut out);
    write_bytes(91, b"x", &mut out);
    write_tag(92, Wire::StartGroup, &mut out);
    write_number(1, 5, &mut out);
    write_tag(92, Wire::EndGroup, &mut out);
    write_tag(93, Wire::Fixed32, &mut out);
    out.extend_from_slice(&[0; 4]);
    write_number(1, 7, &mut out);
    let value = decode_message(&MessageRef::new(&SERIES), &out).unwrap();
    assert_eq!(value, value!({"count": 7}));
}

#[test]
fn values_of_the_wrong_type_are_refused_with_their_path() {
    let mut out = Vec::new();
    let object = value!({"metadata": {"labels": {"a": 1}}});
    let error = encode_message(&MessageRef::new(&LEASE), &object, &mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "metadata.labels: expected a string, found integer"
    );
    let error = decode_message(&MessageRef::new(&LEASE), &[0x0a, 0x02, 0x08, 0x01]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "metadata.name: unexpected wire type Varint"
    );
}

#[test]
fn hostile_bytes_are_refused() {
    let check = |bytes: &[u8]| assert!(decode_message(&MessageRef::new(&SCHEMA), bytes).is_err());
    check(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    check(&[
        0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
    ]);
    check(&[0x80; 20]);
    check(&[0x00]);
    check(&[0x07]);
    check(&[0x0c]);
    check(&[0xfb, 0x05]);
    let mut deep = Vec::new();
    for _ in 0..1000 {
        let mut outer = Vec::new();
        write_bytes(13, &deep, &mut outer);
        deep = outer;
    }
    check(&deep);
    // Two bytes encode one object each.
    check(&[0x6a, 0].repeat(2_000_000));
    assert!(decode_envelope(b"").is_err());
    assert!(decode_envelope(b"k8s\0\x0a\x05").is_err());
}

#[test]
fn decoded_values_are_no_deeper_than_parsed_ones() {
    // Every child is an object in a list: two levels of the value for one of the message.
    let nested = |levels: usize| {
        let mut bytes = Vec::new();
        for _ in 0..levels {
            let mut outer = Vec::new();
            write_bytes(13, &bytes, &mut outer);
            bytes = outer;
        }
        decode_message(&MessageRef::new(&SCHEMA), &bytes)
    };
    let deepest = nested(99).unwrap();
    assert!(json::parse(&deepest.to_json()).is_ok());
    assert!(nested(100).is_err());
    let raw = format!("{}{}", "[".repeat(199), "]".repeat(199));
    let any = |raw: &str| {
        let mut bytes = Vec::new();
        let Ok(()) = write_nested(9, &mut bytes, |out| -> Result<(), Infallible> {
            write_bytes(1, raw.as_bytes(), out);
            Ok(())
        });
        decode_message(&MessageRef::new(&SCHEMA), &bytes)
    };
    assert!(any(&raw).is_ok());
    assert!(any(&format!("[{raw}]")).is_err());
}

#[test]
fn the_memory_of_a_decoded_message_is_bounded_by_its_bytes() {
    let meta = MessageRef::new(&OBJECT_META);
    // Empty owners, labels, finalizers and managers: two or three bytes each.
    for piece in [&[0x6a, 0][..], &[0x5a, 0], &[0x72, 0], &[0x8a, 1, 0]] {
        let refused = decode_message(&meta, &piece.repeat(1_000_000)).unwrap_err();
        assert!(refused.is_too_large(), "{piece:?}: {refused}");
        assert!(
            decode_message(&meta, &piece.repeat(5_000)).is_ok(),
            "{piece:?}"
        );
    }
    let mut body = Vec::new();
    for n in 0..100_000 {
        write_bytes(14, format!("example.com/{n}").as_bytes(), &mut body);
    }
    let value = decode_message(&meta, &body).unwrap();
    assert!(budget::weight(&value) <= 16 * body.len());
}

#[test]
fn envelopes_survive_a_round_trip() {
    let mut out = Vec::new();
    encode_envelope("v1", "Foo", &mut out, |out| {
        out.extend_from_slice(&[7; 300]);
        Ok(())
    })
    .unwrap();
    let envelope = decode_envelope(&out).unwrap();
    assert_eq!((envelope.api_version, envelope.kind), ("v1", "Foo"));
    assert_eq!(envelope.raw, [7; 300]);
    assert!(out.ends_with(&[7, 0x1a, 0, 0x22, 0]));
}

#[test]
fn a_list_joined_from_items_equals_the_list_encoded_whole() {
    let items: Vec<Vec<u8>> = ["a", "b"]
        .iter()
        .map(|name| {
            let mut out = Vec::new();
            let object = value!({"metadata": {"name": (*name)}, "data": {"k": ("v".repeat(200))}});
            encode_message(&MessageRef::new(&CONFIG_MAP), &object, &mut out).unwrap();
            out
        })
        .collect();
    let meta = ListMeta {
        resource_version: "12",
        continue_token: "",
        remaining_item_count: Some(3),
    };
    let mut out = Vec::new();
    let length = items.iter().map(|item| list_item_len(item.len())).sum();
    write_list_head("v1", "ConfigMapList", &meta, length, &mut out);
    items
        .iter()
        .for_each(|item| write_list_item(item, &mut out));
    out.extend_from_slice(LIST_TAIL);
    let envelope = decode_envelope(&out).unwrap();
    assert_eq!(envelope.kind, "ConfigMapList");
    let mut expected = Vec::new();
    write_bytes(1, b"\x0a\x00\x12\x0212\x1a\x00\x20\x03", &mut expected);
    items
        .iter()
        .for_each(|item| write_bytes(2, item, &mut expected));
    assert_eq!(envelope.raw, expected);
}

#[test]
fn watch_frames_carry_their_length() {
    let mut out = Vec::new();
    write_watch_frame("ADDED", &[9; 200], &mut out);
    let (length, frame) = out.split_at(4);
    assert_eq!(
        u32::from_be_bytes(length.try_into().unwrap()) as usize,
        frame.len()
    );
    let mut expected = b"\x0a\x05ADDED\x12\xcb\x01\x0a\xc8\x01".to_vec();
    expected.extend_from_slice(&[9; 200]);
    assert_eq!(frame, expected);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_message(&MessageRef::new(&SCHEMA), &bytes);
        let _ = decode_message(&MessageRef::new(&EVENT), &bytes);
        let _ = decode_envelope(&[b"k8s\0", bytes.as_slice()].concat());
    }

    #[test]
    fn varint_len_returns_the_encoded_length(value: u64) {
        let mut out = Vec::new();
        write_varint(value, &mut out);
        prop_assert_eq!(out.len(), raw::varint_len(value));
        prop_assert_eq!(raw::Reader::new(&out).varint(), Ok(value));
    }
}
