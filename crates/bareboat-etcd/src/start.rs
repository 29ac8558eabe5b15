//! What is checked before a cluster is used for the first time, and how a store is created.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bareboat_storage::{BackendError, Mark};

use crate::channel::Channel;
use crate::engine::{Inner, now};
use crate::error::{CallError, EtcdError};
use crate::layout::{Meta, Row, json, mark_text};
use crate::messages::{self, Compare, Op, Range, method, txn};
use crate::session::{cluster_name, parse_meta};

/// The format that this program writes.
pub(crate) const FORMAT: u32 = 1;
/// The format of a store that is being filled. Older programs refuse to open it.
pub(crate) const INCOMPLETE: u32 = u32::MAX;
/// The oldest version that can be used. In earlier versions, watches lost events after a compaction.
const OLDEST: [u64; 3] = [3, 5, 13];
/// The first safe releases of 3.5 and 3.6. In earlier releases, a member that was paused could answer reads from the
/// past.
const SAFE: [[u64; 3]; 2] = [[3, 5, 28], [3, 6, 9]];
const NOSPACE: u64 = 1;
const CORRUPT: u64 = 2;

fn refused(error: CallError) -> EtcdError {
    EtcdError::Refused(error.into())
}

impl Inner {
    /// Checks the cluster, and creates the store if it is missing.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<(), EtcdError> {
        let mut channel = self.dial().await?;
        let mut status = channel.status().await.map_err(refused)?;
        for _ in 1..self.address.endpoints.len() {
            if !status.learner {
                break;
            }
            // The member accepts no writes.
            self.endpoint.fetch_add(1, Ordering::Relaxed);
            channel = self.dial().await?;
            status = channel.status().await.map_err(refused)?;
        }
        check_version(&status.version)?;
        self.note_size(&status);
        for alarm in self.alarms(&channel).await.map_err(refused)? {
            match alarm {
                NOSPACE => tracing::error!("{NO_SPACE}"),
                CORRUPT => {
                    return Err(EtcdError::Unsafe(
                        "etcd has the alarm CORRUPT: its members differ, and one must be replaced"
                            .into(),
                    ));
                }
                _ => {}
            }
        }
        let members = channel.call(method::MEMBERS, Vec::new()).await;
        let voters = messages::voters(&members.map_err(refused)?).unwrap_or_default();
        if voters < 3 {
            tracing::info!(
                members = voters,
                "etcd has fewer than three members: the loss of one stops all writes"
            );
        }
        self.create(&channel).await?;
        // Another program may have compacted the history since the last start.
        let raised = self.learn_compaction(&channel).await;
        raised.map_err(|error| EtcdError::Refused(error.into()))
    }

    pub(crate) async fn alarms(&self, channel: &Channel) -> Result<Vec<u64>, CallError> {
        let alarms = channel.call(method::ALARM, Vec::new()).await?;
        messages::alarms(&alarms).ok_or(CallError::Unreadable("the alarms"))
    }

    pub(crate) fn note_size(&self, status: &messages::Status) {
        self.size.store(status.size, Ordering::Relaxed);
        self.in_use.store(status.in_use, Ordering::Relaxed);
        self.quota.store(status.quota, Ordering::Relaxed);
    }

    /// Creates the store if it does not exist. Revision 1 is the empty start: revision 0 is never assigned.
    async fn create(&self, channel: &Channel) -> Result<(), EtcdError> {
        let keys = &self.keys;
        let found = channel.range(&Range::one(keys.meta())).await;
        let found = found.map_err(refused)?;
        let mut meta = found.first().cloned();
        if meta.is_none() && !self.create {
            return Err(EtcdError::Missing {
                prefix: self.address.prefix.clone(),
            });
        }
        if meta.is_none() {
            let start = Mark {
                last: 1,
                epoch: 1,
                ..Mark::default()
            };
            let own = Meta {
                format: FORMAT,
                min_writer: FORMAT,
                store: uuid::Uuid::new_v4().to_string(),
                cluster: cluster_name(found.header.cluster),
            };
            let row = Row::epoch(&start, "created", now());
            let ops = [
                Op::Put(keys.row(1), json(&row)),
                Op::Put(keys.floor(), b"1".to_vec()),
                Op::Put(keys.meta(), json(&own)),
                Op::Put(keys.tail(), mark_text(&start).into_bytes()),
            ];
            let (key, tail) = (keys.meta(), keys.tail());
            let absent = [Compare::Absent(&key), Compare::Absent(&tail)];
            let otherwise = [Op::Range(Range::one(key.clone()))];
            let mut done = channel
                .txn(txn(&absent, &ops, &otherwise))
                .await
                .map_err(refused)?;
            match done.succeeded {
                true => {
                    tracing::info!(prefix = self.address.prefix, "created the store");
                    return Ok(());
                }
                false => meta = done.take(0).first().cloned(),
            }
        }
        let meta = meta.and_then(|found| parse_meta(&found.value));
        let Some(meta) = meta else {
            let why = format!("the keys under {} are not a store", self.address.prefix);
            return Err(EtcdError::Unsafe(why));
        };
        match meta.min_writer > FORMAT && meta.min_writer != INCOMPLETE {
            true => Err(EtcdError::Newer {
                found: meta.min_writer,
                known: FORMAT,
            }),
            false => Ok(()),
        }
    }

    /// Checks the size and the alarms of the cluster. Frees space before etcd refuses writes: afterwards it is too
    /// late, because raising the floor is a write.
    pub(crate) async fn inspect(self: &Arc<Self>, channel: &Channel) -> Result<(), BackendError> {
        let failed = crate::error::read_failed;
        let status = channel.status().await.map_err(failed)?;
        self.note_size(&status);
        if self
            .alarms(channel)
            .await
            .map_err(failed)?
            .contains(&NOSPACE)
        {
            tracing::error!("{NO_SPACE}");
            return Ok(());
        }
        if status.quota > 0 && status.in_use > status.quota / 10 * 8 {
            tracing::warn!(
                in_use = status.in_use,
                quota = status.quota,
                "etcd is nearly full: half of the history is dropped"
            );
            self.halve_history(channel).await?;
        }
        Ok(())
    }
}

const NO_SPACE: &str = "etcd has the alarm NOSPACE and refuses writes: free space with `etcdctl compact` and `etcdctl defrag`, or raise --quota-backend-bytes, then `etcdctl alarm disarm`";

fn numbers(version: &str) -> [u64; 3] {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = plain.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

fn check_version(version: &str) -> Result<(), EtcdError> {
    let found = numbers(version);
    if found < OLDEST {
        return Err(EtcdError::Unsafe(format!(
            "etcd {version} loses events of watches: 3.5.13 is the oldest version that can be used"
        )));
    }
    if SAFE
        .iter()
        .any(|safe| found[..2] == safe[..2] && found < *safe)
    {
        tracing::warn!(
            version,
            "a member of this etcd that was paused may answer reads from the past: use 3.5.28, 3.6.9 or newer"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_refused() {
        for (version, good) in [
            ("3.4.33", false),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.6.0-rc.1", true),
            ("3.6.16", true),
            ("4.0.0", true),
            ("", false),
        ] {
            assert_eq!(check_version(version).is_ok(), good, "{version}");
        }
    }
}
