//! Encodes and decodes protobuf fields of KMS v2, and the stored `EncryptedObject`. `client` builds requests.

/// The value of a decoded field.
pub(crate) enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// Appends a byte string to `out`. An empty byte string is omitted, as in proto3.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    put_number_raw(out, u64::from(number) << 3 | 2);
    put_number_raw(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a number to `out`. Zero is omitted.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    if value == 0 {
        return;
    }
    put_number_raw(out, u64::from(number) << 3);
    put_number_raw(out, value);
}

/// Appends a map of texts to byte strings to `out`.
pub(crate) fn put_map(out: &mut Vec<u8>, number: u32, map: &[(String, Vec<u8>)]) {
    for (key, value) in map {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, value);
        put_number_raw(out, u64::from(number) << 3 | 2);
        put_number_raw(out, entry.len() as u64);
        out.extend_from_slice(&entry);
    }
}

fn put_number_raw(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the fields of `message` in order; `None` if it is malformed.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<(u32, Field<'_>)>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = number(&mut message)?;
        let field = u32::try_from(tag >> 3).ok()?;
        match tag & 7 {
            0 => found.push((field, Field::Number(number(&mut message)?))),
            2 => {
                let length = usize::try_from(number(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                found.push((field, Field::Bytes(bytes)));
            }
            1 => message = message.get(8..)?,
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Decodes an entry of a map.
pub(crate) fn entry(message: &[u8]) -> Option<(String, Vec<u8>)> {
    let (mut key, mut value) = (String::new(), Vec::new());
    for (number, field) in fields(message)? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => key = String::from_utf8(bytes.to_vec()).ok()?,
            (2, Field::Bytes(bytes)) => value = bytes.to_vec(),
            _ => {}
        }
    }
    Some((key, value))
}

/// The message stored after the prefix of a value that is encrypted under a plug-in's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EncryptedObject {
    pub(crate) data: Vec<u8>,
    pub(crate) key_id: String,
    /// The seed or key, encrypted by the plug-in.
    pub(crate) source: Vec<u8>,
    pub(crate) annotations: Vec<(String, Vec<u8>)>,
    /// The type of `source`. 0: a key of AES-GCM; 1: a seed from which keys are derived.
    pub(crate) source_type: u64,
}

impl EncryptedObject {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, &self.data);
        put_bytes(out, 2, self.key_id.as_bytes());
        put_bytes(out, 3, &self.source);
        put_map(out, 4, &self.annotations);
        put_number(out, 5, self.source_type);
    }

    pub(crate) fn read(message: &[u8]) -> Option<EncryptedObject> {
        let mut object = EncryptedObject::default();
        for (number, field) in fields(message)? {
            match (number, field) {
                (1, Field::Bytes(bytes)) => object.data = bytes.to_vec(),
                (2, Field::Bytes(bytes)) => {
                    object.key_id = String::from_utf8(bytes.to_vec()).ok()?;
                }
                (3, Field::Bytes(bytes)) => object.source = bytes.to_vec(),
                (4, Field::Bytes(bytes)) => object.annotations.push(entry(bytes)?),
                (5, Field::Number(value)) => object.source_type = value,
                _ => {}
            }
        }
        Some(object)
    }
}

#[cfg(test)]
mod tests;
