//! Any bytes as an object in protobuf: what is accepted can be written as protobuf, and reads the same again.

use bareboat_api::facts::MessageRef;
use bareboat_builtin::facts;
use bareboat_wire::proto;

/// The first byte chooses the message of the rest, unless the input is an envelope.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("", "v1", "Pod"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Service"),
    ("apps", "v1", "Deployment"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("meta.k8s.io", "v1", "Status"),
    ("meta.k8s.io", "v1", "DeleteOptions"),
];

pub(crate) fn run(input: &[u8]) -> bool {
    if input.starts_with(proto::MAGIC) {
        return proto::decode_object(input, message_of).is_ok();
    }
    let Some((first, bytes)) = input.split_first() else {
        return false;
    };
    let (group, version, kind) = MESSAGES[usize::from(*first) % MESSAGES.len()];
    let Some(message) = facts::kind(group, version, kind) else {
        return false;
    };
    let Ok(object) = proto::decode_message(message.get(), bytes) else {
        return false;
    };
    super::text::same_again(&object);
    // Some values have no form in protobuf, such as the text of a quantity that is none.
    let mut written = Vec::new();
    if proto::encode_message(message.get(), &object, &mut written).is_ok() {
        let again =
            proto::decode_message(message.get(), &written).map_err(|error| error.to_string());
        let again = again.expect("what was written can be read");
        assert_eq!(again.to_json(), object.to_json());
    }
    true
}

fn message_of(api_version: &str, kind: &str) -> Option<MessageRef> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    facts::kind(group, version, kind)
}
