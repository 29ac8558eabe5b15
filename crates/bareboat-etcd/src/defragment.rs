//! Releases unused space: etcd keeps the pages of compacted history until a member is defragmented.

use std::sync::Arc;

use bareboat_storage::BackendError;

use crate::channel::Channel;
use crate::engine::Inner;
use crate::error::{read_failed, unreachable};

impl Inner {
    /// Defragments the members of the address one after another, the leader last. A member does not answer in the
    /// meantime, so the next one waits until it is back.
    pub(crate) fn release_space(self: &Arc<Self>) -> Result<bool, BackendError> {
        self.block(async {
            let mut members = Vec::new();
            for endpoint in &self.address.endpoints {
                let channel = Channel::open(&self.address, endpoint).await;
                let channel = channel.map_err(unreachable)?;
                let status = channel.status().await.map_err(read_failed)?;
                members.push((status.leads, channel));
            }
            members.sort_by_key(|(leads, _)| *leads);
            for (_, channel) in &members {
                channel.defragment().await.map_err(read_failed)?;
                let status = channel.status().await.map_err(read_failed)?;
                self.note_size(&status);
            }
            Ok(!members.is_empty())
        })
    }
}
