//! The ciphers and their byte formats. Keys and nonces are bytes here; `rules` handles the names of keys.
//!
//! AES-GCM with random nonces is safe for 2^32 values under one key. Each value is therefore encrypted with its own
//! key, which is derived from the configured key with 32 random bytes, as in KMS v2. Values in the older format can be
//! decrypted.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockDecryptMut as _, KeyIvInit as _};
use crypto_secretbox::XSalsa20Poly1305;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The number of random bytes from which a key is derived.
pub(crate) const INFO: usize = 32;
const SECRETBOX_NONCE: usize = 24;
const CBC_BLOCK: usize = 16;

/// The error for a value that does not decrypt, or a random source that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed;

/// Returns `N` random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failed> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Failed)?;
    Ok(bytes)
}

fn gcm(key: &[u8]) -> Result<LessSafeKey, Failed> {
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        32 => &AES_256_GCM,
        _ => return Err(Failed),
    };
    let key = UnboundKey::new(algorithm, key).map_err(|_| Failed)?;
    Ok(LessSafeKey::new(key))
}

/// Decrypts nonce (12 bytes) and ciphertext with `key`.
pub(crate) fn gcm_open(key: &[u8], stored: &[u8], place: &[u8]) -> Result<Vec<u8>, Failed> {
    let (nonce, sealed) = stored.split_at_checked(NONCE_LEN).ok_or(Failed)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Failed)?;
    let mut buffer = sealed.to_vec();
    let plain = gcm(key)?
        .open_in_place(nonce, Aad::from(place), &mut buffer)
        .map_err(|_| Failed)?
        .len();
    buffer.truncate(plain);
    Ok(buffer)
}

fn gcm_seal(key: &[u8], plain: &[u8], place: &[u8], out: &mut Vec<u8>) -> Result<(), Failed> {
    let nonce: [u8; NONCE_LEN] = random()?;
    let mut buffer = plain.to_vec();
    gcm(key)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(place),
            &mut buffer,
        )
        .map_err(|_| Failed)?;
    out.extend_from_slice(&nonce);
    out.extend_from_slice(&buffer);
    Ok(())
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives the key of one value: HKDF-SHA256 without salt.
fn derive(seed: &[u8], info: &[u8]) -> Result<[u8; 32], Failed> {
    let mut key = [0; 32];
    Salt::new(HKDF_SHA256, &[])
        .extract(seed)
        .expand(&[info], Length(key.len()))
        .and_then(|derived| derived.fill(&mut key))
        .map_err(|_| Failed)?;
    Ok(key)
}

/// Appends the random bytes of the derived key (32), the nonce (12 bytes) and the ciphertext.
pub(crate) fn derived_seal(
    seed: &[u8],
    plain: &[u8],
    place: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Failed> {
    let info: [u8; INFO] = random()?;
    let key = derive(seed, &info)?;
    out.extend_from_slice(&info);
    gcm_seal(&key, plain, place, out)
}

/// Decrypts what [`derived_seal`] appended.
pub(crate) fn derived_open(seed: &[u8], stored: &[u8], place: &[u8]) -> Result<Vec<u8>, Failed> {
    let (info, rest) = stored.split_at_checked(INFO).ok_or(Failed)?;
    gcm_open(&derive(seed, info)?, rest, place)
}

/// Decrypts an initialization vector (16 bytes) and ciphertext in cipher block chaining with PKCS#7 padding. Such a
/// value is not authenticated, so this format is only decrypted.
pub(crate) fn cbc_open(key: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failed> {
    let (iv, sealed) = stored.split_at_checked(CBC_BLOCK).ok_or(Failed)?;
    if sealed.is_empty() || sealed.len() % CBC_BLOCK != 0 {
        return Err(Failed);
    }
    macro_rules! open {
        ($cipher:ty) => {
            cbc::Decryptor::<$cipher>::new_from_slices(key, iv)
                .map_err(|_| Failed)?
                .decrypt_padded_vec_mut::<Pkcs7>(sealed)
                .map_err(|_| Failed)
        };
    }
    match key.len() {
        16 => open!(aes::Aes128),
        24 => open!(aes::Aes192),
        32 => open!(aes::Aes256),
        _ => Err(Failed),
    }
}

/// Appends nonce (24 bytes) and a box that contains the place (after its length in 4 bytes) and the value. Secretbox
/// has no associated data, so the place is inside the box.
pub(crate) fn secretbox_seal(
    key: &[u8],
    plain: &[u8],
    place: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Failed> {
    let cipher = XSalsa20Poly1305::new_from_slice(key).map_err(|_| Failed)?;
    let nonce: [u8; SECRETBOX_NONCE] = random()?;
    let length = u32::try_from(place.len()).map_err(|_| Failed)?;
    let inside = [&length.to_be_bytes(), place, plain].concat();
    let sealed = cipher.encrypt((&nonce).into(), inside.as_slice());
    out.extend_from_slice(&nonce);
    out.extend_from_slice(&sealed.map_err(|_| Failed)?);
    Ok(())
}

/// Opens a box as kube-apiserver writes it, which contains only the value.
pub(crate) fn secretbox_open_bare(key: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failed> {
    let cipher = XSalsa20Poly1305::new_from_slice(key).map_err(|_| Failed)?;
    let (nonce, sealed) = stored.split_at_checked(SECRETBOX_NONCE).ok_or(Failed)?;
    let nonce: [u8; SECRETBOX_NONCE] = nonce.try_into().map_err(|_| Failed)?;
    cipher.decrypt((&nonce).into(), sealed).map_err(|_| Failed)
}

/// Opens what [`secretbox_seal`] appended.
pub(crate) fn secretbox_open(key: &[u8], stored: &[u8], place: &[u8]) -> Result<Vec<u8>, Failed> {
    let inside = secretbox_open_bare(key, stored)?;
    let (length, rest) = inside.split_at_checked(4).ok_or(Failed)?;
    let length = u32::from_be_bytes(length.try_into().map_err(|_| Failed)?);
    let length = usize::try_from(length).map_err(|_| Failed)?;
    let (own, plain) = rest.split_at_checked(length).ok_or(Failed)?;
    match own == place {
        true => Ok(plain.to_vec()),
        false => Err(Failed),
    }
}

#[cfg(test)]
mod tests;
