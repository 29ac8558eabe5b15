//! Tests of the messages of KMS v2: they have the bytes of protobuf, and malformed messages are refused.

use super::*;

#[test]
fn objects_have_the_bytes_of_protobuf() {
    let object = EncryptedObject {
        data: b"d".to_vec(),
        key_id: "k".to_owned(),
        source: b"s".to_vec(),
        annotations: vec![("a".to_owned(), b"v".to_vec())],
        source_type: 1,
    };
    let mut bytes = Vec::new();
    object.write(&mut bytes);
    assert_eq!(
        bytes,
        b"\x0a\x01d\x12\x01k\x1a\x01s\x22\x06\x0a\x01a\x12\x01v\x28\x01"
    );
    assert_eq!(EncryptedObject::read(&bytes), Some(object));
}

#[test]
fn malformed_messages_are_refused() {
    for bytes in [
        &b"\x0a"[..],
        b"\x0a\x05x",
        b"\x0b",
        &[0xff; 20],
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ] {
        assert!(EncryptedObject::read(bytes).is_none(), "{bytes:?}");
    }
}
