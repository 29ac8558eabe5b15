//! Sets the default class of new PersistentVolumeClaims and Ingresses that name none.
// Upstream: plugin/pkg/admission/storage/storageclass/setdefault, plugin/pkg/admission/network/defaultingressclass.

use crate::reach::Reach;
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use std::cmp::Reverse;

/// Sets the default class of new claims and ingresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultClass;

/// How one kind refers to its class, and which annotations mark the default class.
struct Naming {
    /// The storage resource of the classes.
    classes: &'static str,
    /// The field of `spec` that names the class.
    member: &'static str,
    /// The deprecated annotation that names the class.
    annotation: &'static str,
    /// Annotations that mark a class as the default.
    marks: &'static [&'static str],
}

const CLAIMS: Naming = Naming {
    classes: "storage.k8s.io/storageclasses",
    member: "storageClassName",
    annotation: "volume.beta.kubernetes.io/storage-class",
    marks: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
};

const INGRESSES: Naming = Naming {
    classes: "networking.k8s.io/ingressclasses",
    member: "ingressClassName",
    annotation: "kubernetes.io/ingress.class",
    marks: &["ingressclass.kubernetes.io/is-default-class"],
};

impl Naming {
    fn is_default(&self, class: &Object) -> bool {
        let marked = |mark| class.value().text(&["metadata", "annotations", mark]) == "true";
        self.marks.iter().any(|mark| marked(mark))
    }

    /// Returns the default class. If there are several, the newest wins, then the first by name.
    fn default(&self, lookup: &dyn Lookup) -> Option<Object> {
        let classes = lookup.list(self.classes, "").into_iter();
        // Timestamps of one format sort as text.
        let created = |class: &Object| {
            let time = class.value().text(&["metadata", "creationTimestamp"]);
            (Reverse(time.to_owned()), class.name().to_owned())
        };
        classes
            .filter(|class| self.is_default(class))
            .min_by_key(created)
    }

    fn fill(&self, object: &mut Object, lookup: &dyn Lookup) {
        let named = object.value().has(&["spec", self.member])
            || (object.value()).has(&["metadata", "annotations", self.annotation]);
        if named {
            return;
        }
        if let Some(class) = self.default(lookup) {
            let spec = object.map_mut().object_mut("spec");
            spec.insert(self.member, Value::string(class.name()));
        }
    }
}

impl Mutator for DefaultClass {
    fn name(&self) -> &'static str {
        "DefaultClass"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let naming = match super::subject(review) {
            Some(("", "persistentvolumeclaims", Operation::Create)) => Some(CLAIMS),
            Some(("networking.k8s.io", "ingresses", Operation::Create)) => Some(INGRESSES),
            _ => None,
        };
        if let (Some(naming), Some(object)) = (naming, review.object.as_deref_mut()) {
            naming.fill(object, lookup);
        }
        decided(Ok(()))
    }
}
