//! The messages of etcd's API that this engine uses, with the field numbers of its `rpc.proto` and `kv.proto`.

use bytes::Bytes;

use crate::wire::{Field, fields, put_bytes, put_message, put_number};

/// The paths of the gRPC calls.
pub(crate) mod method {
    pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(crate) const COMPACT: &str = "/etcdserverpb.KV/Compact";
    pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
    pub(crate) const DEFRAGMENT: &str = "/etcdserverpb.Maintenance/Defragment";
    pub(crate) const MEMBERS: &str = "/etcdserverpb.Cluster/MemberList";
    pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
}

/// A request for keys: a single key, or all keys from `key` up to `end`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    pub(crate) key: Vec<u8>,
    /// The end of the range; empty for a single key.
    pub(crate) end: Vec<u8>,
    /// The maximum number of keys; 0 for all.
    pub(crate) limit: u64,
    /// The revision of etcd to read at; 0 for the current one.
    pub(crate) revision: u64,
}

impl Range {
    pub(crate) fn one(key: Vec<u8>) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.key.len() + self.end.len() + 24);
        put_bytes(&mut out, 1, &self.key);
        put_bytes(&mut out, 2, &self.end);
        put_number(&mut out, 3, self.limit);
        put_number(&mut out, 4, self.revision);
        out
    }
}

/// Returns the request for the keys of `range` that were changed at the revision `since` of etcd or later, without their
/// values.
pub(crate) fn changed_keys(range: &Range, since: u64) -> Vec<u8> {
    let mut out = range.encode();
    put_number(&mut out, 8, 1);
    put_number(&mut out, 10, since);
    out
}

/// Returns the request for the number of keys in `range`.
pub(crate) fn count_keys(range: &Range) -> Vec<u8> {
    let mut out = range.encode();
    put_number(&mut out, 9, 1);
    out
}

/// An operation of a transaction.
pub(crate) enum Op {
    Range(Range),
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    /// Deletes all keys from the first up to the second.
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Op {
    fn encode(&self) -> Vec<u8> {
        let (number, inner) = match self {
            Self::Range(range) => (1, range.encode()),
            Self::Put(key, value) => {
                let mut out = Vec::with_capacity(key.len() + value.len() + 12);
                put_bytes(&mut out, 1, key);
                put_bytes(&mut out, 2, value);
                (2, out)
            }
            Self::Delete(key) => {
                let mut out = Vec::new();
                put_bytes(&mut out, 1, key);
                (3, out)
            }
            Self::DeleteRange(key, end) => {
                let mut out = Vec::new();
                put_bytes(&mut out, 1, key);
                put_bytes(&mut out, 2, end);
                (3, out)
            }
        };
        let mut out = Vec::with_capacity(inner.len() + 8);
        put_message(&mut out, number, &inner);
        out
    }
}

/// A condition of a transaction.
pub(crate) enum Compare<'c> {
    /// The key has exactly this value.
    Value(&'c [u8], &'c [u8]),
    /// The key does not exist.
    Absent(&'c [u8]),
}

/// Encodes a transaction. etcd runs `success` if all conditions of `compare` hold, otherwise `failure`.
pub(crate) fn txn(compare: &[Compare<'_>], success: &[Op], failure: &[Op]) -> Vec<u8> {
    let mut out = Vec::new();
    for compare in compare {
        let mut inner = Vec::new();
        // The result EQUAL is encoded as 0, and so is the version of a key that does not exist.
        match compare {
            Compare::Value(key, value) => {
                put_number(&mut inner, 2, 3);
                put_bytes(&mut inner, 3, key);
                put_message(&mut inner, 7, value);
            }
            Compare::Absent(key) => put_bytes(&mut inner, 3, key),
        }
        put_message(&mut out, 1, &inner);
    }
    for (number, ops) in [(2, success), (3, failure)] {
        for op in ops {
            put_message(&mut out, number, &op.encode());
        }
    }
    out
}

/// The header of every answer, which identifies the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) cluster: u64,
    pub(crate) member: u64,
    pub(crate) revision: u64,
}

impl Header {
    fn decode(message: &Bytes) -> Option<Self> {
        let mut header = Self::default();
        fields(message, |number, field| {
            match (number, field) {
                (1, Field::Number(cluster)) => header.cluster = cluster,
                (2, Field::Number(member)) => header.member = member,
                (3, Field::Number(revision)) => header.revision = revision,
                _ => {}
            }
            Some(())
        })?;
        Some(header)
    }
}

/// A key with its value, and the revision of etcd that wrote it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyValue {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    pub(crate) written: u64,
}

