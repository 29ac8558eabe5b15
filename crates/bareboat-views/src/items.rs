//! Objects of an answer in one piece, as they stand in a list.

use bytes::BytesMut;

/// How many bytes an object is expected to have.
const USUAL: usize = 4096;

/// Objects with commas between them.
#[derive(Debug, Default)]
pub(crate) struct Items {
    bytes: BytesMut,
    /// Where each of them begins.
    begins: Vec<usize>,
}

impl Items {
    /// Makes room for so many objects.
    pub(crate) fn with_capacity(count: usize) -> Items {
        Items {
            bytes: BytesMut::with_capacity(count * USUAL),
            begins: Vec::with_capacity(count),
        }
    }

    /// Begins another object, which is to be written to the end of the buffer.
    pub(crate) fn add(&mut self) -> &mut BytesMut {
        if !self.begins.is_empty() {
            self.bytes.extend_from_slice(b",");
        }
        self.begins.push(self.bytes.len());
        &mut self.bytes
    }

    /// Returns each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let next = self.begins.iter().skip(1).map(|begin| begin - 1);
        let ends = next.chain([self.bytes.len()]);
        let begins = self.begins.iter().copied();
        begins.zip(ends).map(|(begin, end)| &self.bytes[begin..end])
    }

    pub(crate) fn len(&self) -> usize {
        self.begins.len()
    }

    /// Returns how many bytes they have.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the objects to a list, and notes whether it has any.
    pub(crate) fn append_to(&self, out: &mut BytesMut, some: &mut bool) {
        if !self.begins.is_empty() {
            if std::mem::replace(some, true) {
                out.extend_from_slice(b",");
            }
            out.extend_from_slice(&self.bytes);
        }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Items {
    fn from_iter<I: IntoIterator<Item = T>>(objects: I) -> Items {
        let mut items = Items::default();
        for object in objects {
            items.add().extend_from_slice(object.as_ref());
        }
        items
    }
}
