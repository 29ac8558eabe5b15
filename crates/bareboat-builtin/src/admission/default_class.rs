//! The class of claims and ingresses that name none: the one that is marked as the default.
// Upstream: plugin/pkg/admission/storage/storageclass/setdefault, plugin/pkg/admission/network/defaultingressclass.

use crate::reach::Reach;
use bareboat_api::admission::{Mutator, Operation, Review, World};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use std::cmp::Reverse;

/// Gives new claims and ingresses the default class of their kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultClass;

/// How objects of one kind name their class, and how a class is marked.
struct Naming {
    /// Where the classes are stored.
    classes: &'static str,
    /// The member of `spec` that names a class.
    member: &'static str,
    /// The annotation that named one in earlier days.
    annotation: &'static str,
    /// The annotations of a class, any of which makes it the default.
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

    /// The default class: of several the newest, and of those the first by name.
    fn default(&self, world: &dyn World) -> Option<Object> {
        let classes = world.list(self.classes, "").into_iter();
        // Times of one form are in order as texts are.
        let created = |class: &Object| {
            let time = class.value().text(&["metadata", "creationTimestamp"]);
            (Reverse(time.to_owned()), class.name().to_owned())
        };
        classes
            .filter(|class| self.is_default(class))
            .min_by_key(created)
    }

    fn fill(&self, object: &mut Object, world: &dyn World) {
        let named = object.value().has(&["spec", self.member])
            || (object.value()).has(&["metadata", "annotations", self.annotation]);
        if named {
            return;
        }
        if let Some(class) = self.default(world) {
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
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let naming = match super::subject(review) {
            Some(("", "persistentvolumeclaims", Operation::Create)) => Some(CLAIMS),
            Some(("networking.k8s.io", "ingresses", Operation::Create)) => Some(INGRESSES),
            _ => None,
        };
        if let (Some(naming), Some(object)) = (naming, review.object.as_deref_mut()) {
            naming.fill(object, world);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