impl KeyValue {
    fn decode(message: &Bytes) -> Option<Self> {
        let mut found = Self::default();
        fields(message, |number, field| {
            match (number, field) {
                (1, Field::Bytes(key)) => found.key = key,
                (3, Field::Number(revision)) => found.written = revision,
                (5, Field::Bytes(value)) => found.value = value,
                _ => {}
            }
            Some(())
        })?;
        Some(found)
    }
}

/// The answer to a range request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) all: Vec<KeyValue>,
    pub(crate) more: bool,
    /// The number of keys in the range, of which `all` may be a part.
    pub(crate) count: u64,
}

impl Found {
    pub(crate) fn decode(message: &Bytes) -> Option<Self> {
        let mut found = Self::default();
        fields(message, |number, field| {
            match (number, field) {
                (1, Field::Bytes(header)) => found.header = Header::decode(&header)?,
                (2, Field::Bytes(pair)) => found.all.push(KeyValue::decode(&pair)?),
                (3, Field::Number(more)) => found.more = more != 0,
                (4, Field::Number(count)) => found.count = count,
                _ => {}
            }
            Some(())
        })?;
        Some(found)
    }

    pub(crate) fn first(&self) -> Option<&KeyValue> {
        self.all.first()
    }
}

/// The answer to a transaction.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) header: Header,
    /// Whether all conditions held.
    pub(crate) succeeded: bool,
    /// The answer of each operation; the answers of writes are empty.
    pub(crate) parts: Vec<Found>,
}

impl Done {
    pub(crate) fn decode(message: &Bytes) -> Option<Self> {
        let mut done = Self::default();
        fields(message, |number, field| {
            match (number, field) {
                (1, Field::Bytes(header)) => done.header = Header::decode(&header)?,
                (2, Field::Number(succeeded)) => done.succeeded = succeeded != 0,
                (3, Field::Bytes(part)) => {
                    let mut found = Found::default();
                    fields(&part, |number, field| {
                        if let (1, Field::Bytes(range)) = (number, field) {
                            found = Found::decode(&range)?;
                        }
                        Some(())
                    })?;
                    done.parts.push(found);
                }
                _ => {}
            }
            Some(())
        })?;
        Some(done)
    }

