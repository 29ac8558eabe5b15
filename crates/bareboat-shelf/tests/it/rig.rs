//! A shelf, and objects to put on it.

use crate::site::Site;
use bareboat_api::{Value, value};
use bareboat_shelf::{
    Batch, Change, Draft, KindId, KindInfo, MemberId, Progress, Query, Settings, Shelf,
};
use std::sync::Arc;

pub(crate) struct Rig {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) site: Site,
    pub(crate) pods: KindId,
    pub(crate) members: Vec<MemberId>,
    version: u64,
}

/// The members of a rig.
pub(crate) const MEMBERS: [&str; 3] = ["c1", "c2", "c3"];

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Rig {
        let site = Site::new();
        let shelf = Arc::new(site.open(settings));
        let members =
            MEMBERS.map(|name| shelf.add_member(name, "").expect("a member can be added").0);
        let pods = shelf
            .add_kind(&kind("", "pods", "Pod"))
            .expect("a kind can be added");
        Rig {
            shelf,
            site,
            pods,
            members: members.to_vec(),
            version: 0,
        }
    }

    /// Opens the file again; without `close`, as after a crash of the process.
    pub(crate) fn reopen(&mut self, clean: bool) {
        if clean {
            self.shelf.close().expect("a shelf can be closed");
        }
        self.shelf = Arc::new(self.site.open(Settings::default()));
    }

    pub(crate) fn put(
        &mut self,
        member: usize,
        namespace: &str,
        name: &str,
        uid: &str,
        labels: Value,
    ) {
        self.put_object(member, namespace, name, uid, labels, value!({}));
    }

    pub(crate) fn put_object(
        &mut self,
        member: usize,
        namespace: &str,
        name: &str,
        uid: &str,
        labels: Value,
        spec: Value,
    ) {
        self.version += 1;
        let object = value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid, "labels": (labels),
                "resourceVersion": (self.version.to_string()),
                "creationTimestamp": "2022-03-25T00:00:00Z",
            },
            "spec": (spec),
        });
        self.change(member, change_to(MEMBERS[member], object));
    }

    pub(crate) fn delete(&self, member: usize, namespace: &str, name: &str) {
        self.change(
            member,
            Change::Delete {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                version: None,
            },
        );
    }

    pub(crate) fn change(&self, member: usize, change: Change) {
        let batch = Batch {
            member: self.members[member],
            kind: self.pods,
            changes: vec![change],
            progress: Some(progress("1")),
        };
        self.shelf.apply(&[batch], 1).expect("a change is written");
    }

    pub(crate) fn query(&self) -> Query {
        Query {
            kinds: vec![self.pods],
            ..Query::default()
        }
    }

    /// Returns `cluster/namespace/name` of a search's rows.
    pub(crate) fn names(&self, query: &Query) -> Vec<String> {
        let page = self
            .shelf
            .page(query, usize::MAX)
            .expect("the search works");
        let directory = self.shelf.directory();
        let name = |item: &bareboat_shelf::Item| {
            let cluster = directory.member_name(item.narrow.member);
            format!("{cluster}/{}/{}", item.narrow.namespace, item.narrow.name)
        };
        page.items.iter().map(name).collect()
    }
}

pub(crate) fn kind(group: &str, resource: &str, kind: &str) -> KindInfo {
    KindInfo {
        group: group.to_owned(),
        resource: resource.to_owned(),
        kind: kind.to_owned(),
        namespaced: true,
    }
}

pub(crate) fn change_to(member: &str, object: Value) -> Change {
    Change::Put(Box::new(
        Draft::new(member, object).expect("the object is well formed"),
    ))
}

pub(crate) fn progress(version: &str) -> Progress {
    Progress {
        version: "v1".to_owned(),
        resource_version: version.to_owned(),
    }
}
