//! An object of another API server that names owners: how it is read, deleted, and freed of an owner.

use crate::Client;
use crate::kinds::join;
use crate::remote::{GroupResource, Metadata, OwnerReference, RemoteResource};
use bareboat_api::{Status, Str, Value, value};
use bareboat_storage::Owner;
use http::Method;

/// An object of another server that names owners.
pub(super) struct RemoteDependent {
    pub(super) resource: GroupResource,
    pub(super) path: String,
    pub(super) namespace: Option<Str>,
    pub(super) uid: Str,
    resource_version: Str,
    pub(super) is_deleting: bool,
    finalizers: Vec<Str>,
    pub(super) owners: Vec<Owner>,
    /// The references as they are sent.
    references: Vec<OwnerReference>,
}

impl RemoteDependent {
    /// Reads the metadata of an object. Objects without owners, and those that cannot be addressed, are left out.
    pub(super) fn read(resource: &RemoteResource, metadata: Metadata) -> Option<RemoteDependent> {
        let given = |text: Str| (!text.is_empty()).then_some(text);
        let namespace = match resource.namespaced {
            true => Some(metadata.namespace).filter(|name| is_plain(name)),
            false => None,
        };
        if resource.namespaced && namespace.is_none() {
            return None;
        }
        let references = metadata.owner_references.0;
        let owners: Vec<Owner> = references.iter().map(owner).collect::<Option<_>>()?;
        if owners.is_empty() {
            return None;
        }
        let name = given(metadata.name)?;
        Some(RemoteDependent {
            resource: resource.group_resource(),
            path: join(&resource.collection(namespace.as_deref()), &name),
            uid: given(metadata.uid)?,
            resource_version: given(metadata.resource_version)?,
            is_deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.0,
            namespace,
            owners,
            references,
        })
    }

    pub(super) fn names(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| *owner.uid == *uid)
    }

    pub(super) fn blocks(&self, uid: &str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|owner| *owner.uid == *uid && owner.block_owner_deletion)
    }

    pub(super) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|held| *held == finalizer)
    }

    pub(super) async fn delete(&self, client: &Client, policy: &str) -> Result<(), Status> {
        let options = value!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
            "preconditions": {
                "uid": (self.uid.as_str()),
                "resourceVersion": (self.resource_version.as_str()),
            },
        });
        let deleted = client.remote(Method::DELETE, &self.path, Some(&options));
        deleted.await.map(|_| ())
    }

    /// Removes references that meet a condition, unless the object has changed.
    pub(super) async fn remove_owners(
        &self,
        client: &Client,
        unwanted: impl Fn(usize, &Owner) -> bool,
    ) -> Result<(), Status> {
        let all = self.references.iter().zip(&self.owners).enumerate();
        let kept: Vec<Value> = all
            .filter(|(index, (_, owner))| !unwanted(*index, owner))
            .map(|(_, (reference, _))| sent(reference))
            .collect();
        let kept = match kept.is_empty() {
            true => Value::Null,
            false => Value::Array(kept),
        };
        let patch = value!({"metadata": {
            "uid": (self.uid.as_str()),
            "resourceVersion": (self.resource_version.as_str()),
            "ownerReferences": kept,
        }});
        client.remote_merge(&self.path, &patch).await
    }
}

/// Returns the owner that a reference names, if the reference is complete.
fn owner(reference: &OwnerReference) -> Option<Owner> {
    let given = |text: &Str| (!text.is_empty()).then(|| text.as_str().into());
    Some(Owner {
        api_version: given(&reference.api_version)?,
        kind: given(&reference.kind)?,
        name: given(&reference.name)?,
        uid: given(&reference.uid)?,
        controller: reference.controller == Some(true),
        block_owner_deletion: reference.block_owner_deletion == Some(true),
    })
}

/// Returns a reference in JSON.
fn sent(reference: &OwnerReference) -> Value {
    let mut sent = value!({
        "apiVersion": (reference.api_version.as_str()),
        "kind": (reference.kind.as_str()),
        "name": (reference.name.as_str()),
        "uid": (reference.uid.as_str()),
    });
    let flags = [
        ("controller", reference.controller),
        ("blockOwnerDeletion", reference.block_owner_deletion),
    ];
    for (key, flag) in flags {
        if let Some(flag) = flag {
            sent.make_object().insert(key, Value::Bool(flag));
        }
    }
    sent
}

/// Whether a name of another server can be a part of a URL.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_sent_as_it_was_read() {
        let reference =
            value!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": false});
        let read: OwnerReference =
            serde_json::from_str(&reference.to_string()).expect("a reference");
        assert_eq!(sent(&read), reference);
    }

    #[test]
    fn a_name_that_leaves_its_collection_is_not_plain() {
        for (name, plain) in [("a-1", true), ("", false), ("a/b", false), ("..", false)] {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}
