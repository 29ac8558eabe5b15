//! Bodies that take much more memory than bytes once they are decoded.

use crate::converter::SilentConverter;
use crate::victim::Victim;
use std::time::Duration;

/// How much memory an attack may add, in MiB.
const ALLOWED: u64 = 256;

/// An object whose member `data` is a list of so many lists of one number, in JSON: 4 bytes each, and 64 in memory.
pub(crate) fn of_small_values(kind: &str, api_version: &str, count: usize) -> String {
    let many = "[0],".repeat(count);
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"generateName":"x-"}},"data":[{many}[0]]}}"#
    )
}

/// The same in YAML.
fn of_small_values_in_yaml(kind: &str, api_version: &str, count: usize) -> String {
    let many = "- [0]\n".repeat(count);
    format!(
        "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{generateName: x-}}\ndata:\n{many}"
    )
}

#[test]
fn decoded_bodies_that_wait_for_a_converter() {
    let victim = Victim::start(&[]);
    let converter = SilentConverter::define(&victim);
    let body = of_small_values("Slow", "hostile.example/v2", 300_000);
    victim.attack(1, |_| {
        // 252 to 290 MiB were seen: beside the bodies, the allocator keeps memory that each decoding thread freed.
        victim.grows_at_most(ALLOWED + 128, || {
            let waiting: Vec<_> = (0..40)
                .filter_map(|_| {
                    let mut connection = victim.admin.connect().ok()?;
                    let path = "/apis/hostile.example/v2/slows";
                    connection
                        .send("POST", path, "application/json", body.as_bytes())
                        .ok()?;
                    Some(connection)
                })
                .collect();
            let _call = converter.is_called();
            std::thread::sleep(Duration::from_secs(8));
            drop(waiting);
        });
    });
}

/// The memory for decoding is not held by requests that wait for another server.
#[test]
fn other_bodies_are_decoded_while_some_wait_for_a_converter() {
    let victim = Victim::start(&[]);
    let converter = SilentConverter::define(&victim);
    // Every comma counts as a value, so that these bodies need twice the memory for decoding.
    let body = serde_json::json!({
        "apiVersion": "hostile.example/v2", "kind": "Slow",
        "metadata": {"generateName": "x-"}, "data": ",".repeat(600_000),
    });
    let body = body.to_string();
    let mut waiting = Vec::new();
    for _ in 0..12 {
        let mut connection = victim.admin.connect().unwrap();
        let path = "/apis/hostile.example/v2/slows";
        connection
            .send("POST", path, "application/json", body.as_bytes())
            .unwrap();
        waiting.push(connection);
    }
    let _call = converter.is_called();
    let large = serde_json::json!({"metadata": {"generateName": "large-"}, "data": {"value": "x".repeat(500_000)}});
    for _ in 0..5 {
        victim
            .admin
            .post("/api/v1/namespaces/default/configmaps", &large)
            .accepted();
    }
    drop(waiting);
}

#[test]
fn bodies_of_many_small_values() {
    let victim = Victim::start(&[]);
    let path = "/api/v1/namespaces/default/configmaps";
    let json = of_small_values("ConfigMap", "v1", 700_000);
    let yaml = of_small_values_in_yaml("ConfigMap", "v1", 480_000);
    let bodies = [("application/json", json), ("application/yaml", yaml)];
    for (kind, body) in &bodies {
        victim.attack(1, |_| {
            victim.grows_at_most(ALLOWED, || {
                std::thread::scope(|scope| {
                    for _ in 0..8 {
                        scope.spawn(|| {
                            let answer = victim.admin.call("POST", path, kind, body.as_bytes());
                            assert!(answer.code >= 400, "{}", answer.code);
                        });
                    }
                });
            });
        });
    }
}

#[test]
fn protobuf_bodies_of_many_small_parts() {
    let victim = Victim::start(&[]);
    // An empty owner reference is two bytes on the wire: field 13 of metadata, length 0.
    let metadata: Vec<u8> = [0x6a, 0x00].repeat(1_200_000);
    let object = field(1, &metadata);
    let mut body = b"k8s\0".to_vec();
    body.extend(field(
        1,
        &[field(1, b"v1"), field(2, b"ConfigMap")].concat(),
    ));
    body.extend(field(2, &object));
    let path = "/api/v1/namespaces/default/configmaps";
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        let kind = "application/vnd.kubernetes.protobuf";
                        let answer = victim.admin.call("POST", path, kind, &body);
                        assert!(answer.code >= 400, "{}", answer.code);
                    });
                }
            });
        });
    });
}

/// A protobuf field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}
