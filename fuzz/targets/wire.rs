//! Any bytes as a body: JSON, YAML and protobuf are read, and what was read can be written and read again.

#![no_main]

use bareboat_api::Value;
use bareboat_builtin::facts;
use bareboat_wire::{json, proto, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = json::parse(bytes) {
        let again = json::parse(&parsed.value.to_json()).expect("what was written can be read");
        assert_eq!(again.value, parsed.value);
    }
    if let Ok(parsed) = yaml::parse(bytes) {
        let again = yaml::parse(yaml::print(&parsed.value).as_bytes());
        assert_eq!(again.expect("what was printed can be read").value, parsed.value);
    }
    let find = |api_version: &str, kind: &str| {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        facts::kind(group, version, kind)
    };
    if let Ok(object) = proto::decode_object(bytes, find) {
        let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("");
        let Some(message) = find(text("apiVersion"), text("kind")) else {
            return;
        };
        if let Ok(encoded) = proto::encode_object(message.get(), &object) {
            let once = proto::decode_object(&encoded, find).expect("what was written can be read");
            let twice = proto::encode_object(message.get(), &once).expect("as it was written before");
            assert_eq!(encoded, twice, "writing settles at once");
        }
    }
});
