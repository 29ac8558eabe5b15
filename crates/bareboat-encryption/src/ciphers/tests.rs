//! Tests of the stored byte formats.

#![allow(clippy::unwrap_used)]
use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Checks the second case of AES-256-GCM in the vectors that came with the cipher's specification (McGrew and Viega,
/// case 16).
#[test]
fn gcm_decrypts_the_published_vector() {
    let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    let place = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let plain = hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    let stored = hex(concat!(
        "cafebabefacedbaddecaf888",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
        "76fc6ece0f4e1768cddf8853bb2d551b"
    ));
    assert_eq!(gcm_open(&key, &stored, &place), Ok(plain));
    assert_eq!(gcm_open(&key, &stored, b"elsewhere"), Err(Failed));
}

/// Checks case 3 of RFC 5869: SHA-256, no salt, empty info.
#[test]
fn keys_are_derived_as_the_published_vector_says() {
    let derived = derive(&[0x0b; 22], b"").unwrap();
    let expected = hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
    assert_eq!(derived.to_vec(), expected);
}

/// Checks NIST SP 800-38A, F.2.5 and F.2.1, followed by a block of padding.
#[test]
fn cbc_decrypts_the_published_vectors() {
    let iv = "000102030405060708090a0b0c0d0e0f";
    let plain = hex("6bc1bee22e409f96e93d7e117393172a");
    let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    let stored = hex(&format!(
        "{iv}f58c4c04d6e5f1ba779eabfb5f7bfbd6485a5c81519cf378fa36d42b8547edc0"
    ));
    assert_eq!(cbc_open(&key, &stored), Ok(plain));
    assert!(cbc_open(&key, &stored[..31]).is_err());
    assert!(cbc_open(&key, &stored[..16]).is_err());
}

/// Checks the example of NaCl's own tests for crypto_secretbox.
#[test]
fn secretbox_opens_the_published_vector() {
    let key = hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
    let stored = hex(concat!(
        "69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37",
        "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011",
        "ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de",
        "56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5"
    ));
    let plain = secretbox_open_bare(&key, &stored).unwrap();
    assert_eq!(plain[..8], hex("be075fc53c81f2d5"));
    assert_eq!(plain.len(), 131);
}

#[test]
fn what_is_sealed_opens_in_its_place_only() {
    let key = [7; 32];
    type Seal = fn(&[u8], &[u8], &[u8], &mut Vec<u8>) -> Result<(), Failed>;
    type Open = fn(&[u8], &[u8], &[u8]) -> Result<Vec<u8>, Failed>;
    let ways: [(Seal, Open); 2] = [
        (derived_seal, derived_open),
        (secretbox_seal, secretbox_open),
    ];
    for (seal, open) in ways {
        for plain in [&b""[..], b"x", &[9; 5000]] {
            let mut stored = Vec::new();
            seal(&key, plain, b"here", &mut stored).unwrap();
            assert_eq!(open(&key, &stored, b"here").unwrap(), plain);
            assert_eq!(open(&key, &stored, b"there"), Err(Failed));
            assert_eq!(open(&[8; 32], &stored, b"here"), Err(Failed));
            for at in [0, stored.len() / 2, stored.len() - 1] {
                let mut damaged = stored.clone();
                damaged[at] ^= 1;
                assert_eq!(open(&key, &damaged, b"here"), Err(Failed));
                assert_eq!(open(&key, &stored[..at], b"here"), Err(Failed));
            }
            let mut again = Vec::new();
            seal(&key, plain, b"here", &mut again).unwrap();
            assert_ne!(stored, again, "nonces are used once");
        }
    }
}
