//! The items of a list as protobuf messages.

use super::Items;
use super::Source;
use crate::request::negotiate::Media;
use bareboat_api::Status;
use bytes::Bytes;

impl Items {
    /// The same items from the beginning, if nothing was taken yet.
    pub(in super::super) fn again(&self) -> Items {
        let source = match &self.source {
            Source::Page(entries) => Source::Page(entries.clone()),
            Source::Range {
                snapshot,
                prefix,
                after,
            } => Source::Range {
                snapshot: snapshot.clone(),
                prefix: prefix.clone(),
                after: after.clone(),
            },
        };
        Items::new(
            self.call.clone(),
            source,
            self.selection.clone(),
            self.style,
        )
    }

    /// The next items as bare messages, of some `target` bytes; nothing at the end.
    pub(in super::super) async fn next_messages(
        &mut self,
        target: usize,
    ) -> Result<Option<Vec<Bytes>>, Status> {
        while let Some(batch) = self.next_batch(target).await {
            let chosen = self.choose(batch).await?;
            if !chosen.is_empty() {
                let messages =
                    (self.served()).render_all(&chosen, self.call.version, Media::Protobuf);
                return Ok(Some(messages.await?));
            }
        }
        Ok(None)
    }
}
