//! Drops the notifications from what a PostgreSQL server sends, as a pooler in transaction mode does.

/// The part of a message that has not arrived completely.
#[derive(Default)]
pub(super) struct Filter(Vec<u8>);

/// The type of a message with a notification.
const NOTIFICATION: u8 = b'A';

impl Filter {
    /// Adds bytes; returns the complete messages but for notifications.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.extend_from_slice(bytes);
        let mut kept = Vec::new();
        let mut rest = &self.0[..];
        // A message is its type, its length without the type, and its content.
        while let Some((head, _)) = rest.split_at_checked(5) {
            let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize + 1;
            let Some((message, after)) = rest.split_at_checked(len) else {
                break;
            };
            if head[0] != NOTIFICATION {
                kept.extend_from_slice(message);
            }
            rest = after;
        }
        self.0 = rest.to_vec();
        kept
    }
}