    /// Takes the answer of operation `part`; an empty answer if there is no such operation.
    pub(crate) fn take(&mut self, part: usize) -> Found {
        self.parts
            .get_mut(part)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

/// Encodes a request to watch the keys from `key` to `end` for writes, from revision `from` of etcd, or from now on if
/// `from` is 0.
pub(crate) fn watch(key: &[u8], end: &[u8], from: u64) -> Vec<u8> {
    let mut create = Vec::new();
    put_bytes(&mut create, 1, key);
    put_bytes(&mut create, 2, end);
    put_number(&mut create, 3, from);
    // Leave out deletions.
    put_bytes(&mut create, 5, &[1]);
    // Allow long answers to be split into fragments.
    put_number(&mut create, 8, 1);
    let mut out = Vec::new();
    put_message(&mut out, 1, &create);
    out
}

/// An answer of a watch.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) created: bool,
    pub(crate) canceled: bool,
    /// The oldest revision that can be read, if the watch began below it; otherwise 0.
    pub(crate) compacted: u64,
    pub(crate) reason: Bytes,
    pub(crate) written: Vec<KeyValue>,
}

impl Watched {
    pub(crate) fn decode(message: &Bytes) -> Option<Self> {
        let mut watched = Self::default();
        fields(message, |number, field| {
            match (number, field) {
                (3, Field::Number(created)) => watched.created = created != 0,
                (4, Field::Number(canceled)) => watched.canceled = canceled != 0,
                (5, Field::Number(revision)) => watched.compacted = revision,
                (6, Field::Bytes(reason)) => watched.reason = reason,
                (11, Field::Bytes(event)) => {
                    fields(&event, |number, field| {
                        if let (2, Field::Bytes(pair)) = (number, field) {
                            watched.written.push(KeyValue::decode(&pair)?);
                        }
                        Some(())
                    })?;
                }
                _ => {}
            }
            Some(())
        })?;
        Some(watched)
    }
}

/// The status of a member.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) size: u64,
    pub(crate) in_use: u64,
    /// The quota of the member; 0 if the member is too old to report it.
    pub(crate) quota: u64,
    pub(crate) learner: bool,
    /// Whether the member is the leader.
    pub(crate) leads: bool,
}

impl Status {
    pub(crate) fn decode(message: &Bytes) -> Option<Self> {
        let mut status = Self::default();
        let (mut member, mut leader) = (0, None);
        fields(message, |number, field| {
            match (number, field) {
                (1, Field::Bytes(header)) => member = Header::decode(&header)?.member,
                (4, Field::Number(id)) => leader = Some(id),
                (2, Field::Bytes(text)) => {
                    status.version = String::from_utf8_lossy(&text).into_owned();
                }
                (3, Field::Number(size)) => status.size = size,
                (9, Field::Number(in_use)) => status.in_use = in_use,
                (10, Field::Number(learner)) => status.learner = learner != 0,
                (12, Field::Number(quota)) => status.quota = quota,
                _ => {}
            }
            Some(())
        })?;
        status.leads = leader == Some(member);
        Some(status)
    }
}

/// Returns the active alarms: 1 is NOSPACE, 2 is CORRUPT.
pub(crate) fn alarms(message: &Bytes) -> Option<Vec<u64>> {
    let mut alarms = Vec::new();
    fields(message, |number, field| {
        if let (2, Field::Bytes(member)) = (number, field) {
            fields(&member, |number, field| {
                if let (2, Field::Number(alarm)) = (number, field) {
                    alarms.push(alarm);
                }
                Some(())
            })?;
        }
        Some(())
    })?;
    Some(alarms)
}

/// Returns the number of voting members.
pub(crate) fn voters(message: &Bytes) -> Option<usize> {
    let mut voters = 0;
    fields(message, |number, field| {
        if let (2, Field::Bytes(member)) = (number, field) {
            let mut learner = false;
            fields(&member, |number, field| {
                if let (5, Field::Number(value)) = (number, field) {
                    learner = value != 0;
                }
                Some(())
            })?;
            voters += usize::from(!learner);
        }
        Some(())
    })?;
    Some(voters)
}

/// Encodes a request for an authentication token.
pub(crate) fn credentials(user: &str, password: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, user.as_bytes());
    put_bytes(&mut out, 2, password.as_bytes());
    out
}

/// Returns the authentication token of an answer.
pub(crate) fn token(message: &Bytes) -> Option<Bytes> {
    let mut token = Bytes::new();
    fields(message, |number, field| {
        if let (2, Field::Bytes(bytes)) = (number, field) {
            token = bytes;
        }
        Some(())
    })?;
    Some(token)
}

/// Encodes a request to compact up to `revision` of etcd. The answer comes when the space is free.
pub(crate) fn compaction(revision: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, revision);
    put_number(&mut out, 2, 1);
    out
}
