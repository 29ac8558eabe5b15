//! The few DER structures that keys need.

/// `SEQUENCE { ecPublicKey, P-256 }`.
const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// `SEQUENCE { ecPublicKey, P-384 }`.
const P384: &[u8] = &[
    0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04,
    0x00, 0x22,
];
/// `SEQUENCE { rsaEncryption, NULL }`.
const RSA: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// The algorithm of a key in DER.
#[derive(Clone, Copy)]
pub(crate) enum KeyType {
    P256,
    P384,
    Rsa,
}

impl KeyType {
    fn identifier(self) -> &'static [u8] {
        match self {
            KeyType::P256 => P256,
            KeyType::P384 => P384,
            KeyType::Rsa => RSA,
        }
    }
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..=0x7f => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let bytes: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | bytes.len() as u8);
            out.extend(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A SubjectPublicKeyInfo around the bits of a key.
pub(crate) fn public_key_info(kind: KeyType, key: &[u8]) -> Vec<u8> {
    let bits = [&[0u8], key].concat();
    let content = [kind.identifier(), &element(0x03, &bits)].concat();
    element(0x30, &content)
}

/// A PKCS#8 document around a key in the older form of its algorithm.
pub(crate) fn pkcs8(kind: KeyType, key: &[u8]) -> Vec<u8> {
    let content = [
        &element(0x02, &[0])[..],
        kind.identifier(),
        &element(0x04, key),
    ]
    .concat();
    element(0x30, &content)
}
