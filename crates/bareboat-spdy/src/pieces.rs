//! Bytes that arrive in pieces, for readers with a buffer of any size.

use bytes::Bytes;
use tokio::io::ReadBuf;

/// Moves as many bytes of a piece as fit into the buffer of a reader.
pub fn move_into(piece: &mut Bytes, buffer: &mut ReadBuf<'_>) {
    let count = piece.len().min(buffer.remaining());
    buffer.put_slice(&piece.split_to(count));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_buffer_takes_a_piece_in_parts() {
        let mut piece = Bytes::from_static(b"hello");
        let mut read = Vec::new();
        for _ in 0..3 {
            let mut space = [0; 2];
            let mut buffer = ReadBuf::new(&mut space);
            move_into(&mut piece, &mut buffer);
            read.push(buffer.filled().to_vec());
        }
        assert_eq!(read, [&b"he"[..], b"ll", b"o"]);
        assert!(piece.is_empty());
    }
}
