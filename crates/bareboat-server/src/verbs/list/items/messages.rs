//! The items of a list as protobuf messages.

use super::{Items, Source, Style};
use crate::protobuf;
use crate::request::negotiate::Media;
use crate::tables;
use crate::verbs::kind_request::reread_object;
use crate::work;
use bareboat_api::Status;
use bareboat_storage::Entry;
use bytes::Bytes;
use std::sync::Arc;

impl Items {
    /// Returns the same items from the start, if none was taken yet.
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

    /// Returns the next items as bare messages, about `target` bytes of them; `None` at the end.
    pub(in super::super) async fn next_messages(
        &mut self,
        target: usize,
    ) -> Result<Option<Vec<Bytes>>, Status> {
        while let Some(batch) = self.next_batch(target).await {
            let chosen = self.choose(batch).await?;
            if chosen.is_empty() {
                continue;
            }
            let messages = match self.style {
                Style::Metadata { beta } => self.metadata(&chosen, beta).await?,
                _ => {
                    let version = self.call.version;
                    (self.served())
                        .render_all(&chosen, version, Media::Protobuf)
                        .await?
                }
            };
            return Ok(Some(messages));
        }
        Ok(None)
    }

    /// Returns the metadata of entries as messages.
    async fn metadata(&mut self, chosen: &[Arc<Entry>], beta: bool) -> Result<Vec<Bytes>, Status> {
        let message = self.call.messages().meta("PartialObjectMetadata");
        let message = message.ok_or_else(|| Status::internal("no message for metadata"))?;
        let rendered = self.render(chosen).await?;
        work::maybe_large(rendered.iter().map(Bytes::len).sum()).await;
        let mut messages = Vec::with_capacity(rendered.len());
        for bytes in &rendered {
            if self.pace.spend(bytes.len()) {
                work::turn().await;
            }
            let partial = tables::partial(&reread_object(bytes)?, beta);
            messages.push(protobuf::encode(message.get(), &partial)?.into());
        }
        Ok(messages)
    }
}
